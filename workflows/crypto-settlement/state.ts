import type {
  CryptoSettlementChange,
  CryptoSettlementFacts,
} from '../../activities/crypto-settlements';
import type { SettlementAnswer } from '../../connectors/contract/crypto';
import { formatUnits } from '../../src/domain/crypto/assets';
import type {
  CryptoCallback,
  CryptoSettlementCallbackName,
} from '../../src/domain/crypto/callback';
import {
  type CryptoSettlementAct,
  type CryptoSettlementAttention,
  type CryptoSettlementStatus,
  isSettlementEnded,
} from '../../src/domain/crypto/settlement';
import type {
  CryptoSettlementResult,
  CryptoSettlementState,
} from '../../src/domain/crypto/workflow';
import { type Instructed, type InstructedItem, newInstructed } from '../shared/instructed-rules';
import { type Mailbox, readResult } from '../shared/mailbox';
import { createRecord } from '../shared/record';
import { COMMON_REMEDIES, FINAL, type View } from '../shared/view';

export interface SettlementActResult extends CryptoSettlementState {
  /** The connector's answer to `resubmit`; absent when the settlement changed before it. */
  bank?: SettlementAnswer['outcome'];
}

export interface SettlementKind {
  status: CryptoSettlementStatus;
  attention: CryptoSettlementAttention;
  facts: CryptoSettlementFacts;
  change: CryptoSettlementChange;
  callbackName: CryptoSettlementCallbackName;
  callback: CryptoCallback;
  answer: SettlementAnswer;
  act: CryptoSettlementAct;
  actResult: SettlementActResult;
}

export type Settlement = Instructed<SettlementKind>;
export type SettlementMailbox = Mailbox<InstructedItem<SettlementKind>, Settlement>;
export const newSettlement = newInstructed<SettlementKind>;

export function getState({ id, status, version }: Settlement): CryptoSettlementState {
  return { crypto_settlement_id: id, status, version };
}

/** Answers the query and the result, also before it is accepted or when it is refused. */
export function getResult(
  mail: SettlementMailbox,
  crypto_settlement_id: string,
): CryptoSettlementResult {
  return readResult(mail, { crypto_settlement_id, status: 'pending', version: 0 }, getState);
}

export const VIEW: View<CryptoSettlementStatus, CryptoSettlementAttention> = {
  waitingFor: {
    pending: {
      what: 'the connector to broadcast it',
      updates: '`resubmit`, `mark_completed`, `mark_failed`, `snooze`',
    },
    sent: {
      what: 'the chain to confirm it',
      updates: '`resubmit`, `mark_completed`, `mark_failed`, `snooze`',
    },
    completed: FINAL,
    failed: FINAL,
  },
  remedies: {
    settlement_overdue:
      'It has not completed in time. Check the chain. `resubmit` asks the connector, and sends it ' +
      'again only if the connector does not know it. Send `mark_completed` or `mark_failed` when ' +
      'the chain shows it. `snooze` waits longer.',
    failed_after_completed:
      'The connector reported a failure of a completed settlement; nothing moved. Check the chain.',
    moved_after_failed:
      'The connector continued a failed settlement, whose amount the merchant has back; nothing ' +
      'moved. Check the chain. If the wallet has it, correct the balance.',
    amount_differs: 'The connector reported a different amount; nothing moved. Check the chain.',
    ...COMMON_REMEDIES,
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
  unverifiedReason: 'sender_not_known',
  malformedReason: 'malformed_callback',
  givenUpReason: 'message_given_up',
  overdueReasons: ['settlement_overdue'],
  getExtraFields: ({ bankReference: transaction_id }) =>
    transaction_id === undefined ? {} : { transaction_id },
  writeTransition: (input) => (activities) => activities.recordCryptoSettlementMove(input),
  writeAttention: (input) => (activities) => activities.recordCryptoSettlementAttention(input),
});

function untilText(settlement: Settlement): string {
  const { facts, status } = settlement;
  const amount = ` (${formatUnits(facts.amount, facts)} to ${facts.wallet_address})`;
  return isSettlementEnded(status)
    ? amount
    : `${amount}, due ${new Date(dueAt(settlement)).toISOString()}`;
}

/** When the settlement is overdue, in ms since the epoch. */
export function dueAt({ snoozedUntil, facts }: Settlement): number {
  return snoozedUntil ?? facts.due_at_ms;
}
