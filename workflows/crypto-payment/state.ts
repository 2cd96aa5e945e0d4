import type { CryptoPaymentChange, CryptoPaymentFacts } from '../../activities/crypto-payments';
import type { ScreeningAnswer } from '../../connectors/contract/crypto';
import { formatUnits } from '../../src/domain/crypto/assets';
import type { CryptoCallback, CryptoPaymentCallbackName } from '../../src/domain/crypto/callback';
import { amountReceived, type Deposit } from '../../src/domain/crypto/deposit';
import type {
  CryptoPaymentAct,
  CryptoPaymentAttention,
  CryptoPaymentStatus,
} from '../../src/domain/crypto/payment';
import type { CryptoPaymentResult, CryptoPaymentState } from '../../src/domain/crypto/workflow';
import { type CallbackItem, type Mailbox, readResult } from '../shared/mailbox';
import type { OperatorItem } from '../shared/operator-acts';
import { createRecord } from '../shared/record';
import {
  initialState,
  type ResourceSnapshot,
  startLabels,
  type WorkflowState,
} from '../shared/state';
import { COMMON_REMEDIES, FINAL, type View } from '../shared/view';

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

const ACTS = '`release`, `reject`, `confirm`, `snooze`';

export const VIEW: View<CryptoPaymentStatus, CryptoPaymentAttention> = {
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
  remedies: {
    deposit_held:
      'Screening holds a deposit, which is in suspense. `release` credits it; `reject` gives it up.',
    late_deposit:
      'A deposit came after the window, and is in suspense. `credit_late` credits it; `reject` ' +
      'gives it up.',
    deposit_to_return:
      'A deposit that counts for nothing is in suspense. Send it back from the wallet of the ' +
      'connector, then send `mark_sent_back` with the transaction. `write_off` gives up returning it.',
    underpaid:
      'The window closed with less than is due; the merchant has what came. `accept` ends the ' +
      'payment with that; `return` debits it, until you have sent it back.',
    deposit_undone:
      'The chain removed a credited deposit. Another block may include it. If none does, ' +
      '`debit_reorged` takes it from the merchant; `write_off` makes it our loss.',
    deposit_unconfirmed:
      'A deposit is not confirmed. Check the chain and the connector. If the chain has confirmed ' +
      'it, send `confirm` with its transaction.',
    amount_differs:
      'The connector reports another amount for an applied deposit; nothing changed. Check the chain.',
    too_many_deposits:
      'More deposits came than a payment stores; the rest was not applied. Check the address.',
    wrong_asset:
      'Another asset came to the address; nothing was credited. Send it back from the wallet of the ' +
      'connector. If `show` lists it, send `mark_sent_back` or `write_off`.',
    address_in_use:
      'The connector gave the address of another payment, so this one was refused. Stop the ' +
      'connector and read docs/evm.md#after-a-restore.',
    ...COMMON_REMEDIES,
  },
};

export const record = createRecord<
  CryptoPaymentStatus,
  CryptoPaymentAttention,
  CryptoPayment,
  CryptoPaymentChange
>({
  noun: 'crypto_payment',
  view: VIEW,
  until: untilText,
  isPast: () => false,
  unverifiedReason: 'sender_not_known',
  malformedReason: 'malformed_callback',
  givenUpReason: 'message_given_up',
  refusedReason: 'books_refused',
  overdueReasons: ['deposit_unconfirmed'],
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
