import type { Context } from 'koa';
import type { Config } from '../config';
import { readVisitor } from '../dashboard/frame/visitor';
import type { ErrorCode } from '../domain/errors';
import type { ApiKey } from '../service/access';
import type { MerchantDeps } from '../service/deps';
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

export function getKey(ctx: Context): ApiKey | undefined {
  const state: Partial<RequestState> = ctx.state;
  return state.key;
}

export function getSentBody(ctx: Context): SentBody | undefined {
  const state: Partial<RequestState> = ctx.state;
  return state.sent;
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
  const state: Partial<RequestState> = ctx.state;
  return state.requestId ?? 'unknown';
}

export function getAddress(ctx: Context): string {
  const state: Partial<RequestState> = ctx.state;
  return state.address ?? ctx.ip;
}

export function getLogFields(ctx: Context) {
  const state: Partial<RequestState> = ctx.state;
  const { _id: key_id, account_id, livemode } = state.key ?? {};
  const { code } = state;
  return { key_id, account_id, livemode, ...readVisitor(ctx), code, address: getAddress(ctx) };
}
