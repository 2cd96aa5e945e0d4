import type {
  CryptoSettlementChange,
  CryptoSettlementFacts,
} from '../../activities/crypto-settlements';
import type { SettlementAnswer } from '../../connectors/contract/crypto';
import { bookCurrency, formatUnits } from '../../src/domain/crypto/assets';
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
import { take } from '../../src/domain/movement/movement';
import { type Mailbox, readResult } from '../shared/inbox';
import { type Instructed, type InstructedItem, newInstructed } from '../shared/instructed-rules';
import { listOwn } from '../shared/movement';
import { createRecord } from '../shared/record';
import { FINAL, type View } from '../shared/state';

export interface SettlementActResult extends CryptoSettlementState {
  /** Absent when the settlement changed before the connector's answer. */
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
  result: CryptoSettlementResult;
  opened: CryptoSettlementState;
}

export type Settlement = Instructed<SettlementKind>;
export type SettlementMailbox = Mailbox<InstructedItem<SettlementKind>, Settlement>;
export const newSettlement = newInstructed<SettlementKind>;

export function getState({ id, status, version }: Settlement): CryptoSettlementState {
  return { crypto_settlement_id: id, status, version };
}

export function getResult(
  mail: SettlementMailbox,
  crypto_settlement_id: string,
): CryptoSettlementResult {
  return readResult(mail, { crypto_settlement_id, status: 'pending', version: 0 }, getState);
}

const VIEW: View<CryptoSettlementStatus> = {
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
};

export const record = createRecord<SettlementKind, Settlement>({
  noun: 'crypto_settlement',
  view: VIEW,
  until: untilText,
  overdueReasons: ['settlement_overdue'],
  take: ({ movements, facts }, next) => {
    if (!next.to.includes('completed')) return [];
    const currency = bookCurrency(facts);
    return take(listOwn(movements, next, { direction: 'out', currency }), BigInt(facts.amount));
  },
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

export function dueAt({ snoozedUntil, facts }: Settlement): number {
  return snoozedUntil ?? facts.due_at_ms;
}
