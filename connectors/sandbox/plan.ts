import type {
  BankResource,
  PaymentCallbackName,
  PayoutCallbackName,
  RefundCallbackName,
} from '../../src/domain/banks/callback';
import {
  type BehaviorIn,
  DECLINED,
  getBehavior,
  MAGIC_AMOUNTS,
  PAYOUT_MAGIC_AMOUNTS,
  REFUND_MAGIC_AMOUNTS,
} from './magic-amounts';

export interface CallbackByResource {
  payment: { name: PaymentCallbackName; becomes: 'settled' | 'declined' };
  refund: { name: RefundCallbackName; becomes: 'settled' | 'failed' };
  payout: { name: PayoutCallbackName; becomes: 'completed' | 'failed' | 'returned' };
}

export interface PlannedCallback<R extends BankResource = BankResource> {
  name: CallbackByResource[R]['name'];
  after_ms: number;
  /** Status that the book must reach first; null if it has been reached. */
  becomes: CallbackByResource[R]['becomes'] | null;
  repeat?: true;
  /** Yields to a simulation. */
  autoplay?: true;
  code?: string;
  reason?: string;
  /** Minor units. */
  amount?: number;
  currency?: string;
}

const after_ms = 3_000;

type Payment = PlannedCallback<'payment'>;
type Refund = PlannedCallback<'refund'>;
type Payout = PlannedCallback<'payout'>;

const AUTHORIZED: Payment = { name: 'authorized', after_ms: 0, becomes: null };
const SETTLED = { name: 'settled', after_ms, becomes: 'settled' } as const;

const REVOKED = {
  name: 'failed',
  code: DECLINED,
  reason: 'The bank took the authorisation back.',
} as const;

/** Null: the usual callbacks. */
const APPROVAL_PLANS: Record<BehaviorIn<typeof MAGIC_AMOUNTS>, Payment[] | null> = {
  normal: null,
  slow_session: null,
  declined_at_open: null,
  never_settles: [AUTHORIZED],
  duplicate_out_of_order: [
    { ...SETTLED, after_ms: 0 },
    { ...AUTHORIZED, after_ms: 1_000 },
    { ...SETTLED, after_ms: 2_000, repeat: true },
    { ...AUTHORIZED, after_ms: 2_000, repeat: true },
  ],
  fails_after_approval: [AUTHORIZED, { ...REVOKED, after_ms, becomes: 'declined' }],
};

/** @param amount minor units */
export function planApproval(amount: number, autoplay: boolean): Payment[] {
  const usual = autoplay ? [AUTHORIZED, SETTLED] : [AUTHORIZED];
  return APPROVAL_PLANS[getBehavior(MAGIC_AMOUNTS, amount)] ?? usual;
}

export function planDecline(reason: string): Payment[] {
  return [{ name: 'failed', after_ms: 0, becomes: null, code: DECLINED, reason }];
}

export function planReversal(
  money: { amount: number; currency: string },
  autoplay: boolean,
): Payment[] {
  return autoplay ? [{ name: 'reversed', after_ms, becomes: null, ...money }] : [];
}

const CLOSED = {
  name: 'failed',
  code: 'account_closed',
  reason: 'The customer’s account is closed.',
} as const;

const NOT_SENT = {
  name: 'failed',
  code: 'refund_refused',
  reason: 'The bank says now that it could not send the money.',
} as const;

/** Null: the usual callback. */
const REFUND_PLANS: Record<BehaviorIn<typeof REFUND_MAGIC_AMOUNTS>, Refund[] | null> = {
  normal: null,
  answer_lost: null,
  instruction_lost: null,
  refused: [],
  silent: [],
  fails_later: [{ ...CLOSED, after_ms, becomes: 'failed' }],
  contradictory: [
    SETTLED,
    { ...SETTLED, after_ms: after_ms + 1_000, repeat: true },
    // The refund has settled by then, so this is a contradiction.
    { ...NOT_SENT, after_ms: after_ms + 2_000, becomes: 'settled' },
  ],
};

/** @param amount minor units */
export function planRefund(amount: number, autoplay: boolean): Refund[] {
  const usual = autoplay ? [{ ...SETTLED, autoplay }] : [];
  return REFUND_PLANS[getBehavior(REFUND_MAGIC_AMOUNTS, amount)] ?? usual;
}

const COMPLETED = { name: 'completed', after_ms, becomes: 'completed' } as const;

const NOT_TAKEN = {
  name: 'failed',
  code: 'scheme_rejected',
  reason: 'The scheme did not take the payout.',
} as const;

/** Scheme's own code (ISO 20022). */
const RETURNED: Payout = {
  name: 'returned',
  after_ms,
  becomes: 'returned',
  code: 'AC04',
  reason: 'Account closed',
};

/** Null: the usual callback. */
const PAYOUT_PLANS: Record<BehaviorIn<typeof PAYOUT_MAGIC_AMOUNTS>, Payout[] | null> = {
  normal: null,
  answer_lost: null,
  instruction_lost: null,
  rejected: [],
  silent: [],
  stays_submitted: [],
  fails_later: [{ ...NOT_TAKEN, after_ms, becomes: 'failed' }],
  comes_back: [COMPLETED, { ...RETURNED, after_ms: 2 * after_ms }],
  comes_straight_back: [RETURNED],
  contradictory: [
    COMPLETED,
    { ...COMPLETED, after_ms: after_ms + 1_000, repeat: true },
    // The payout has completed by then, so this is a contradiction.
    { ...NOT_TAKEN, after_ms: after_ms + 2_000, becomes: 'completed' },
    { ...RETURNED, after_ms: after_ms + 3_000 },
    { ...RETURNED, after_ms: after_ms + 4_000 },
  ],
};

/** @param amount minor units */
export function planPayout(amount: number, autoplay: boolean): Payout[] {
  const usual = autoplay ? [{ ...COMPLETED, autoplay }] : [];
  return PAYOUT_PLANS[getBehavior(PAYOUT_MAGIC_AMOUNTS, amount)] ?? usual;
}
