import type { PaymentCallbackName } from '../../src/domain/callback';
import { DECLINED } from './declines';
import { behaviourOf } from './magic-amounts';

/** What takes place at the bank when the callback falls due. */
export type Becomes = 'settled' | 'declined';

export interface PlannedCallback {
  name: PaymentCallbackName;
  after_ms: number;
  /** The session must still become this for the callback to be sent; null: it is a fact already. */
  becomes: Becomes | null;
  /** Sent once more, with the same callback id. */
  repeat?: true;
  code?: string;
  reason?: string;
}

export const SETTLES_AFTER_MS = 3_000;

/**
 * The callbacks that follow the customer's approval. Pure.
 * @param amount minor units
 * @param autoplay whether a settlement follows by itself
 */
export function planApproval(amount: number, autoplay: boolean): PlannedCallback[] {
  const authorized: PlannedCallback = { name: 'authorized', after_ms: 0, becomes: null };
  const settled: PlannedCallback = {
    name: 'settled',
    after_ms: SETTLES_AFTER_MS,
    becomes: 'settled',
  };
  switch (behaviourOf(amount)) {
    case 'never_settles':
      return [authorized];
    case 'duplicate_out_of_order':
      return [
        { ...settled, after_ms: 0 },
        { ...authorized, after_ms: 1_000 },
        { ...settled, after_ms: 2_000, repeat: true },
        { ...authorized, after_ms: 2_000, repeat: true },
      ];
    case 'fails_after_approval': {
      const reason = 'The bank took the authorisation back.';
      const after_ms = SETTLES_AFTER_MS;
      return [
        authorized,
        { name: 'failed', after_ms, becomes: 'declined', code: DECLINED, reason },
      ];
    }
    case 'normal':
    case 'slow_session':
    case 'declined_at_open':
      return autoplay ? [authorized, settled] : [authorized];
  }
}

/** The callback that follows the customer's refusal. */
export function planDecline(reason: string): PlannedCallback[] {
  return [{ name: 'failed', after_ms: 0, becomes: null, code: DECLINED, reason }];
}
