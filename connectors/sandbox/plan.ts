import { assertNever } from '../../src/domain/assert';
import type {
  BankResource,
  PaymentCallbackName,
  PayoutCallbackName,
  RefundCallbackName,
} from '../../src/domain/callback/callback';
import { DECLINED } from './declines';
import { getBehavior, getPayoutBehavior, getRefundBehavior } from './magic-amounts';

export interface CallbackByResource {
  payment: { name: PaymentCallbackName; becomes: 'settled' | 'declined' };
  refund: { name: RefundCallbackName; becomes: 'settled' | 'failed' };
  payout: { name: PayoutCallbackName; becomes: 'completed' | 'failed' | 'returned' };
}

export interface PlannedCallback<R extends BankResource = BankResource> {
  name: CallbackByResource[R]['name'];
  after_ms: number;
  /** Status that the bank's book must reach first; null if it has been reached. */
  becomes: CallbackByResource[R]['becomes'] | null;
  repeat?: true;
  /** Whether autoplay planned it, so that a simulation takes precedence. */
  autoplay?: true;
  code?: string;
  reason?: string;
}

const FOLLOWS_AFTER_MS = 3_000;

/** Plans the callbacks after the customer's approval. @param amount minor units */
export function planApproval(amount: number, autoplay: boolean): PlannedCallback<'payment'>[] {
  const authorized: PlannedCallback<'payment'> = { name: 'authorized', after_ms: 0, becomes: null };
  const settled: PlannedCallback<'payment'> = {
    name: 'settled',
    after_ms: FOLLOWS_AFTER_MS,
    becomes: 'settled',
  };
  const behavior = getBehavior(amount);
  switch (behavior) {
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
      const after_ms = FOLLOWS_AFTER_MS;
      return [
        authorized,
        { name: 'failed', after_ms, becomes: 'declined', code: DECLINED, reason },
      ];
    }
    case 'normal':
    case 'slow_session':
    case 'declined_at_open':
      return autoplay ? [authorized, settled] : [authorized];
    default:
      return assertNever(behavior);
  }
}

export function planDecline(reason: string): PlannedCallback<'payment'>[] {
  return [{ name: 'failed', after_ms: 0, becomes: null, code: DECLINED, reason }];
}

/** Plans the callback after the return of late funds; without autoplay an operator sends it. */
export function planReversal(autoplay: boolean): PlannedCallback<'payment'>[] {
  return autoplay ? [{ name: 'reversed', after_ms: FOLLOWS_AFTER_MS, becomes: null }] : [];
}

/** Plans the callbacks after an accepted refund. @param amount minor units */
export function planRefund(amount: number, autoplay: boolean): PlannedCallback<'refund'>[] {
  const after_ms = FOLLOWS_AFTER_MS;
  const settled: PlannedCallback<'refund'> = { name: 'settled', after_ms, becomes: 'settled' };
  const behavior = getRefundBehavior(amount);
  switch (behavior) {
    case 'refused':
    case 'silent':
      return [];
    case 'fails_later': {
      const reason = 'The customer’s account is closed.';
      return [{ name: 'failed', after_ms, becomes: 'failed', code: 'account_closed', reason }];
    }
    case 'contradictory': {
      const reason = 'The bank says now that it could not send the money.';
      const refusal = { code: 'refund_refused', reason };
      return [
        settled,
        { ...settled, after_ms: after_ms + 1_000, repeat: true },
        // The refund has settled by then, so this is a contradiction.
        { name: 'failed', after_ms: after_ms + 2_000, becomes: 'settled', ...refusal },
      ];
    }
    case 'normal':
    case 'answer_lost':
    case 'instruction_lost':
      return autoplay ? [{ ...settled, autoplay }] : [];
    default:
      return assertNever(behavior);
  }
}

/** Plans the callbacks after a sent payout. @param amount minor units */
export function planPayout(amount: number, autoplay: boolean): PlannedCallback<'payout'>[] {
  const behavior = getPayoutBehavior(amount);
  switch (behavior) {
    case 'rejected':
    case 'silent':
    case 'stays_submitted':
      return [];
    case 'fails_later':
      return [{ ...NOT_TAKEN, after_ms: FOLLOWS_AFTER_MS, becomes: 'failed' }];
    case 'comes_back':
      return [COMPLETED, { ...RETURNED, after_ms: 2 * FOLLOWS_AFTER_MS }];
    case 'comes_straight_back':
      return [RETURNED];
    case 'contradictory':
      return [
        COMPLETED,
        { ...COMPLETED, after_ms: FOLLOWS_AFTER_MS + 1_000, repeat: true },
        // The payout has completed by then, so this is a contradiction.
        { ...NOT_TAKEN, after_ms: FOLLOWS_AFTER_MS + 2_000, becomes: 'completed' },
        { ...RETURNED, after_ms: FOLLOWS_AFTER_MS + 3_000 },
        { ...RETURNED, after_ms: FOLLOWS_AFTER_MS + 4_000 },
      ];
    case 'normal':
    case 'answer_lost':
    case 'instruction_lost':
      return autoplay ? [{ ...COMPLETED, autoplay }] : [];
    default:
      return assertNever(behavior);
  }
}

const COMPLETED: PlannedCallback<'payout'> = {
  name: 'completed',
  after_ms: FOLLOWS_AFTER_MS,
  becomes: 'completed',
};

const NOT_TAKEN = {
  name: 'failed',
  code: 'scheme_rejected',
  reason: 'The scheme did not take the payout.',
} as const;

/** Return of a payout, with the scheme's own code (ISO 20022). */
const RETURNED: PlannedCallback<'payout'> = {
  name: 'returned',
  after_ms: FOLLOWS_AFTER_MS,
  becomes: 'returned',
  code: 'AC04',
  reason: 'Account closed',
};
