import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { SMTPServer } from 'smtp-server';
import type { Certificate } from './certificates';

const LOGIN = { user: 'post@example.com', pass: 'p@ss word/1' };

interface TakenMail {
  to: string[];
  /** Headers and text, without soft line breaks. */
  text: string;
  secure: boolean;
}

interface Options {
  certificate?: Certificate;
  secure?: boolean;
  /** Status with which an address is refused; undefined if it is not. */
  refuse?: (address: string) => number | undefined;
}

/** Starts a mail server that wants `LOGIN`, and stores what it takes. */
export async function startSmtpServer({ certificate, secure = false, refuse }: Options = {}) {
  const mails: TakenMail[] = [];
  const server = new SMTPServer({
    secure,
    ...(certificate
      ? { key: readFileSync(certificate.key), cert: readFileSync(certificate.cert) }
      : { hideSTARTTLS: true, allowInsecureAuth: true }),
    onAuth({ username, password }, _, done) {
      const isRight = username === LOGIN.user && password === LOGIN.pass;
      if (isRight) done(null, { user: username });
      else done(new Error('Wrong login'));
    },
    onRcptTo({ address }, _, done) {
      const responseCode = refuse?.(address);
      if (responseCode === undefined) done();
      else done(Object.assign(new Error(`No ${address}`), { responseCode }));
    },
    onData(stream, { envelope, secure: isSecure }, done) {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => {
        const text = Buffer.concat(chunks).toString().replace(/=\r\n/g, '').replace(/=3D/g, '=');
        const to = envelope.rcptTo.map(({ address }) => address);
        mails.push({ to, text, secure: isSecure });
        done();
      });
    },
  });
  server.on('error', () => undefined);
  const listening = server.listen(0, '127.0.0.1');
  await once(listening, 'listening');
  const { port }: Pick<AddressInfo, 'port'> = Object.assign({ port: 0 }, listening.address());
  const login = `${encodeURIComponent(LOGIN.user)}:${encodeURIComponent(LOGIN.pass)}`;
  return {
    mails,
    url: `${secure ? 'smtps' : 'smtp'}://${login}@127.0.0.1:${port}`,
    close: () => new Promise<void>((resolve) => server.close(() => resolve())),
  };
}
