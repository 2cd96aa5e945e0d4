import type { Context } from 'koa';
import type { Config } from '../config';
import type { ErrorCode } from '../domain/errors';
import type { Environment } from '../domain/task-queues';
import type { Rings } from '../keys/ring';
import type { Sealer } from '../keys/seal';
import type { Logger } from '../log';
import type { Payers } from '../merchants/payers';
import type { Connectors } from '../routing';
import type { Stores } from '../store';
import type { KeyDocument } from '../store/keys';
import type { TemporalDoor } from '../temporal/door';
import { addressOf } from './address';
import type { LimitConfig } from './rate-limit';

/** Dependencies of the API, in one object. */
export interface ApiDeps {
  config: Pick<Config, 'PUBLIC_URL'> &
    Partial<Pick<Config, 'CRYPTO_WINDOWS' | 'TRUSTED_PROXIES'>> &
    LimitConfig;
  stores: Stores;
  temporal: TemporalDoor;
  connectors: Connectors;
  /** Keys of links, and of fingerprints of requests. */
  keys: Pick<Rings, 'pay_token' | 'fingerprint'>;
  /** Seals what the API keeps, and opens it. */
  sealer: Sealer;
  /** Seal the details of recipients, where these have rings of their own; they open nothing. */
  recipientSealers?: Record<Environment, Pick<Sealer, 'seal' | 'kidOf'>>;
  /** Seals and opens the payers of payments. */
  payers: Payers;
  now: () => Date;
  log: Logger;
}

/** Facts that the middleware has found out by the time a handler runs. */
interface RequestState {
  requestId: string;
  /** Network address of the caller. */
  address: string;
  key?: KeyDocument;
  /** Code of the error that was answered. */
  code?: ErrorCode;
}

/** Key of the caller; undefined until it is authenticated. */
export function keyOf(ctx: Context): KeyDocument | undefined {
  const state: Partial<RequestState> = ctx.state;
  return state.key;
}

/** Id of the request, which answers, logs, workflows and activities carry. */
export function requestIdOf(ctx: Context): string {
  const state: Partial<RequestState> = ctx.state;
  return state.requestId ?? 'unknown';
}

/** Facts of a request that its line in the log holds. */
export function factsOf(ctx: Context) {
  const state: Partial<RequestState> = ctx.state;
  const { _id: key_id, account_id, livemode } = state.key ?? {};
  return { key_id, account_id, livemode, code: state.code, address: addressOf(ctx) };
}
