import {
  CALLBACK_RESOURCES,
  type CallbackName,
  type CallbackResource,
  PAYMENT_CALLBACKS,
  PAYOUT_CALLBACKS,
  REFUND_CALLBACKS,
} from './domain/callback';
import { CRYPTO_PAYMENT_CALLBACKS, CRYPTO_SETTLEMENT_CALLBACKS } from './domain/crypto-callback';
import {
  CRYPTO_PAYMENT_ACTS,
  CRYPTO_PAYMENT_IN_FLIGHT,
  type CryptoPaymentAct,
  cryptoPaymentWorkflowId,
} from './domain/crypto-payment';
import {
  CRYPTO_SETTLEMENT_ACTS,
  CRYPTO_SETTLEMENT_IN_FLIGHT,
  cryptoSettlementWorkflowId,
} from './domain/crypto-settlement';
import type { CryptoPaymentResume, CryptoSettlementResume } from './domain/crypto-workflow';
import {
  PAYMENT_ACTS,
  PAYMENT_IN_FLIGHT,
  type PaymentAct,
  paymentWorkflowId,
} from './domain/payment';
import type { PaymentResume } from './domain/payment-workflow';
import { PAYOUT_ACTS, PAYOUT_IN_FLIGHT, payoutWorkflowId } from './domain/payout';
import type { PayoutResume } from './domain/payout-workflow';
import { REFUND_ACTS, REFUND_IN_FLIGHT, refundWorkflowId } from './domain/refund';
import type { RefundResume } from './domain/refund-workflow';
import type { Stores } from './store';
import type { CryptoPaymentDocument } from './store/crypto-payments';
import type { CryptoSettlementDocument } from './store/crypto-settlements';
import type { PaymentDocument } from './store/payments';
import type { PayoutDocument } from './store/payouts';
import type { RefundDocument } from './store/refunds';

/** Resource whose life is a workflow, as it is stored. */
export type Resource =
  | PaymentDocument
  | RefundDocument
  | PayoutDocument
  | CryptoPaymentDocument
  | CryptoSettlementDocument;
export type ResourceStores = Pick<
  Stores,
  'payments' | 'refunds' | 'payouts' | 'crypto_payments' | 'crypto_settlements'
>;

/** Facts of one kind of resource that the callbacks, the command line and banks go by. */
interface Lifecycle {
  workflowType: string;
  workflowId: (id: string) => string;
  /** Input that starts the workflow again; it loads the resource before anything else. */
  resume: (id: string, request_id: string) => object;
  /** Signals of the workflow: what a bank can report. */
  callbacks: readonly CallbackName[];
  /** Updates of the workflow: what an operator can do. */
  acts: readonly string[];
  /** Acts that the workflow takes once it has ended; for any other a final state is never left. */
  actsWhenEnded: readonly string[];
  /** MongoDB's collection. */
  collection: string;
  get: (stores: ResourceStores, id: string) => Promise<Resource | null>;
  /** Page of those in flight, by id. */
  page: (stores: ResourceStores, after: string, limit: number) => Promise<Resource[]>;
  /** State that lists show from the start: nearly all are first written in it. */
  opening: Resource['status'];
  /** States in which a workflow runs. */
  inFlight: readonly string[];
}

/** Registry of the resources that have a workflow: read wherever each kind is treated alike. */
export const LIFECYCLES: Record<CallbackResource, Lifecycle> = {
  payment: {
    workflowType: 'payment',
    workflowId: paymentWorkflowId,
    resume: (payment_id, request_id): PaymentResume => ({ payment_id, resume: true, request_id }),
    callbacks: PAYMENT_CALLBACKS,
    acts: PAYMENT_ACTS,
    // Settled money may be taken back, and late money sent back.
    actsWhenEnded: ['claw_back', 'mark_reversed'] satisfies PaymentAct[],
    collection: 'payments',
    get: ({ payments }, id) => payments.get(id),
    page: ({ payments }, after, limit) => payments.inFlight(after, limit).toArray(),
    opening: 'awaiting_customer',
    inFlight: PAYMENT_IN_FLIGHT,
  },
  refund: {
    workflowType: 'refund',
    workflowId: refundWorkflowId,
    resume: (refund_id, request_id): RefundResume => ({ refund_id, resume: true, request_id }),
    callbacks: REFUND_CALLBACKS,
    acts: REFUND_ACTS,
    actsWhenEnded: [],
    collection: 'refunds',
    get: ({ refunds }, id) => refunds.get(id),
    page: ({ refunds }, after, limit) => refunds.inFlight(after, limit).toArray(),
    opening: 'processing',
    inFlight: REFUND_IN_FLIGHT,
  },
  payout: {
    workflowType: 'payout',
    workflowId: payoutWorkflowId,
    resume: (payout_id, request_id): PayoutResume => ({ payout_id, resume: true, request_id }),
    callbacks: PAYOUT_CALLBACKS,
    acts: PAYOUT_ACTS,
    // A completed payout may still come back.
    actsWhenEnded: PAYOUT_ACTS,
    collection: 'payouts',
    get: ({ payouts }, id) => payouts.get(id),
    page: ({ payouts }, after, limit) => payouts.inFlight(after, limit).toArray(),
    opening: 'created',
    inFlight: PAYOUT_IN_FLIGHT,
  },
  crypto_payment: {
    workflowType: 'cryptoPayment',
    workflowId: cryptoPaymentWorkflowId,
    resume: (crypto_payment_id, request_id): CryptoPaymentResume => ({
      crypto_payment_id,
      resume: true,
      request_id,
    }),
    callbacks: CRYPTO_PAYMENT_CALLBACKS,
    acts: CRYPTO_PAYMENT_ACTS,
    // Deposits may come after the end, and wait for an operator then.
    actsWhenEnded: ['release', 'reject', 'credit_late'] satisfies CryptoPaymentAct[],
    collection: 'crypto_payments',
    get: ({ crypto_payments }, id) => crypto_payments.get(id),
    page: ({ crypto_payments }, after, limit) => crypto_payments.inFlight(after, limit).toArray(),
    opening: 'awaiting_deposit',
    inFlight: CRYPTO_PAYMENT_IN_FLIGHT,
  },
  crypto_settlement: {
    workflowType: 'cryptoSettlement',
    workflowId: cryptoSettlementWorkflowId,
    resume: (crypto_settlement_id, request_id): CryptoSettlementResume => ({
      crypto_settlement_id,
      resume: true,
      request_id,
    }),
    callbacks: CRYPTO_SETTLEMENT_CALLBACKS,
    acts: CRYPTO_SETTLEMENT_ACTS,
    actsWhenEnded: [],
    collection: 'crypto_settlements',
    get: ({ crypto_settlements }, id) => crypto_settlements.get(id),
    page: ({ crypto_settlements }, after, limit) =>
      crypto_settlements.inFlight(after, limit).toArray(),
    opening: 'pending',
    inFlight: CRYPTO_SETTLEMENT_IN_FLIGHT,
  },
};

/** Kinds of resource, in the order of lists for operators. */
export const KINDS: readonly CallbackResource[] = CALLBACK_RESOURCES;

/** Whether a resource in this state has a workflow that runs. */
export function isInFlight(kind: CallbackResource, status: string): boolean {
  return LIFECYCLES[kind].inFlight.includes(status);
}
