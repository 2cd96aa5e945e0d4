import type { CryptoSettlementChange } from '../../activities/crypto-settlements';
import type { CryptoConnectorActivities, SettlementAnswer } from '../../connectors/contract/crypto';
import { describeFailure } from '../../src/domain/callback/callback';
import { formatUnits } from '../../src/domain/crypto/assets';
import type {
  CryptoCallback,
  CryptoSettlementCallbackName,
} from '../../src/domain/crypto/callback';
import {
  CRYPTO_SETTLEMENT_FAILURES,
  CRYPTO_SETTLEMENT_STATUSES,
  type CryptoSettlementAct,
  type CryptoSettlementDecision,
  type CryptoSettlementStatus,
  cryptoSettlementWorkflowId,
  decideSettlement,
  isSettlementEnded,
  settlementPathTo,
} from '../../src/domain/crypto/settlement';
import type {
  CryptoSettlementInput,
  CryptoSettlementResult,
  CryptoSettlementStart,
} from '../../src/domain/crypto/workflow';
import type { Movement } from '../../src/domain/movement/movement';
import { timestamp } from '../shared/clock';
import { listen, type Opening, openMailbox, untilOpened } from '../shared/inbox';
import {
  answerResubmits,
  beginInstructed,
  differs,
  resumeInstructed,
  runInstructed,
} from '../shared/instructed';
import type { BankQuestion, InstructedRules } from '../shared/instructed-rules';
import { askForOperator, cancelUnstartedSends, moneyActivities } from '../shared/instruction';
import type { Due } from '../shared/loop';
import type { Suspension } from '../shared/movement';
import { type ActRules, stateFault } from '../shared/operator-acts';
import { writeScheduled } from '../shared/persist';
import { assertIdentity } from '../shared/refusal';
import { showRefusal, upsertLabels } from '../shared/state';
import { messages } from './messages';
import {
  dueAt,
  getResult,
  getState,
  newSettlement,
  record,
  type Settlement,
  type SettlementKind,
  type SettlementMailbox,
} from './state';

/** @see docs/api.md#settlements */
export async function cryptoSettlement(
  start: CryptoSettlementStart,
): Promise<CryptoSettlementResult> {
  const { crypto_settlement_id } = Object(start);
  assertIdentity('crypto_settlement_id', crypto_settlement_id, cryptoSettlementWorkflowId);
  const mail: SettlementMailbox = openMailbox(start);
  listen<SettlementKind, Settlement>(mail, messages, {
    noun: 'settlement',
    resumed: 'resume' in start,
    state: () => getResult(mail, start.crypto_settlement_id),
    opened: async () => getState(await untilOpened(mail)),
    asksBank: true,
    actFault,
  });
  await runInstructed(rules, mail, () => {
    if (!('resume' in start)) return open(mail, start);
    const { crypto_settlement_id: resource_id, request_id } = start;
    return resumeInstructed(rules, mail, { resource_id, request_id }, 'settlement_overdue');
  });
  return getResult(mail, start.crypto_settlement_id);
}

const rules: InstructedRules<SettlementKind, Settlement> = {
  kind: 'crypto_settlement',
  noun: 'settlement',
  messages,
  record,
  isEnded: isSettlementEnded,
  isUnsent: (status) => status === 'pending',
  buildInstruction,
  buildQuestion,
  readSnapshot: (input) => (activities) => activities.loadCryptoSettlement(input),
  decide,
  buildChange,
  applyAnswer,
  suspend,
  bookMore,
  findTaker,
  actFault,
  acts: {
    mark_completed: ({ status }) => ({ to: settlementPathTo(status, 'completed') }),
  },
  operatorFailure: { failure: CRYPTO_SETTLEMENT_FAILURES.operator },
  nextDue,
  getState,
  buildResume: (id, request_id) => ({ crypto_settlement_id: id, resume: true, request_id }),
};

async function open(
  mail: SettlementMailbox,
  { clock, ...input }: CryptoSettlementInput,
): Promise<Opening<Settlement>> {
  const created_at = timestamp(mail);
  const opening = await writeScheduled((activities) =>
    activities.openCryptoSettlement({ ...input, created_at }),
  );
  const { crypto_settlement_id: resource_id } = input;
  if (opening.outcome === 'refused') {
    await writeScheduled((activities) => activities.releaseCryptoClaim({ resource_id }));
    showRefusal({ status: 'pending', attention: null }, opening);
    return opening;
  }
  const settlement = newSettlement(mail, resource_id, { ...opening, attention: null }, false);
  if (input.amount === null) {
    const assetAmount = formatUnits(opening.facts.amount, input);
    upsertLabels(settlement, { ...settlement.labels, assetAmount });
  }
  return beginInstructed(rules, settlement);
}

function decide(
  { status, facts }: Settlement,
  name: CryptoSettlementCallbackName,
  { amount = facts.amount }: CryptoCallback,
): CryptoSettlementDecision {
  const decision = decideSettlement(status, name);
  const isDifferent = decision.kind === 'move' && name === 'completed' && amount !== facts.amount;
  return isDifferent ? differs(`the chain shows ${formatUnits(amount, facts)}`) : decision;
}

function buildChange(
  to: readonly CryptoSettlementStatus[],
  callback: CryptoCallback,
): Partial<CryptoSettlementChange> {
  const { transaction_id, bank_reference, network_fee } = callback;
  const isFinal = to.some(isSettlementEnded);
  const failure = describeFailure(callback, CRYPTO_SETTLEMENT_FAILURES.chain);
  return {
    ...(to.includes('failed') ? { failure } : {}),
    ...(transaction_id ? { transaction_id } : {}),
    ...(bank_reference ? { bank_reference } : {}),
    ...(isFinal && network_fee ? { network_fee } : {}),
  };
}

async function applyAnswer(settlement: Settlement, answer: SettlementAnswer): Promise<void> {
  record.logActivity(settlement, `instruction at the connector: ${answer.outcome}`);
  if (settlement.status === 'failed' && answer.outcome !== 'refused') {
    return await record.setAttention(settlement, 'moved_after_failed');
  }
  if (settlement.status !== 'pending') return;
  if (answer.outcome === 'refused') {
    const failure = { code: answer.code, message: answer.message };
    await record.transition(settlement, ['failed'], { change: { failure }, scheduled: true });
  } else if (answer.outcome === 'sent') {
    await record.transition(settlement, settlementPathTo('pending', 'sent'), { scheduled: true });
  }
  answerResubmits(rules, settlement, { bank: answer.outcome });
}

export function suspend(
  { status }: Settlement,
  name: CryptoSettlementCallbackName,
): Suspension | 'back' | undefined {
  if (name === 'failed') return status === 'failed' ? 'back' : undefined;
  if (name !== 'completed' || status === 'completed') return undefined;
  if (status === 'failed') return { direction: 'out', reason: 'moved_after_failed' };
  return { direction: 'out', reason: 'amount_differs' };
}

/** An operator who ends a settlement does not know what the network took. */
async function bookMore(settlement: Settlement, { network_fee }: CryptoCallback): Promise<void> {
  if (network_fee === undefined || !isSettlementEnded(settlement.status)) return;
  const { id: crypto_settlement_id } = settlement;
  const fee = { crypto_settlement_id, network_fee, at: timestamp(settlement) };
  await record.book(
    settlement,
    (known) => (activities) => activities.recordNetworkFee({ ...fee, ...known }),
  );
}

function findTaker({ status }: Settlement, { direction }: Movement) {
  return direction === 'out' && !isSettlementEnded(status) ? 'mark_completed' : undefined;
}

function nextDue(settlement: Settlement): Due | undefined {
  if (isSettlementEnded(settlement.status)) return cancelUnstartedSends(settlement);
  if (settlement.isOverdueReported) return undefined;
  const act = () => record.flagOverdue(settlement, 'settlement_overdue');
  return { at: dueAt(settlement), summary: 'The settlement is due', act };
}

function buildInstruction(settlement: Settlement) {
  const { connector, crypto_settlement_id, livemode } = settlement.facts;
  const { asset, network, amount, wallet_address } = settlement.facts;
  const bank = moneyActivities<CryptoConnectorActivities>(connector, 'settlement');
  const money = { asset, network, amount, wallet_address, livemode };
  return {
    send: () =>
      bank.once.sendSettlement({ crypto_settlement_id, version: settlement.transition, ...money }),
    lookUp: () => bank.patient.lookUpSettlement({ crypto_settlement_id }),
  };
}

function buildQuestion({ facts }: Settlement): BankQuestion<SettlementAnswer> {
  const { connector, crypto_settlement_id } = facts;
  const ask = askForOperator<CryptoConnectorActivities>(connector, 'settlement');
  return {
    cancel: () => ask(({ canceller }) => canceller.cancelSettlement({ crypto_settlement_id })),
    lookUp: () => ask(({ asker }) => asker.lookUpSettlement({ crypto_settlement_id })),
  };
}

const IN_FLIGHT = ['pending', 'sent'] as const;

const neverLeft = (status: CryptoSettlementStatus) =>
  `The settlement is ${status}; a final state is never left.`;

const ACTS: ActRules<CryptoSettlementAct, CryptoSettlementStatus> = {
  resubmit: {
    from: ['pending'],
    refusal: (status) =>
      `The settlement is ${status}; only one that is not on the chain can be sent again.`,
  },
  mark_failed: { from: IN_FLIGHT, refusal: neverLeft },
  mark_completed: { from: IN_FLIGHT, refusal: neverLeft },
  resolve_movement: { from: CRYPTO_SETTLEMENT_STATUSES, refusal: neverLeft },
  snooze: { from: IN_FLIGHT, refusal: neverLeft },
};

function actFault(settlement: Settlement, what: CryptoSettlementAct): string | undefined {
  return stateFault(ACTS, settlement.status, what);
}
