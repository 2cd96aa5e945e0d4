import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import type { Site } from '../../src/service/merchants/team/passkeys';

/** Faults of a device or a thief; each is undefined on a good day. */
interface Faults {
  origin?: string;
  rpId?: string;
  user_id?: string;
  counter?: number;
  /** User present (1) and verified (4). */
  flags?: number;
  type?: string;
}

const PRESENT_AND_VERIFIED = 0b101;
const HAS_KEY = 0b100_0000;

/** Device with one passkey of a user, which signs as a browser's would. */
export function createAuthenticator({ rpId, origin }: Site, user_id: string) {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const id = randomBytes(16);
  let uses = 0;

  const clientData = (type: string, challenge: string, faults: Faults) =>
    Buffer.from(JSON.stringify({ type, challenge, origin, crossOrigin: false, ...pick(faults) }));

  const authenticatorData = (faults: Faults, more = Buffer.alloc(0)) => {
    const counter = Buffer.alloc(4);
    counter.writeUInt32BE(faults.counter ?? uses);
    const flags = (faults.flags ?? PRESENT_AND_VERIFIED) | (more.length > 0 ? HAS_KEY : 0);
    return Buffer.concat([sha256(faults.rpId ?? rpId), Buffer.from([flags]), counter, more]);
  };

  return {
    create: (challenge: string, faults: Faults = {}) => {
      const { x = '', y = '' } = publicKey.export({ format: 'jwk' });
      const coordinates = [x, y].map((each) => Buffer.from(each, 'base64url'));
      const key = Buffer.concat([
        Buffer.from('a5010203262001215820', 'hex'),
        ...[coordinates[0] ?? id, Buffer.from('225820', 'hex'), coordinates[1] ?? id],
      ]);
      const credential = [Buffer.alloc(16), Buffer.from([0, id.length]), id, key];
      const data = authenticatorData(faults, Buffer.concat(credential));
      return toMessage({
        clientDataJSON: clientData('webauthn.create', challenge, faults),
        attestationObject: Buffer.concat([
          ...[Buffer.from('\xa3cfmtdnonegattStmt\xa0hauthData\x58', 'latin1')],
          ...[Buffer.from([data.length]), data],
        ]),
      });
    },
    use: (challenge: string, faults: Faults = {}) => {
      uses += 1;
      const clientDataJSON = clientData('webauthn.get', challenge, faults);
      const data = authenticatorData(faults);
      const signature = sign('sha256', Buffer.concat([data, sha256(clientDataJSON)]), privateKey);
      const userHandle = Buffer.from(faults.user_id ?? user_id);
      return toMessage({ clientDataJSON, authenticatorData: data, signature, userHandle });
    },
  };

  function toMessage(fields: Record<string, Buffer>): string {
    const texts = Object.entries({ id, ...fields }).map(([name, bytes]) => [
      name,
      bytes.toString('base64url'),
    ]);
    return JSON.stringify(Object.fromEntries(texts));
  }
}

const pick = ({ origin, type }: Faults) => ({ ...(origin && { origin }), ...(type && { type }) });

function sha256(data: string | Buffer): Buffer {
  return createHash('sha256').update(data).digest();
}
