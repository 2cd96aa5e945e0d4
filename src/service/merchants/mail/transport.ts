import { readFileSync } from 'node:fs';
import { createTransport } from 'nodemailer';
import {
  parseSmtpUrl,
  SMTP_URL_FILE,
  SMTP_URL_SYNTAX,
  type SmtpServer,
} from '../../../base/smtp-url';
import { refuseWorldReadable } from '../../../encryption/file-mode';

/** Limit of each wait; an attempt ends before the next one is due. */
const WAIT_MS = 10_000;
const ATTEMPT_MS = 20_000;

interface OutgoingMail {
  id: string;
  to: string;
  title: string;
  text: string;
}

/** Leaves out the server's words, which may quote an address. */
export class MailFault extends Error {
  readonly code: string;
  /** SMTP status. */
  readonly status: number | undefined;
  /** The server refuses this address for good. */
  readonly isFinal: boolean;

  constructor(code: string, status?: number, isFinal = false) {
    super(`The mail server failed: ${code}`);
    this.name = 'MailFault';
    this.code = code;
    this.status = status;
    this.isFinal = isFinal;
  }
}

/** @throws MailFault */
export type SendMail = (mail: OutgoingMail) => Promise<void>;

/**
 * Reads `SMTP_URL`, or the file that it names.
 * @returns undefined when it is empty
 * @throws Error that never quotes the URL
 */
export function readSmtpServer(text: string, allowPlainText: boolean): SmtpServer | undefined {
  if (text === '') return undefined;
  const path = SMTP_URL_FILE.test(text) ? text.replace(SMTP_URL_FILE, '') : undefined;
  if (path !== undefined) refuseWorldReadable(path);
  const server = parseSmtpUrl(path === undefined ? text : readFileSync(path, 'utf8').trim());
  if (server === undefined) throw new Error(`SMTP_URL: ${path ?? 'it'} ${SMTP_URL_SYNTAX}.`);
  return { ...server, requireTLS: server.requireTLS && !allowPlainText };
}

/** @param ca certificate of its own authority */
export function createMailer(
  { from: sender, ...server }: SmtpServer,
  { publicUrl, ca }: { publicUrl: string; ca?: Buffer },
): SendMail {
  const { hostname } = new URL(publicUrl);
  const from = sender ?? `no-reply@${hostname}`;
  const transport = createTransport({
    ...server,
    connectionTimeout: WAIT_MS,
    greetingTimeout: WAIT_MS,
    socketTimeout: WAIT_MS,
    dnsTimeout: WAIT_MS,
    disableFileAccess: true,
    disableUrlAccess: true,
    tls: { minVersion: 'TLSv1.2', ...(ca && { ca }) },
  });
  return async ({ id, to, title, text }) => {
    const message = {
      from: { name: 'Payments dashboard', address: from },
      to: { name: '', address: to },
      subject: title,
      text,
      // Equal for all attempts, so that a mailbox can drop a repeat.
      messageId: `<${id}@${hostname}>`,
      headers: { 'Auto-Submitted': 'auto-generated' },
    };
    await inTime(transport.sendMail(message).catch(throwFault));
  };
}

function throwFault(error: { code?: unknown; command?: unknown; responseCode?: unknown }): never {
  const { code, command, responseCode } = error;
  const status = typeof responseCode === 'number' ? responseCode : undefined;
  const isFinal = command === 'RCPT TO' && status !== undefined && status >= 550 && status < 560;
  throw new MailFault(typeof code === 'string' ? code : 'EUNKNOWN', status, isFinal);
}

/** A slow server must not hold up all other mail. */
async function inTime(attempt: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new MailFault('ETIME')), ATTEMPT_MS);
  });
  await Promise.race([attempt, deadline]).finally(() => clearTimeout(timer));
}
