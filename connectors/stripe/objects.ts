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
export type RefundHead = z.infer<typeof RefundHead>;

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

/** Name of an object, which says whether it may concern us. */
export const Hint = z.object({ id: Id.optional(), object: z.string(), metadata: Metadata });
export type Hint = z.infer<typeof Hint>;

/** Row of a list of balance transactions that expands what they are of. */
export const Booked = z.object({ source: Hint.nullish() });

/** Fields by which a list is read on, whatever else of it fits. */
export const Row = z.looseObject({ id: z.string(), created: z.int() });
export type Row = z.infer<typeof Row>;

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

/** Paths of the objects that events are about, with the fields that a request expands. */
export const PLACES: Readonly<Record<string, { path: string; expand: string[] }>> = {
  'checkout.session': {
    path: 'checkout/sessions',
    expand: ['payment_intent.latest_charge.balance_transaction'],
  },
  payment_intent: { path: 'payment_intents', expand: ['latest_charge.balance_transaction'] },
  charge: { path: 'charges', expand: ['balance_transaction'] },
  dispute: { path: 'disputes', expand: ['charge.balance_transaction', 'balance_transactions'] },
  refund: { path: 'refunds', expand: ['balance_transaction', 'failure_balance_transaction'] },
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

/** Refusal of Stripe, of which only what its documentation lists is read. */
export const Problem = z.object({
  error: z.object({
    type: z.string(),
    code: z.string().optional(),
  }),
});
export type Problem = z.infer<typeof Problem>;
