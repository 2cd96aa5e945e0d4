import type { Context } from 'koa';
import type { Config, Keys } from '../config';
import type { Sealer } from '../keys/seal';
import type { Logger } from '../log';
import type { Payers } from '../merchants/payers';
import type { Connectors } from '../routing';
import type { Stores } from '../store';
import type { KeyDocument } from '../store/keys';
import type { TemporalDoor } from '../temporal/door';
import type { LimitConfig } from './rate-limit';

/** Dependencies of the API, in one object. */
export interface ApiDeps {
  config: Pick<Config, 'PUBLIC_URL'> & Partial<Pick<Config, 'CRYPTO_WINDOWS'>> & LimitConfig;
  stores: Stores;
  temporal: TemporalDoor;
  connectors: Connectors;
  keys: Pick<Keys, 'pay_token' | 'fingerprint'>;
  /** Seals the details of recipients. */
  sealer: Sealer;
  /** Seals and opens the payers of payments. */
  payers: Payers;
  now: () => Date;
  log: Logger;
}

/** Facts that the middleware has found out by the time a handler runs. */
interface RequestState {
  requestId: string;
  key?: KeyDocument;
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
