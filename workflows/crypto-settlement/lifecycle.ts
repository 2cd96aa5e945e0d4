import type {
  CryptoSettlementChange,
  CryptoSettlementFacts,
} from '../../activities/crypto-settlements';
import type { CryptoConnectorActivities, SettlementAnswer } from '../../connectors/contract/crypto';
import { describeFailure } from '../../src/domain/banks/callback';
import { take } from '../../src/domain/banks/movement';
import { bookCurrency, formatUnits } from '../../src/domain/crypto/assets';
import {
  CRYPTO_SETTLEMENT_CALLBACKS,
  type CryptoCallback,
  type CryptoSettlementCallbackName,
  readCryptoCallback,
} from '../../src/domain/crypto/callback';
import {
  CRYPTO_SETTLEMENT_ACTS,
  CRYPTO_SETTLEMENT_FAILURES,
  CRYPTO_SETTLEMENT_STATUSES,
  type CryptoSettlementAct,
  type CryptoSettlementAttention,
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
  CryptoSettlementState,
} from '../../src/domain/crypto/workflow';
import { timestamp } from '../shared/clock';
import {
  defineMessages,
  listen,
  type Mailbox,
  type Opening,
  openMailbox,
  readResult,
} from '../shared/inbox';
import {
  answerResubmits,
  beginInstructed,
  defineInstructed,
  differs,
  resumeInstructed,
} from '../shared/instructed';
import {
  type Instructed,
  type InstructedItem,
  type InstructedLifecycle,
  newInstructed,
} from '../shared/instructed-rules';
import { askForOperator, moneyActivities } from '../shared/instruction';
import { runLifecycle } from '../shared/lifecycle';
import { listOwn, type Suspension } from '../shared/movement';
import {
  ACKNOWLEDGE,
  type ActRules,
  OPERATOR,
  RESOLVE_MOVEMENT,
  SNOOZE,
  stateFault,
} from '../shared/operator-acts';
import { writeScheduled } from '../shared/persist';
import { ResourceRecord } from '../shared/record';
import { FINAL, showRefusal, upsertLabels, type Waiting } from '../shared/state';

interface SettlementActResult extends CryptoSettlementState {
  /** Absent when the settlement changed before the connector's answer. */
  bank?: SettlementAnswer['outcome'];
}

interface SettlementKind {
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

type Settlement = Instructed<SettlementKind>;
type SettlementMailbox = Mailbox<InstructedItem<SettlementKind>, Settlement>;
/** @see docs/api.md#settlements */
export async function cryptoSettlement(
  start: CryptoSettlementStart,
): Promise<CryptoSettlementResult> {
  const mail: SettlementMailbox = openMailbox(start);
  listen(rules, mail, start);
  await runLifecycle(rules, mail, () => {
    if (!('resume' in start)) return open(mail, start);
    const { crypto_settlement_id: resource_id, request_id } = start;
    return resumeInstructed(rules, mail, { resource_id, request_id });
  });
  return getResult(mail, start.crypto_settlement_id);
}

/** Contract, changed only by addition. */
const messages = defineMessages<SettlementKind>(
  CRYPTO_SETTLEMENT_ACTS,
  CRYPTO_SETTLEMENT_CALLBACKS,
  readCryptoCallback,
  {
    open: 'Waits until the settlement is accepted or refused. Sent by the API with the start.',
    resubmit:
      `Asks the connector, and sends it again only if the connector does not know it: ${OPERATOR}}. ` +
      'Answers with what the connector said.',
    mark_failed:
      `Nothing left or will leave: ${OPERATOR}}. The merchant gets it back. Asks the connector ` +
      'first, and is refused if the connector holds it, unless "bank_confirmed_not_executed" is true.',
    mark_completed: `The chain shows that the wallet has it: ${OPERATOR}}.`,
    snooze: SNOOZE,
    resolve_movement: RESOLVE_MOVEMENT,
    acknowledge: ACKNOWLEDGE,
    state: 'The state of the settlement.',
    sent: 'From the connector: the transaction is broadcast.',
    completed: 'From the chain: the transaction is confirmed.',
    failed: 'From the connector: nothing has left, and nothing will.',
  },
);

function getState({ id, status, version }: Settlement): CryptoSettlementState {
  return { crypto_settlement_id: id, status, version };
}

function getResult(
  mail: Pick<SettlementMailbox, 'opening'>,
  crypto_settlement_id: string,
): CryptoSettlementResult {
  return readResult(mail, { crypto_settlement_id, status: 'pending', version: 0 }, getState);
}

const WAITING_FOR: Record<CryptoSettlementStatus, Waiting> = {
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
};

const record = new ResourceRecord<SettlementKind, Settlement>({
  noun: 'crypto_settlement',
  waitingFor: WAITING_FOR,
  until: (settlement) => {
    const { facts, status } = settlement;
    const amount = ` (${formatUnits(facts.amount, facts)} to ${facts.wallet_address})`;
    return isSettlementEnded(status)
      ? amount
      : `${amount}, due ${new Date(dueAt(settlement)).toISOString()}`;
  },
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

function dueAt({ snoozedUntil, facts }: Settlement): number {
  return snoozedUntil ?? facts.due_at_ms;
}

const rules: InstructedLifecycle<SettlementKind, Settlement> = defineInstructed({
  kind: 'crypto_settlement',
  noun: 'settlement',
  workflowId: cryptoSettlementWorkflowId,
  messages,
  asksBank: true,
  record,
  isEnded: isSettlementEnded,
  isUnsent: (status) => status === 'pending',
  buildInstruction: (settlement) => {
    const { connector, crypto_settlement_id, livemode } = settlement.facts;
    const { asset, network, amount, wallet_address } = settlement.facts;
    const { once, patient } = moneyActivities<CryptoConnectorActivities>(connector, 'settlement');
    const money = { asset, network, amount, wallet_address, livemode };
    const ids = { crypto_settlement_id };
    return {
      send: () => once.sendSettlement({ ...ids, version: settlement.transition, ...money }),
      lookUp: () => patient.lookUpSettlement(ids),
    };
  },
  buildQuestion: ({ facts }) => {
    const { connector, crypto_settlement_id } = facts;
    const ask = askForOperator<CryptoConnectorActivities>(connector, 'settlement');
    return {
      cancel: () => ask(({ canceller }) => canceller.cancelSettlement({ crypto_settlement_id })),
      lookUp: () => ask(({ asker }) => asker.lookUpSettlement({ crypto_settlement_id })),
    };
  },
  readSnapshot: (input) => (activities) => activities.loadCryptoSettlement(input),
  decide: ({ status, facts }, name, { amount = facts.amount }) => {
    const decision = decideSettlement(status, name);
    const isDifferent = decision.kind === 'move' && name === 'completed' && amount !== facts.amount;
    return isDifferent ? differs(`the chain shows ${formatUnits(amount, facts)}`) : decision;
  },
  buildChange: (to, callback) => {
    const { transaction_id, bank_reference, network_fee } = callback;
    const isFinal = to.some(isSettlementEnded);
    const failure = describeFailure(callback, CRYPTO_SETTLEMENT_FAILURES.chain);
    return {
      ...(to.includes('failed') ? { failure } : {}),
      ...(transaction_id ? { transaction_id } : {}),
      ...(bank_reference ? { bank_reference } : {}),
      ...(isFinal && network_fee ? { network_fee } : {}),
    };
  },
  applyAnswer: async (settlement, answer) => {
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
  },
  suspend,
  /** An operator who ends a settlement does not know what the network took. */
  bookMore: async (settlement, { network_fee }) => {
    if (network_fee === undefined || !isSettlementEnded(settlement.status)) return;
    const { id: crypto_settlement_id } = settlement;
    const fee = { crypto_settlement_id, network_fee, at: timestamp(settlement) };
    await record.book(settlement, 'recordNetworkFee', fee);
  },
  findTaker: ({ status }, { direction }) =>
    direction === 'out' && !isSettlementEnded(status) ? 'mark_completed' : undefined,
  actFault: ({ status }, what) => stateFault(ACTS, status, what),
  transitions: {
    mark_completed: ({ status }) => ({ to: settlementPathTo(status, 'completed') }),
  },
  operatorFailure: { failure: CRYPTO_SETTLEMENT_FAILURES.operator },
  dueAt,
  getOverdueReason: (status) => (isSettlementEnded(status) ? undefined : 'settlement_overdue'),
  getState,
  getResult,
});

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
  const settlement = newInstructed<SettlementKind>(
    mail,
    resource_id,
    { ...opening, attention: null },
    false,
  );
  if (input.amount === null) {
    const assetAmount = formatUnits(opening.facts.amount, input);
    upsertLabels(settlement, { ...settlement.labels, assetAmount });
  }
  return beginInstructed(rules, settlement);
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
