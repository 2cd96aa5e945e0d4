import {
  CALLBACK_RESOURCES,
  CALLBACKS,
  type CallbackName,
  type CallbackResource,
} from './banks/callback';
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
  DISPUTE_ACTS,
  DISPUTE_IN_FLIGHT,
  type DisputeAct,
  disputeWorkflowId,
} from './dispute/dispute';
import {
  PAYMENT_ACTS,
  PAYMENT_IN_FLIGHT,
  type PaymentAct,
  paymentWorkflowId,
} from './payment/payment';
import { PAYOUT_ACTS, PAYOUT_IN_FLIGHT, payoutWorkflowId } from './payout/payout';
import { REFUND_ACTS, REFUND_IN_FLIGHT, refundWorkflowId } from './refund/refund';

interface KindRules {
  /** Part of its activities' names. @see listStateSteps */
  workflowType: string;
  workflowId: (id: string) => string;
  /** Before the UUID of each id. */
  idStart?: string;
  /** Updates of the workflow. */
  acts: readonly string[];
  /** Updates that the ended workflow takes, with `acknowledge`. */
  actsWhenEnded: readonly string[];
  /** First written state of nearly all. */
  opening: string;
  /** Version in that state. */
  openingVersion: number;
  inFlight: readonly string[];
  /** A frozen account sends none. */
  isOutgoing?: true;
}

export interface ResourceKind extends KindRules {
  /** Signals of the workflow. */
  callbacks: readonly CallbackName[];
  operation: string;
  collection: `${CallbackResource}s`;
  /** Starts the workflow again; it loads the resource first. */
  resume: (id: string, request_id: string) => object;
}

/** Pure part of the registry. @see src/lifecycles.ts */
export const RESOURCES: Record<CallbackResource, ResourceKind> = {
  payment: addNames('payment', {
    workflowType: 'payment',
    workflowId: paymentWorkflowId,
    acts: PAYMENT_ACTS,
    // Disputes, reversals of late funds, and an open session may follow.
    actsWhenEnded: [
      'claw_back',
      'dispute_won',
      'mark_reversed',
      'resolve_movement',
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
    actsWhenEnded: ['resolve_movement'],
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
  dispute: addNames('dispute', {
    workflowType: 'dispute',
    workflowId: disputeWorkflowId,
    idStart: 'dp_',
    acts: DISPUTE_ACTS,
    // What a lost dispute took may come back.
    actsWhenEnded: ['dispute_won'] satisfies DisputeAct[],
    opening: 'needs_response',
    openingVersion: 1,
    inFlight: DISPUTE_IN_FLIGHT,
  }),
  crypto_payment: addNames('crypto_payment', {
    workflowType: 'cryptoPayment',
    workflowId: cryptoPaymentWorkflowId,
    acts: CRYPTO_PAYMENT_ACTS,
    // Deposits may come after the end, and wait for an operator.
    actsWhenEnded: [
      'release',
      'reject',
      'credit_late',
      'resolve_movement',
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
    actsWhenEnded: ['resolve_movement'],
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

/** Order of lists for operators. */
export const KINDS: readonly CallbackResource[] = CALLBACK_RESOURCES;

export function isInFlight(kind: CallbackResource, status: string): boolean {
  return RESOURCES[kind].inFlight.includes(status);
}

/** Activities of which one has ended when the resource is stored, or is refused. */
export function listStateSteps(kind: CallbackResource): string[] {
  const name = capitalize(RESOURCES[kind].workflowType);
  return [`open${name}`, `abandon${name}`, `load${name}`, `record${name}Move`];
}

function capitalize(name: string): string {
  return `${name.charAt(0).toUpperCase()}${name.slice(1)}`;
}
