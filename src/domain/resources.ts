import {
  CALLBACK_RESOURCES,
  CALLBACKS,
  type CallbackName,
  type CallbackResource,
} from './callback/callback';
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
import {
  PAYMENT_ACTS,
  PAYMENT_IN_FLIGHT,
  type PaymentAct,
  paymentWorkflowId,
} from './payment/payment';
import { PAYOUT_ACTS, PAYOUT_IN_FLIGHT, payoutWorkflowId } from './payout/payout';
import { REFUND_ACTS, REFUND_IN_FLIGHT, refundWorkflowId } from './refund/refund';

interface KindRules {
  /** Names of its activities contain it. @see listStateSteps */
  workflowType: string;
  workflowId: (id: string) => string;
  /** Updates of the workflow: what an operator can do. */
  acts: readonly string[];
  /** Acts that the workflow takes once it has ended, besides `acknowledge`. */
  actsWhenEnded: readonly string[];
  /** State that lists show from the start: nearly all are first written in it. */
  opening: string;
  /** Version of a document in that state. */
  openingVersion: number;
  inFlight: readonly string[];
  /** Whether its money leaves the merchant's reach: a frozen account sends none. */
  isOutgoing?: true;
}

/** Facts of one kind of resource, as callbacks, the command line, banks and checks need them. */
export interface ResourceKind extends KindRules {
  /** Signals of the workflow: what a bank can report. */
  callbacks: readonly CallbackName[];
  operation: string;
  collection: `${CallbackResource}s`;
  /** Input that starts the workflow again; it loads the resource before anything else. */
  resume: (id: string, request_id: string) => object;
}

/** Registry of the resources that have a workflow: its pure part. @see src/lifecycles.ts */
export const RESOURCES: Record<CallbackResource, ResourceKind> = {
  payment: addNames('payment', {
    workflowType: 'payment',
    workflowId: paymentWorkflowId,
    acts: PAYMENT_ACTS,
    // Disputes may follow, late funds may be sent back, and the session may not be closed yet.
    actsWhenEnded: [
      'claw_back',
      'dispute_won',
      'mark_reversed',
      'give_up_closing',
    ] satisfies PaymentAct[],
    opening: 'awaiting_customer',
    openingVersion: 2,
    inFlight: PAYMENT_IN_FLIGHT,
  }),
  refund: addNames('refund', {
    workflowType: 'refund',
    workflowId: refundWorkflowId,
    acts: REFUND_ACTS,
    actsWhenEnded: [],
    opening: 'processing',
    openingVersion: 1,
    inFlight: REFUND_IN_FLIGHT,
  }),
  payout: addNames('payout', {
    workflowType: 'payout',
    workflowId: payoutWorkflowId,
    acts: PAYOUT_ACTS,
    // A completed payout may still come back.
    actsWhenEnded: PAYOUT_ACTS,
    opening: 'created',
    openingVersion: 1,
    inFlight: PAYOUT_IN_FLIGHT,
    isOutgoing: true,
  }),
  crypto_payment: addNames('crypto_payment', {
    workflowType: 'cryptoPayment',
    workflowId: cryptoPaymentWorkflowId,
    acts: CRYPTO_PAYMENT_ACTS,
    // Deposits may come after the end, and wait for an operator then.
    actsWhenEnded: [
      'release',
      'reject',
      'credit_late',
      'mark_sent_back',
      'write_off',
      'debit_reorged',
      'confirm',
    ] satisfies CryptoPaymentAct[],
    opening: 'awaiting_deposit',
    openingVersion: 1,
    inFlight: CRYPTO_PAYMENT_IN_FLIGHT,
  }),
  crypto_settlement: addNames('crypto_settlement', {
    workflowType: 'cryptoSettlement',
    workflowId: cryptoSettlementWorkflowId,
    acts: CRYPTO_SETTLEMENT_ACTS,
    actsWhenEnded: [],
    opening: 'pending',
    openingVersion: 1,
    inFlight: CRYPTO_SETTLEMENT_IN_FLIGHT,
    isOutgoing: true,
  }),
};

function addNames(kind: CallbackResource, rules: KindRules): ResourceKind {
  return {
    ...rules,
    // An attention reason may come after the end, or stay.
    actsWhenEnded: [...rules.actsWhenEnded, 'acknowledge'],
    callbacks: CALLBACKS[kind],
    operation: `create${capitalize(rules.workflowType)}`,
    collection: `${kind}s`,
    resume: (id, request_id) => ({ [`${kind}_id`]: id, resume: true, request_id }),
  };
}

/** Kinds of resource, in the order of lists for operators. */
export const KINDS: readonly CallbackResource[] = CALLBACK_RESOURCES;

export function isInFlight(kind: CallbackResource, status: string): boolean {
  return RESOURCES[kind].inFlight.includes(status);
}

/**
 * Activities that post journal entries without a transition, so that the version does not count
 * them.
 */
export const UNCOUNTED_STEPS = [
  'clawBack',
  'liftDispute',
  'recordDispute',
  'recordDisputeReport',
  'recordPayoutSent',
  'recordReceipt',
  'recordRefundSent',
  'recordReturnHeld',
  'recordReversal',
  'recordSentBack',
  'recordSentHeld',
] as const;

export type UncountedStep = (typeof UNCOUNTED_STEPS)[number];

/** Names of the activities that answer with the state of a resource. */
export function listStateSteps(kind: CallbackResource): string[] {
  const name = capitalize(RESOURCES[kind].workflowType);
  return [`open${name}`, getReleaseStep(kind), `load${name}`, `record${name}Move`];
}

/** Name of the activity that releases the idempotency key of a refused resource. */
export function getReleaseStep(kind: CallbackResource): string {
  return `abandon${capitalize(RESOURCES[kind].workflowType)}`;
}

function capitalize(name: string): string {
  return `${name.charAt(0).toUpperCase()}${name.slice(1)}`;
}
