import type { Context } from 'koa';
import type { Origin } from '../../service/audit-log';
import { SESSION_PREFIX } from '../../service/team/session-list';
import type { UserDocument } from '../../service/team/sessions';
import type { DashboardDeps } from './route';

/** Facts of a request to the dashboard, for the access log and the metrics. */
export interface Visitor {
  user_id?: string;
  /** Users of the e-mail address in a refused sign-in. */
  user_ids?: readonly string[];
  account_id?: string;
  livemode?: boolean;
  /** Prefix of its id. */
  session?: string;
  /** Attempt to prove who the user is. */
  proof?: 'password' | 'code' | 'passkey' | 'password_again';
  outcome?: 'right' | 'wrong' | 'too_many' | 'several' | 'expired';
}

export function noteVisitor(ctx: Context, facts: Visitor): void {
  ctx.state['visitor'] = { ...readVisitor(ctx), ...facts };
}

export function readVisitor(ctx: Context): Visitor {
  const state: { visitor?: Visitor } = ctx.state;
  return state.visitor ?? {};
}

export function getOrigin(
  ctx: Context,
  { clientAddress }: Pick<DashboardDeps, 'clientAddress'>,
): Origin {
  return {
    address: clientAddress(ctx.req),
    request_id: String(ctx.state['requestId'] ?? 'unknown'),
  };
}

/** Names a session by the first digits of its id, which is a hash of its secret. */
export function describeSession(id: string) {
  return { session: id.slice(0, SESSION_PREFIX) };
}

export function describeUser(
  { _id: user_id, account_id }: Pick<UserDocument, '_id' | 'account_id'>,
  sessionId: string,
) {
  return { user_id, account_id, ...describeSession(sessionId) };
}
