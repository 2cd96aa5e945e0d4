import { z } from 'zod';

/** Objects of Stripe, with the fields that are read. Those of other systems must fit, too. */

const Id = z.string().min(1).max(255);
/** Time in Unix seconds that a date can have. */
const Seconds = z.int().max(253_402_300_799);
const Minor = z.int();
const Metadata = z.record(z.string(), z.string()).nullish();

export const BalanceTransaction = z.object({
  id: Id,
  /** Before the fee. */
  amount: Minor,
  fee: Minor,
  net: Minor,
  currency: z.string(),
  created: Seconds,
  available_on: Seconds,
  /** Only `payments` is the balance that statements are of. */
  balance_type: z.string(),
  source: Id.nullish(),
  type: z.string(),
});
export type BalanceTransaction = z.infer<typeof BalanceTransaction>;

export const Charge = z.object({
  id: Id,
  object: z.literal('charge'),
  livemode: z.boolean(),
  status: z.string(),
  captured: z.boolean(),
  created: Seconds,
  metadata: Metadata,
  balance_transaction: BalanceTransaction.nullish(),
  payment_method_details: z
    .looseObject({ type: z.string(), card: z.object({ brand: z.string().nullish() }).nullish() })
    .nullish(),
});
export type Charge = z.infer<typeof Charge>;

export const PaymentIntent = z.object({
  id: Id,
  object: z.literal('payment_intent'),
  livemode: z.boolean(),
  status: z.string(),
  amount_received: Minor,
  currency: z.string(),
  created: Seconds,
  canceled_at: Seconds.nullish(),
  cancellation_reason: z.string().nullish(),
  metadata: Metadata,
  latest_charge: Charge.nullish(),
  last_payment_error: z.object({ code: z.string().nullish() }).nullish(),
});
export type PaymentIntent = z.infer<typeof PaymentIntent>;

export const Session = z.object({
  id: Id,
  object: z.literal('checkout.session'),
  livemode: z.boolean(),
  status: z.string().nullish(),
  client_reference_id: z.string().nullish(),
  metadata: Metadata,
  created: Seconds,
  expires_at: Seconds,
  url: z.string().nullish(),
  payment_intent: PaymentIntent.nullish(),
});
export type Session = z.infer<typeof Session>;

/** Session as an answer to its creation and in lists, which expand nothing. */
export const SessionHead = Session.omit({ payment_intent: true });

export const Refund = z.object({
  id: Id,
  object: z.literal('refund'),
  amount: Minor,
  currency: z.string(),
  created: Seconds,
  status: z.string().nullish(),
  failure_reason: z.string().nullish(),
  metadata: Metadata,
  balance_transaction: BalanceTransaction.nullish(),
  failure_balance_transaction: BalanceTransaction.nullish(),
});
export type Refund = z.infer<typeof Refund>;

/** Refund as an answer to its creation and in lists. */
export const RefundHead = Refund.omit({
  balance_transaction: true,
  failure_balance_transaction: true,
});

const Amounts = z.array(z.object({ amount: Minor, currency: z.string() }));
export const Balance = z.object({ available: Amounts, pending: Amounts });

export const Head = z.object({ id: Id });
export const Dispute = z.object({
  id: Id,
  object: z.literal('dispute'),
  livemode: z.boolean(),
  status: z.string(),
  reason: z.string(),
  created: Seconds,
  metadata: Metadata,
  charge: Charge,
  balance_transactions: z.array(BalanceTransaction),
  evidence_details: z.object({
    due_by: Seconds.nullish(),
    past_due: z.boolean(),
    submission_count: z.int(),
  }),
});
export type Dispute = z.infer<typeof Dispute>;

/** Dispute as an answer to evidence. */
export const DisputeHead = Dispute.omit({ charge: true, balance_transactions: true });
export type DisputeHead = z.infer<typeof DisputeHead>;

/** Statuses of an open dispute, in their order; those of an inquiry are a warning. */
export const OPEN_DISPUTES: Readonly<Record<string, 'needs_response' | 'under_review'>> = {
  warning_needs_response: 'needs_response',
  warning_under_review: 'under_review',
  needs_response: 'needs_response',
  under_review: 'under_review',
};

export const CLOSED_DISPUTES: Readonly<Record<string, 'dispute_won' | 'dispute_lost'>> = {
  won: 'dispute_won',
  warning_closed: 'dispute_won',
  prevented: 'dispute_won',
  lost: 'dispute_lost',
};

/** Name of an object, which says whether it may concern us. */
export const Hint = z.object({ id: Id.optional(), object: z.string(), metadata: Metadata });
export type Hint = z.infer<typeof Hint>;

/** Hint that something has changed: what, is read from Stripe. */
export const Event = z.object({
  id: Id,
  object: z.literal('event'),
  type: z.string(),
  livemode: z.boolean(),
  created: Seconds,
  data: z.object({ object: Hint }),
});
export type Event = z.infer<typeof Event>;

/** Fields that a request expands for the objects above. */
export const EXPAND = {
  session: ['payment_intent.latest_charge.balance_transaction'],
  payment_intent: ['latest_charge.balance_transaction'],
  charge: ['balance_transaction'],
  dispute: ['charge.balance_transaction', 'balance_transactions'],
  refund: ['balance_transaction', 'failure_balance_transaction'],
};

export const Payout = z.object({
  id: Id,
  object: z.literal('payout'),
  amount: Minor,
  automatic: z.boolean(),
  arrival_date: Seconds,
  balance_transaction: Id.nullish(),
  reconciliation_status: z.string(),
  statement_descriptor: z.string().nullish(),
  trace_id: z.object({ value: z.string().nullish() }).nullish(),
});
export type Payout = z.infer<typeof Payout>;
