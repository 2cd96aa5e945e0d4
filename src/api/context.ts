import type { Context } from 'koa';
import type { Config } from '../config';
import { readVisitor } from '../dashboard/frame/context';
import type { ErrorCode } from '../domain/errors';
import type { ApiKey, MerchantDeps } from '../service/access';
import type { MerchantEndpointDeps } from '../service/events/endpoints/merchant';
import type { SentBody } from '../service/events/requests';

export type LimitConfig = Pick<
  Config,
  | 'RATE_LIMIT_PER_SECOND'
  | 'ACCOUNT_LIMIT_PER_SECOND'
  | 'CREATE_LIMIT_PER_SECOND'
  | 'SANDBOX_CREATE_LIMIT_PER_SECOND'
  | 'CREATES_AT_ONCE'
>;

export interface ApiDeps extends MerchantEndpointDeps {
  config: MerchantDeps['config'] &
    Partial<Pick<Config, 'SECOND_FACTOR' | 'TRUSTED_PROXIES'>> &
    LimitConfig;
}

interface RequestState {
  requestId: string;
  address: string;
  key?: ApiKey;
  code?: ErrorCode;
  /** Undefined until it is read. */
  sent?: SentBody;
}

const getState = (ctx: Context): Partial<RequestState> => ctx.state;

export function getKey(ctx: Context): ApiKey | undefined {
  return getState(ctx).key;
}

export function getSentBody(ctx: Context): SentBody | undefined {
  return getState(ctx).sent;
}

export function setSentBody(ctx: Context, sent: SentBody): void {
  ctx.state['sent'] = sent;
}

/** Route with placeholders; undefined when none matches. */
export function getRoute(ctx: Context): string | undefined {
  const route: unknown = '_matchedRoute' in ctx ? ctx._matchedRoute : undefined;
  return typeof route === 'string' ? route : undefined;
}

export function getRequestId(ctx: Context): string {
  return getState(ctx).requestId ?? 'unknown';
}

export function getAddress(ctx: Context): string {
  return getState(ctx).address ?? ctx.ip;
}

export function getLogFields(ctx: Context) {
  const { key, code } = getState(ctx);
  const { _id: key_id, account_id, livemode } = key ?? {};
  return { key_id, account_id, livemode, ...readVisitor(ctx), code, address: getAddress(ctx) };
}
