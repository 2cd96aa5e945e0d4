import type { CryptoPaymentChange, CryptoPaymentFacts } from '../../activities/crypto-payments';
import type { ScreeningAnswer } from '../../connectors/contract/crypto';
import { formatUnits } from '../../src/domain/crypto/assets';
import type { CryptoCallback, CryptoPaymentCallbackName } from '../../src/domain/crypto/callback';
import { amountReceived, type Deposit } from '../../src/domain/crypto/deposit';
import { outranksReason } from '../../src/domain/crypto/deposit-set';
import type {
  CryptoPaymentAct,
  CryptoPaymentAttention,
  CryptoPaymentStatus,
} from '../../src/domain/crypto/payment';
import type { CryptoPaymentResult, CryptoPaymentState } from '../../src/domain/crypto/workflow';
import { type CallbackItem, type Mailbox, readResult } from '../shared/inbox';
import type { OperatorItem } from '../shared/operator-acts';
import { createRecord } from '../shared/record';
import {
  FINAL,
  initialState,
  type ResourceSnapshot,
  startLabels,
  type View,
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
  | CallbackItem<CryptoPaymentCallbackName, CryptoCallback>
  | { kind: 'screened'; transaction_id: string; answer: ScreeningAnswer }
  | OperatorItem<CryptoPaymentAct, CryptoPaymentState>;

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

export function getState({ id, status, version }: CryptoPayment): CryptoPaymentState {
  return { crypto_payment_id: id, status, version };
}

export function getResult(
  mail: CryptoPaymentMailbox,
  crypto_payment_id: string,
): CryptoPaymentResult {
  return readResult(mail, { crypto_payment_id, status: 'awaiting_deposit', version: 0 }, getState);
}

const ACTS = '`release`, `reject`, `resolve_movement`, `confirm`, `snooze`';

const VIEW: View<CryptoPaymentStatus> = {
  waitingFor: {
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
  },
};

export const record = createRecord<CryptoPaymentKind, CryptoPayment>({
  noun: 'crypto_payment',
  view: VIEW,
  until: untilText,
  isPast: () => false,
  overdueReasons: ['deposit_unconfirmed'],
  outranks: outranksReason,
  writeTransition: (input) => (activities) => activities.recordCryptoPaymentMove(input),
  writeAttention: (input) => (activities) => activities.recordCryptoPaymentAttention(input),
});

function untilText({ facts, deposits, status }: CryptoPayment): string {
  const received = formatUnits(amountReceived(deposits), facts);
  const amounts = ` (${received} of ${formatUnits(facts.amount_due, facts)} received)`;
  return status === 'awaiting_deposit' || status === 'underpaid'
    ? `${amounts}, until ${facts.expires_at}`
    : amounts;
}
