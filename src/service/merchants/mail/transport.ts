import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createTransport } from 'nodemailer';
import type { Logger } from '../../../base/log';
import {
  parseSmtpUrl,
  SMTP_URL_FILE,
  SMTP_URL_SYNTAX,
  type SmtpServer,
} from '../../../base/smtp-url';
import { writeMail } from '../../../domain/merchants/mail';
import { refuseWorldReadable } from '../../../encryption/key-file';
import type { MailDocument } from '../../../store/mails';
import type { ServiceDeps } from '../../access';
import { hashToken } from '../team/members';

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
class MailFault extends Error {
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
    // A slow server must not hold up all other mail.
    let timer: NodeJS.Timeout | undefined;
    const deadline = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new MailFault('ETIME')), ATTEMPT_MS);
    });
    const attempt = transport.sendMail(message).catch((error: Record<string, unknown>) => {
      const { code, command, responseCode } = error;
      const status = typeof responseCode === 'number' ? responseCode : undefined;
      const isRefused = command === 'RCPT TO' && status !== undefined;
      const isFinal = isRefused && status >= 550 && status < 560;
      throw new MailFault(typeof code === 'string' ? code : 'EUNKNOWN', status, isFinal);
    });
    await Promise.race([attempt, deadline]).finally(() => clearTimeout(timer));
  };
}

const FIRST_DELAY_MS = 60_000;
const DELAY_MS_MAX = 3_600_000;

interface SendDeps extends Pick<ServiceDeps, 'stores' | 'now'> {
  send: SendMail;
  publicUrl: string;
  log: Pick<Logger, 'info' | 'warn'>;
}

/**
 * Fixes the next attempt before this one, so that a killed worker loses none, and repeats at most
 * the one in progress.
 * @returns false when no mail was due
 */
export async function sendNextMail(deps: SendDeps): Promise<boolean> {
  const { stores, now, log } = deps;
  const at = now();
  const mail = await stores.mails.firstDue(at);
  if (mail === null) return false;
  const { _id, account_id, attempts } = mail;
  if (mail.ends_at <= at) {
    await stores.mails.giveUp(_id);
    log.warn({ account_id, attempt: attempts }, 'mail given up');
    return true;
  }
  const delay = Math.min(FIRST_DELAY_MS * 2 ** attempts, DELAY_MS_MAX);
  if (!(await stores.mails.take(mail, new Date(at.getTime() + delay)))) return true;
  try {
    if (await trySend(deps, mail)) log.info({ account_id, attempt: attempts + 1 }, 'mail sent');
    await stores.mails.remove(_id);
  } catch (error) {
    if (!(error instanceof MailFault)) throw error;
    const { code, status, isFinal } = error;
    if (isFinal) await stores.mails.giveUp(_id);
    log.warn({ account_id, attempt: attempts + 1, code, status }, 'mail not sent');
  }
  return true;
}

/** @returns false when there is nothing to report any more */
async function trySend(
  { stores, now, send, publicUrl }: SendDeps,
  { _id: id, account_id, to, subject, created_at }: MailDocument,
): Promise<boolean> {
  const account = await stores.accounts.get(account_id);
  if (account === null) return false;
  let link: string | undefined;
  if (subject.kind === 'invitation') {
    const token = randomBytes(32).toString('base64url');
    // Stored only as a hash; no link if the invitation is used or withdrawn.
    if (!(await stores.invitations.addLink(subject.invitation, hashToken(token), now())))
      return false;
    link = `${publicUrl}/dashboard/invitation/${token}`;
  }
  const facts = { subject, merchant: account.name, at: created_at.toISOString(), publicUrl, link };
  await send({ id, to, ...writeMail(facts) });
  return true;
}
