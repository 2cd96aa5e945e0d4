import {
  CALLBACK_RESOURCES,
  type CallbackName,
  type CallbackResource,
  PAYMENT_CALLBACKS,
  PAYOUT_CALLBACKS,
  REFUND_CALLBACKS,
} from './callback/callback';
import { CRYPTO_PAYMENT_CALLBACKS, CRYPTO_SETTLEMENT_CALLBACKS } from './crypto/callback';
import {
  CRYPTO_PAYMENT_ACTS,
  CRYPTO_PAYMENT_IN_FLIGHT,
  type CryptoPaymentAct,
  cryptoPaymentWorkflowId,
} from './crypto/payment';
import {
  CRYPTO_SETTLEMENT_ACTS,
  CRYPTO_SETTLEMENT_IN_FLIGHT,
  cryptoSettlementWorkflowId,
} from './crypto/settlement';
import type { CryptoPaymentResume, CryptoSettlementResume } from './crypto/workflow';
import {
  PAYMENT_ACTS,
  PAYMENT_IN_FLIGHT,
  type PaymentAct,
  paymentWorkflowId,
} from './payment/payment';
import type { PaymentResume } from './payment/workflow';
import { PAYOUT_ACTS, PAYOUT_IN_FLIGHT, payoutWorkflowId } from './payout/payout';
import type { PayoutResume } from './payout/workflow';
import { REFUND_ACTS, REFUND_IN_FLIGHT, refundWorkflowId } from './refund/refund';
import type { RefundResume } from './refund/workflow';
import { createCryptoPayment, createCryptoSettlement } from './wire/crypto';
import { createPayment } from './wire/payments';
import { createPayout } from './wire/payouts';
import { createRefund } from './wire/refunds';

/** Facts of one kind of resource, as callbacks, the command line, banks and checks need them. */
export interface ResourceKind {
  /** Its activities are named by it. @see listStateSteps */
  workflowType: string;
  workflowId: (id: string) => string;
  /** Operation that creates it, of an idempotency key. */
  operation: string;
  /** Input that starts the workflow again; it loads the resource before anything else. */
  resume: (id: string, request_id: string) => object;
  /** Signals of the workflow: what a bank can report. */
  callbacks: readonly CallbackName[];
  /** Updates of the workflow: what an operator can do. */
  acts: readonly string[];
  /** Acts that the workflow takes once it has ended; for any other a final state is never left. */
  actsWhenEnded: readonly string[];
  /** MongoDB's collection. */
  collection: 'payments' | 'refunds' | 'payouts' | 'crypto_payments' | 'crypto_settlements';
  /** State that lists show from the start: nearly all are first written in it. */
  opening: string;
  /** States in which a workflow runs. */
  inFlight: readonly string[];
}

/** Registry of the resources that have a workflow: its pure part. @see src/lifecycles.ts */
export const RESOURCES: Record<CallbackResource, ResourceKind> = {
  payment: {
    workflowType: 'payment',
    workflowId: paymentWorkflowId,
    operation: createPayment.operation,
    resume: (payment_id, request_id): PaymentResume => ({ payment_id, resume: true, request_id }),
    callbacks: PAYMENT_CALLBACKS,
    acts: PAYMENT_ACTS,
    // Settled money may be taken back, and late money sent back.
    actsWhenEnded: ['claw_back', 'mark_reversed'] satisfies PaymentAct[],
    collection: 'payments',
    opening: 'awaiting_customer',
    inFlight: PAYMENT_IN_FLIGHT,
  },
  refund: {
    workflowType: 'refund',
    workflowId: refundWorkflowId,
    operation: createRefund.operation,
    resume: (refund_id, request_id): RefundResume => ({ refund_id, resume: true, request_id }),
    callbacks: REFUND_CALLBACKS,
    acts: REFUND_ACTS,
    actsWhenEnded: [],
    collection: 'refunds',
    opening: 'processing',
    inFlight: REFUND_IN_FLIGHT,
  },
  payout: {
    workflowType: 'payout',
    workflowId: payoutWorkflowId,
    operation: createPayout.operation,
    resume: (payout_id, request_id): PayoutResume => ({ payout_id, resume: true, request_id }),
    callbacks: PAYOUT_CALLBACKS,
    acts: PAYOUT_ACTS,
    // A completed payout may still come back.
    actsWhenEnded: PAYOUT_ACTS,
    collection: 'payouts',
    opening: 'created',
    inFlight: PAYOUT_IN_FLIGHT,
  },
  crypto_payment: {
    workflowType: 'cryptoPayment',
    workflowId: cryptoPaymentWorkflowId,
    operation: createCryptoPayment.operation,
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
    opening: 'awaiting_deposit',
    inFlight: CRYPTO_PAYMENT_IN_FLIGHT,
  },
  crypto_settlement: {
    workflowType: 'cryptoSettlement',
    workflowId: cryptoSettlementWorkflowId,
    operation: createCryptoSettlement.operation,
    resume: (crypto_settlement_id, request_id): CryptoSettlementResume => ({
      crypto_settlement_id,
      resume: true,
      request_id,
    }),
    callbacks: CRYPTO_SETTLEMENT_CALLBACKS,
    acts: CRYPTO_SETTLEMENT_ACTS,
    actsWhenEnded: [],
    collection: 'crypto_settlements',
    opening: 'pending',
    inFlight: CRYPTO_SETTLEMENT_IN_FLIGHT,
  },
};

/** Kinds of resource, in the order of lists for operators. */
export const KINDS: readonly CallbackResource[] = CALLBACK_RESOURCES;

/** Whether a resource in this state has a workflow that runs. */
export function isInFlight(kind: CallbackResource, status: string): boolean {
  return RESOURCES[kind].inFlight.includes(status);
}

/** Names of the activities that answer with the state of a resource. */
export function listStateSteps(kind: CallbackResource): string[] {
  const name = getStepName(kind);
  return [`open${name}`, getReleaseStep(kind), `load${name}`, `record${name}Move`];
}

/** Name of the activity that releases the idempotency key of a refused resource. */
export function getReleaseStep(kind: CallbackResource): string {
  return `abandon${getStepName(kind)}`;
}

function getStepName(kind: CallbackResource): string {
  const { workflowType } = RESOURCES[kind];
  return `${workflowType.charAt(0).toUpperCase()}${workflowType.slice(1)}`;
}
