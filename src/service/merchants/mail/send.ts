import { randomBytes } from 'node:crypto';
import type { Logger } from '../../../base/log';
import { writeMail } from '../../../domain/account/mail';
import type { MailDocument } from '../../../store/mails';
import type { ServiceDeps } from '../../deps';
import { hashToken } from '../team/members';
import { MailFault, type SendMail } from './transport';

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
