import type { Trigger } from '@temporalio/workflow';
import type {
  CryptoSettlementChange,
  CryptoSettlementFacts,
} from '../../activities/crypto-settlements';
import type { SettlementAnswer } from '../../connectors/contract/crypto';
import { formatUnits } from '../../src/domain/crypto';
import type {
  CryptoCallback,
  CryptoSettlementCallbackName,
} from '../../src/domain/crypto-callback';
import {
  type CryptoSettlementAct,
  type CryptoSettlementAttention,
  type CryptoSettlementStatus,
  isSettlementEnded,
} from '../../src/domain/crypto-settlement';
import type {
  CryptoSettlementResult,
  CryptoSettlementState,
} from '../../src/domain/crypto-workflow';
import type { Instructing } from '../shared/bank-instruction';
import { type Life, type Loaded, newLife, startLabels } from '../shared/life';
import type { CallbackItem, Mailbox } from '../shared/mailbox';
import type { OperatorItem } from '../shared/operator-acts';
import { createRecord } from '../shared/record';
import { FINAL, MALFORMED_CURE, SENDER_CURE, type View } from '../shared/view';

/** A settlement in memory, within one run. */
export interface Settlement
  extends Life<CryptoSettlementStatus, CryptoSettlementAttention, CryptoSettlementFacts>,
    Instructing {
  /** Its own mailbox, for what the connector answers. */
  readonly inbox: SettlementItem[];
  /** Transaction that the connector named. */
  transactionId: string | undefined;
  /** Operators who wait for what the connector says. */
  resubmits: Trigger<SettlementActed>[];
}

export type SettlementMailbox = Mailbox<SettlementItem, Settlement>;

/** Answer of an operator's update. */
export interface SettlementActed extends CryptoSettlementState {
  /** The connector's answer to `resubmit`; absent when the settlement moved before it. */
  bank?: SettlementAnswer['outcome'];
}

export type SettlementItem =
  | CallbackItem<CryptoSettlementCallbackName, CryptoCallback>
  /** The connector's, to the instruction or to the look-up. */
  | { kind: 'answer'; answer: SettlementAnswer }
  /** The record has moved on without this run. */
  | { kind: 'outdated' }
  | OperatorItem<CryptoSettlementAct, SettlementActed>;

/** @param resumed the search attributes may say anything: they are brought up to date */
export function newSettlement(
  { inbox }: SettlementMailbox,
  id: string,
  loaded: Loaded<CryptoSettlementStatus, CryptoSettlementAttention, CryptoSettlementFacts>,
  resumed: boolean,
): Settlement {
  const life = newLife(id, loaded, startLabels(resumed));
  const instructing = { instruction: 0, sendings: new Set<never>() };
  return { ...life, ...instructing, inbox, transactionId: undefined, resubmits: [] };
}

export function stateOf({ id, status, version }: Settlement): CryptoSettlementState {
  return { crypto_settlement_id: id, status, version };
}

/** Answers the query and the result, also before it is accepted or when it never was. */
export function resultIn(
  { opening }: SettlementMailbox,
  crypto_settlement_id: string,
): CryptoSettlementResult {
  if (opening?.outcome === 'accepted') return stateOf(opening.resource);
  if (opening === undefined) return { crypto_settlement_id, status: 'pending', version: 0 };
  const { code, message } = opening;
  return { crypto_settlement_id, status: 'refused', code, message };
}

export const VIEW: View<CryptoSettlementStatus, CryptoSettlementAttention> = {
  waitsFor: {
    pending: {
      what: 'the connector to broadcast it',
      levers: '`resubmit`, `mark_completed`, `mark_failed`, `snooze`',
    },
    sent: {
      what: 'the chain to confirm it',
      levers: '`resubmit`, `mark_completed`, `mark_failed`, `snooze`',
    },
    completed: FINAL,
    failed: FINAL,
  },
  cures: {
    settlement_overdue:
      'It has not completed in its time. Look at the chain. `resubmit` asks the connector what it ' +
      'knows and sends it again only when it is unknown there; `mark_completed` or `mark_failed` ' +
      'when the chain has told you; `snooze` to wait some more.',
    failed_after_completed:
      'The connector reported a failure after it had completed; nothing moved. Look at the chain.',
    moved_after_failed:
      'The connector reported that it went on after it had failed and the balance had it back; ' +
      'nothing moved. Look at the chain: if the wallet has it, correct the balance.',
    amount_differs:
      'The connector speaks of another amount than was to be sent; nothing moved. Look at the chain.',
    malformed_callback: MALFORMED_CURE,
    sender_not_known: SENDER_CURE,
  },
};

export const record = createRecord<
  CryptoSettlementStatus,
  CryptoSettlementAttention,
  Settlement,
  CryptoSettlementChange
>({
  noun: 'crypto_settlement',
  view: VIEW,
  until: untilText,
  isPast: (attention) => attention === 'settlement_overdue' || attention === 'amount_differs',
  senderMark: 'sender_not_known',
  malformedMark: 'malformed_callback',
  weakMarks: [],
  lateMarks: ['settlement_overdue'],
  known: ({ transactionId: transaction_id }) =>
    transaction_id === undefined ? {} : { transaction_id },
  remember: () => {},
  writeMove: (input) => (activities) => activities.recordCryptoSettlementMove(input),
  readStanding: (input) => (activities) => activities.readCryptoSettlementStanding(input),
  readLoaded: (input) => (activities) => activities.loadCryptoSettlement(input),
  writeAttention: (input) => (activities) => activities.recordCryptoSettlementAttention(input),
});

/** Amount for people, and when it is due. */
function untilText(settlement: Settlement): string {
  const { facts, status } = settlement;
  const amount = ` (${formatUnits(facts.amount, facts)} to ${facts.wallet_address})`;
  return isSettlementEnded(status)
    ? amount
    : `${amount}, due ${new Date(dueAt(settlement)).toISOString()}`;
}

/** When operators are told that it is overdue, in ms since the epoch. */
export function dueAt({ snoozedUntil, facts }: Settlement): number {
  return snoozedUntil ?? facts.due_at_ms;
}
