import {
  allHandlersFinished,
  CancellationScope,
  condition,
  continueAsNew,
} from '@temporalio/workflow';
import { assertNever } from '../../src/domain/assert';
import { formatUnits } from '../../src/domain/crypto';
import type {
  CryptoCallback,
  CryptoSettlementCallbackName,
} from '../../src/domain/crypto-callback';
import {
  CRYPTO_SETTLEMENT_FAILURES,
  cryptoSettlementWorkflowId,
  decideSettlement,
  isSettlementEnded,
  settlementWayTo,
} from '../../src/domain/crypto-settlement';
import type {
  CryptoSettlementInput,
  CryptoSettlementResult,
  CryptoSettlementResume,
  CryptoSettlementStart,
} from '../../src/domain/crypto-workflow';
import type { Due } from '../shared/alarm';
import { givenBefore, takingBack } from '../shared/bank-instruction';
import { listen, untilOpened } from '../shared/handlers';
import { note } from '../shared/life';
import { type Opening, openMailbox } from '../shared/mailbox';
import { writeScheduled } from '../shared/persist';
import { assertIdentity } from '../shared/refusal';
import { runUntilFinal } from '../shared/run-loop';
import { showRefusal, upsertLabels } from '../shared/view';
import { actFault, applyAct } from './acts';
import { instructSettlement } from './bank';
import {
  dueAt,
  newSettlement,
  record,
  resultIn,
  type Settlement,
  type SettlementActed,
  type SettlementItem,
  type SettlementMailbox,
  stateOf,
} from './life';
import { messages } from './messages';

/**
 * The life of one settlement: accepted with its money reserved, or refused; then sent by the
 * connector in one transaction, and moved by the chain until it is final.
 * @see docs/api.md#settlements
 */
export async function cryptoSettlement(
  start: CryptoSettlementStart,
): Promise<CryptoSettlementResult> {
  const { crypto_settlement_id } = Object(start);
  assertIdentity('crypto_settlement_id', crypto_settlement_id, cryptoSettlementWorkflowId);
  const mail: SettlementMailbox = openMailbox();
  listen(mail, messages, {
    noun: 'settlement',
    resumed: 'resume' in start,
    state: () => resultIn(mail, start.crypto_settlement_id),
    opened: async () => stateOf(await untilOpened(mail)),
    actFault,
  });
  // A cancel request from the Temporal UI must not leave money half moved: it is not heeded.
  return await CancellationScope.nonCancellable(async () => {
    const opening = 'resume' in start ? await load(mail, start) : await open(mail, start);
    mail.opening = opening;
    if (opening.outcome === 'refused') await condition(allHandlersFinished);
    else await live(mail, opening.resource);
    return resultIn(mail, start.crypto_settlement_id);
  });
}

async function open(
  mail: SettlementMailbox,
  input: CryptoSettlementInput,
): Promise<Opening<Settlement>> {
  const created_at = new Date().toISOString();
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
  record.show(settlement);
  const writtenAt = opening.isFresh === true ? Date.parse(created_at) : undefined;
  void instructSettlement(settlement, undefined, writtenAt);
  return { outcome: 'accepted', resource: settlement };
}

async function load(
  mail: SettlementMailbox,
  start: CryptoSettlementResume,
): Promise<Opening<Settlement>> {
  const { crypto_settlement_id: resource_id, request_id } = start;
  const loaded = await writeScheduled((activities) =>
    activities.loadCryptoSettlement({ resource_id, request_id }),
  );
  const settlement = newSettlement(mail, resource_id, loaded, true);
  settlement.overdueTold = settlement.attention === 'settlement_overdue';
  const ended = isSettlementEnded(settlement.status);
  record.tell(settlement, ended ? 'Started again after the end.' : 'Started again in flight.');
  if (settlement.status === 'pending') void instructSettlement(settlement, givenBefore());
  return { outcome: 'accepted', resource: settlement };
}

type Resuming = (start: CryptoSettlementResume) => Promise<CryptoSettlementResult>;

function live({ inbox }: SettlementMailbox, settlement: Settlement): Promise<void> {
  return runUntilFinal({
    inbox,
    handle: async (item) => {
      await handle(settlement, item);
      // Those who wait for the connector's answer need not wait for one that no longer matters.
      if (settlement.status !== 'pending') answerResubmits(settlement, {});
    },
    isFinal: () => isSettlementEnded(settlement.status) && settlement.sendings.size === 0,
    nextDue: () => nextDue(settlement),
    isIdle: () => settlement.sendings.size === 0 && settlement.resubmits.length === 0,
    startAfresh: () =>
      continueAsNew<Resuming>({
        crypto_settlement_id: settlement.id,
        resume: true,
        request_id: settlement.facts.request_id,
      }),
  });
}

/** Handles an item whole: all that it changes is written when this returns. */
async function handle(settlement: Settlement, item: SettlementItem): Promise<void> {
  switch (item.kind) {
    case 'callback':
      return await record.heed(settlement, item, () =>
        applyCallback(settlement, item.name, item.callback),
      );
    case 'malformed':
      note(settlement, `unreadable callback \`${item.name}\`: ${item.fault}`);
      return await record.markMalformed(settlement);
    case 'answer':
      return await applyAnswer(settlement, item);
    case 'outdated':
      return await adopt(settlement);
    case 'operator':
      return await applyAct(settlement, item);
    default:
      assertNever(item);
  }
}

async function applyCallback(
  settlement: Settlement,
  name: CryptoSettlementCallbackName,
  callback: CryptoCallback,
): Promise<void> {
  const { callback_id, transaction_id, amount, code, reason, bank_reference } = callback;
  if (settlement.applied.has(callback_id)) {
    return record.tell(settlement, `callback \`${name}\` (${callback_id}): applied before`);
  }
  const decision = decideSettlement(settlement.status, name);
  note(settlement, `callback \`${name}\` (${callback_id}): ${decision.kind}`);
  switch (decision.kind) {
    case 'move': {
      if (name === 'completed' && amount !== undefined && amount !== settlement.facts.amount) {
        const differs = `the chain shows ${formatUnits(amount, settlement.facts)}`;
        await record.recordUnapplied(settlement, name, callback, differs);
        return await record.setAttention(settlement, 'amount_differs');
      }
      // Nothing is sent behind the connector's own word, also while that is being written.
      if (decision.to.includes('failed')) settlement.instruction += 1;
      const { chain } = CRYPTO_SETTLEMENT_FAILURES;
      const failure = { code: code ?? chain.code, message: reason ?? chain.message };
      const change = {
        ...(decision.to.includes('failed') ? { failure } : {}),
        ...(transaction_id ? { transaction_id } : {}),
        ...(bank_reference ? { bank_reference } : {}),
      };
      return await record.move(settlement, decision.to, { change, callback_id, scheduled: true });
    }
    case 'unapplied':
      await record.recordUnapplied(settlement, name, callback, decision.reason);
      if (decision.attention !== undefined) {
        await record.setAttention(settlement, decision.attention);
      }
      return;
    default:
      assertNever(decision);
  }
}

async function applyAnswer(
  settlement: Settlement,
  { answer }: Extract<SettlementItem, { kind: 'answer' }>,
): Promise<void> {
  record.tell(settlement, `instruction at the connector: ${answer.outcome}`);
  if (answer.outcome === 'sent') settlement.transactionId = answer.transaction_id;
  if (settlement.status === 'failed' && answer.outcome !== 'refused') {
    return await record.setAttention(settlement, 'moved_after_failed');
  }
  if (settlement.status !== 'pending') return;
  if (answer.outcome === 'refused') {
    const failure = { code: answer.code, message: answer.message };
    await record.move(settlement, ['failed'], { change: { failure }, scheduled: true });
  } else if (answer.outcome === 'sent') {
    await record.move(settlement, settlementWayTo('pending', 'sent'), { scheduled: true });
  }
  answerResubmits(settlement, { bank: answer.outcome });
}

function answerResubmits(settlement: Settlement, said: Pick<SettlementActed, 'bank'>): void {
  for (const answer of settlement.resubmits.splice(0)) {
    answer.resolve({ ...stateOf(settlement), ...said });
  }
}

function nextDue(settlement: Settlement): Due | undefined {
  if (isSettlementEnded(settlement.status)) return takingBack(settlement);
  if (settlement.overdueTold) return undefined;
  const act = () => record.markOverdue(settlement, 'settlement_overdue');
  return { at: dueAt(settlement), summary: 'The settlement is due', act };
}

/** Goes on from where the record stands; the connector is asked before anything is sent again. */
async function adopt(settlement: Settlement): Promise<void> {
  await record.adopt(settlement);
  if (settlement.status === 'pending') void instructSettlement(settlement, givenBefore());
}
