import { inTransaction } from '../../../base/mongo';
import { toCustomerNetwork } from '../../../base/networks';
import type { SessionDocument } from '../../../store/sessions';
import type { UserDocument } from '../../../store/users';
import type { ServiceDeps, WriteDeps } from '../../deps';

type UserRef = Pick<UserDocument, '_id' | 'account_id'>;

/** Last used first. */
export async function listSessions(
  { stores, now }: Pick<ServiceDeps, 'stores' | 'now'>,
  user_id: string,
) {
  return (await stores.sessions.listSignedIn(user_id, now())).map(presentSession);
}

export const UNKNOWN_BROWSER = 'Unknown browser';

export type ListedSession = ReturnType<typeof presentSession>;

function presentSession(session: SessionDocument) {
  const { _id: id, created_at, seen_at, browser, address } = session;
  return {
    ...{ id, created_at, seen_at, browser: browser ?? UNKNOWN_BROWSER },
    network: address === undefined ? null : toCustomerNetwork(address),
  };
}

/** @returns false when there is no such session */
export async function endOtherSession(
  { mongo, stores, audit }: WriteDeps,
  { _id: user_id, account_id }: UserRef,
  id: string,
): Promise<boolean> {
  return await inTransaction(mongo, async (session) => {
    const ended = await stores.sessions.endOwn(id, user_id, session);
    if (ended === null) return false;
    const { browser, network } = presentSession(ended);
    const before = { session: id.slice(0, SESSION_PREFIX), browser, network };
    const change = { account_id, livemode: null, target: user_id, before };
    await audit({ act: 'user.session_ended', ...change }, session);
    return true;
  });
}

/** Names a session in logs and the audit log. */
export const SESSION_PREFIX = 12;

/** @returns how many have ended */
export async function endOtherSessions(
  { mongo, stores, audit }: WriteDeps,
  { _id: user_id, account_id }: UserRef,
  keep: string,
): Promise<number> {
  return await inTransaction(mongo, async (session) => {
    const { deletedCount } = await stores.sessions.endAll(user_id, session, keep);
    if (deletedCount === 0) return 0;
    const before = { sessions: deletedCount };
    const change = { account_id, livemode: null, target: user_id, before };
    await audit({ act: 'user.other_sessions_ended', ...change }, session);
    return deletedCount;
  });
}
