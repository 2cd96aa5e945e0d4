import { execFileSync } from 'node:child_process';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Files of a certificate, and both in one as mongod and its drivers read them. */
export interface Certificate {
  cert: string;
  key: string;
  both: string;
}

/** Name that the certificates of servers hold, next to this machine's address. */
export const SERVER_NAME = 'servers.example';

/** Makes an authority and what it signs, with openssl, for a day. */
export function createAuthority(folder: string, name = 'authority') {
  const openssl = (...args: string[]) => execFileSync('openssl', args, { stdio: 'pipe' });
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  const file = (ending: string) => join(folder, `${name}${ending}`);
  const ca = file('.crt');
  openssl(
    ...['req', '-x509', ...curve, '-days', '1', '-subj', `/CN=${name}`],
    ...['-keyout', file('.key'), '-out', ca],
  );
  return {
    ca,
    sign(subject: string): Certificate {
      const of = (ending: string) => join(folder, `${name}-${subject}${ending}`);
      const [cert, key, both] = [of('.crt'), of('.key'), of('.pem')];
      openssl(
        ...['req', ...curve, '-subj', `/O=tests/CN=${subject}`, '-keyout', key],
        ...['-out', of('.csr')],
      );
      writeFileSync(of('.ext'), `subjectAltName=DNS:${SERVER_NAME},IP:127.0.0.1\n`);
      openssl(
        ...['x509', '-req', '-days', '1', '-in', of('.csr'), '-CA', ca, '-CAkey', file('.key')],
        ...['-CAcreateserial', '-extfile', of('.ext'), '-out', cert],
      );
      writeFileSync(both, readFileSync(cert, 'utf8') + readFileSync(key, 'utf8'));
      chmodSync(both, 0o600);
      return { cert, key, both };
    },
  };
}
