import { randomUUID } from 'node:crypto';
import type { ClientSession } from 'mongodb';
import { isReported, type MailSubject } from '../../../domain/merchants/mail';
import type { Change } from '../../../store/audit';
import type { MailDocument } from '../../../store/mails';
import type { UserDocument } from '../../../store/users';
import { getOrigin } from '../../../webhooks/url';
import type { ServiceDeps } from '../../access';

const DAY_MS = 86_400_000;

/** @see docs/dashboard.md#mail */
const NOTICE_MS = DAY_MS;
/** An unsent mail is counted for so long. */
const COUNTED_MS = 7 * DAY_MS;
/** No mail reaches the logins that `account create` generates. */
const MADE_UP = '.localhost';

type OutboxDeps = Pick<ServiceDeps, 'stores' | 'now'>;

interface NewMail {
  account_id: string;
  to: readonly string[];
  subject: MailSubject;
  ends_at: Date;
}

/**
 * Adds mail in the transaction of the act that it reports, so that none is lost or made up.
 * @returns false without a mail server
 */
export async function addMail(
  { stores, now }: OutboxDeps,
  { to, ...mail }: NewMail,
  session: ClientSession,
): Promise<boolean> {
  const addresses = to.filter((address) => !address.endsWith(MADE_UP));
  if (addresses.length === 0 || !(await stores.mails.isOn(session))) return false;
  const at = now();
  const expires_at = new Date(mail.ends_at.getTime() + COUNTED_MS);
  const times = { created_at: at, due_at: at, expires_at };
  const documents = addresses.map((address): MailDocument => {
    return { _id: `mail_${randomUUID()}`, to: address, ...mail, ...times, attempts: 0 };
  });
  await stores.mails.add(documents, session);
  return true;
}

export async function notifyUser(
  deps: OutboxDeps,
  { account_id, email }: Pick<UserDocument, 'account_id' | 'email'>,
  subject: MailSubject,
  session: ClientSession,
): Promise<void> {
  const ends_at = new Date(deps.now().getTime() + NOTICE_MS);
  await addMail(deps, { account_id, to: [email], subject, ends_at }, session);
}

export async function notifyOwners(
  deps: OutboxDeps,
  account_id: string,
  subject: MailSubject,
  session: ClientSession,
): Promise<void> {
  const to = await deps.stores.users.ownerAddresses(account_id, session);
  const ends_at = new Date(deps.now().getTime() + NOTICE_MS);
  await addMail(deps, { account_id, to, subject, ends_at }, session);
}

/** @param ends_at when it is of no use any more */
export async function notifyTeam(
  deps: OutboxDeps,
  account_id: string,
  subject: MailSubject,
  ends_at: Date,
  session: ClientSession,
): Promise<void> {
  const to = await deps.stores.users.teamAddresses(account_id, session);
  await addMail(deps, { account_id, to, subject, ends_at }, session);
}

const HOUR_MS = 3_600_000;
/** A key that changes an endpoint in a loop must fill no mailbox. */
const REPORTS_AN_HOUR = 10;

/** Notifies the owners of a change on live or of the team, and a user who is no owner any more. */
export async function notifyOfChange(
  deps: OutboxDeps,
  { act, account_id, livemode, target, before, after }: Change,
  by: string,
  session: ClientSession,
): Promise<void> {
  if (!isReported(act) || account_id === null || livemode === false) return;
  const { stores, now } = deps;
  const since = new Date(now().getTime() - HOUR_MS).toISOString();
  const place = { account_id, livemode: livemode ?? undefined };
  const filter = { ...place, act, since, limit: REPORTS_AN_HOUR + 1 };
  if ((await stores.auditLog.list(filter, session)).length > REPORTS_AN_HOUR) return;
  const { url, last4, email, role } = { ...before, ...after };
  const host = typeof url === 'string' ? getOrigin(url) : undefined;
  const about = [target, host, last4, email, role].filter((fact) => typeof fact === 'string');
  const subject = { kind: 'changed', act, about: about.join(', '), by } as const;
  const owners = await stores.users.ownerAddresses(account_id, session);
  const former = before?.['role'] === 'owner' && typeof email === 'string' ? [email] : [];
  const ends_at = new Date(now().getTime() + NOTICE_MS);
  const to = [...new Set([...owners, ...former])];
  await addMail(deps, { account_id, to, subject, ends_at }, session);
}
