import type { CryptoPaymentChange, CryptoPaymentFacts } from '../../activities/crypto-payments';
import type { ScreeningAnswer } from '../../connectors/contract/crypto';
import { formatUnits } from '../../src/domain/crypto/assets';
import {
  CRYPTO_PAYMENT_CALLBACKS,
  type CryptoCallback,
  type CryptoPaymentCallbackName,
  readCryptoCallback,
} from '../../src/domain/crypto/callback';
import { amountReceived, type Deposit } from '../../src/domain/crypto/deposit';
import { outranksReason } from '../../src/domain/crypto/deposit-set';
import {
  CRYPTO_PAYMENT_ACTS,
  type CryptoPaymentAct,
  type CryptoPaymentAttention,
  type CryptoPaymentStatus,
} from '../../src/domain/crypto/payment';
import type { CryptoPaymentResult, CryptoPaymentState } from '../../src/domain/crypto/workflow';
import { defineMessages, type Mailbox, readResult } from '../shared/inbox';
import type { CommonItem } from '../shared/lifecycle';
import { ACKNOWLEDGE, OPERATOR, SNOOZE } from '../shared/operator-acts';
import { ResourceRecord } from '../shared/record';
import {
  FINAL,
  initialState,
  type ResourceSnapshot,
  startLabels,
  type Waiting,
  type WorkflowState,
} from '../shared/state';

export interface CryptoPaymentKind {
  status: CryptoPaymentStatus;
  attention: CryptoPaymentAttention;
  facts: CryptoPaymentFacts;
  change: CryptoPaymentChange;
  callbackName: CryptoPaymentCallbackName;
  callback: CryptoCallback;
  act: CryptoPaymentAct;
  actResult: CryptoPaymentState;
  result: CryptoPaymentResult;
  opened: CryptoPaymentState;
}

export interface CryptoPayment
  extends WorkflowState<CryptoPaymentStatus, CryptoPaymentAttention, CryptoPaymentFacts> {
  readonly inbox: CryptoPaymentItem[];
  deposits: readonly Deposit[];
  accepted: boolean;
  reported: readonly CryptoPaymentChange['reported'][number][];
  readonly screenings: Set<string>;
  /** Ms since the epoch. */
  closesAt: number;
  closed: boolean;
}

export type CryptoPaymentMailbox = Mailbox<CryptoPaymentItem, CryptoPayment>;

export type CryptoPaymentItem =
  | CommonItem<CryptoPaymentKind>
  | { kind: 'screened'; transaction_id: string; answer: ScreeningAnswer };

type DepositState = Partial<Pick<CryptoPayment, 'deposits' | 'accepted' | 'reported'>>;

/** Time to mine and report the window's last block. */
const GRACE_MS = 60_000;

/** @param resumed the search attributes may have any value */
export function newCryptoPayment(
  { inbox, clock }: CryptoPaymentMailbox,
  id: string,
  snapshot: ResourceSnapshot<CryptoPaymentStatus, CryptoPaymentAttention, CryptoPaymentFacts> &
    DepositState,
  resumed: boolean,
): CryptoPayment {
  const { deposits = [], accepted = false, reported = [], facts } = snapshot;
  const state = initialState(id, snapshot, startLabels(resumed), clock);
  state.labels.assetAmount = undefined;
  return {
    ...state,
    ...{ inbox, deposits, accepted, reported },
    screenings: new Set(),
    closesAt: Date.parse(facts.expires_at) + GRACE_MS,
    closed: false,
    facts,
  };
}

export function isWaiting({ status }: CryptoPayment): boolean {
  return status !== 'received' && status !== 'expired';
}

/** Contract, changed only by addition. */
export const messages = defineMessages<CryptoPaymentKind>(
  CRYPTO_PAYMENT_ACTS,
  CRYPTO_PAYMENT_CALLBACKS,
  readCryptoCallback,
  {
    open: 'Waits until rate and address are given and stored. Sent by the API with the start.',
    release: `Credits the deposits that screening holds, for good: ${OPERATOR}}.`,
    reject: `Gives the waiting deposits up, for good: ${OPERATOR}}. They stay in suspense.`,
    accept: `Accepts the lower amount: ${OPERATOR}}. The payment becomes received.`,
    return:
      `Debits an underpaid payment, once its window is over: ${OPERATOR}}. It becomes expired; the ` +
      'asset is in suspense until you have sent it back.',
    credit_late: `Credits the deposits that came late, for good: ${OPERATOR}}.`,
    resolve_movement:
      `Decides about a deposit in suspense: ${OPERATOR}, "as": "customer", "transaction_id": "of the ` +
      'return", "address": "its own"}, or "as": "loss" or "never_happened". Of a credited one that ' +
      'the chain removed: "as": "merchant" or "loss". Of several, the "movement".',
    confirm: `The chain has confirmed a pending deposit: ${OPERATOR}, "transaction_id": "its own"}.`,
    snooze: SNOOZE,
    acknowledge: ACKNOWLEDGE,
    state: 'The state of the crypto payment.',
    deposit: 'From the chain: a deposit was seen, or has more confirmations.',
    deposit_undone: 'From the chain: a deposit is in no block any more.',
    wrong_asset: 'From the chain: another asset than the payment asks for came to its address.',
    expired: 'From the connector: nothing more is coming.',
  },
);

export function getState({ id, status, version }: CryptoPayment): CryptoPaymentState {
  return { crypto_payment_id: id, status, version };
}

export function getResult(
  mail: Pick<CryptoPaymentMailbox, 'opening'>,
  crypto_payment_id: string,
): CryptoPaymentResult {
  return readResult(mail, { crypto_payment_id, status: 'awaiting_deposit', version: 0 }, getState);
}

const ACTS = '`release`, `reject`, `resolve_movement`, `confirm`, `snooze`';

const WAITING_FOR: Record<CryptoPaymentStatus, Waiting> = {
  awaiting_deposit: { what: 'the payer', updates: ACTS },
  underpaid: {
    what: 'the payer to send the rest, or an operator',
    updates: `\`accept\`, \`return\`, \`credit_late\`, ${ACTS}`,
  },
  held: { what: 'an operator to decide on what screening holds', updates: ACTS },
  received: {
    what: 'nothing: what is due has come',
    updates: 'none, unless a deposit needs an operator',
  },
  expired: FINAL,
};

export const record = new ResourceRecord<CryptoPaymentKind, CryptoPayment>({
  noun: 'crypto_payment',
  waitingFor: WAITING_FOR,
  until: ({ facts, deposits, status }) => {
    const received = formatUnits(amountReceived(deposits), facts);
    const amounts = ` (${received} of ${formatUnits(facts.amount_due, facts)} received)`;
    return status === 'awaiting_deposit' || status === 'underpaid'
      ? `${amounts}, until ${facts.expires_at}`
      : amounts;
  },
  isPast: () => false,
  overdueReasons: ['deposit_unconfirmed'],
  outranks: outranksReason,
  writeTransition: (input) => (activities) => activities.recordCryptoPaymentMove(input),
  writeAttention: (input) => (activities) => activities.recordCryptoPaymentAttention(input),
});
