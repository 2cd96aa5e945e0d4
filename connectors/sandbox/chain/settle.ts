import type { MongoClient } from 'mongodb';
import { inTransaction, isDuplicateKey } from '../../../src/base/mongo';
import { type AssetPair, assetRules } from '../../../src/domain/crypto/assets';
import type { Outdated } from '../../contract/activities';
import type {
  SettlementAnswer,
  SettlementInstruction,
  SettlementLookup,
} from '../../contract/crypto';
import { transactionId } from './blocks';
import { getSettlementBehavior, type SettlementBehavior } from './magic-amounts';
import { planSettlement } from './plan';
import type { SettlementBook } from './settlements';
import type { TransactionStore } from './transactions';

export interface SettlementDeps {
  mongo: MongoClient;
  settlements: SettlementBook;
  transactions: TransactionStore;
  /** Whether completions follow by themselves. */
  autoplay: boolean;
  /** Compares an instruction with the product's document. @see connectors/contract/guard.ts */
  findOutdated: (instruction: SettlementInstruction) => Promise<Outdated | undefined>;
}

/**
 * Writes answer and transaction in one write; a repeat answers from the book, so that there is one
 * transaction on the chain however often it is asked for.
 * @throws Error where the sandbox plays that the instruction, or the answer to it, got lost
 */
export async function sendSettlement(
  deps: SettlementDeps,
  instruction: SettlementInstruction,
): Promise<SettlementAnswer | Outdated> {
  const { crypto_settlement_id, asset, network, amount, livemode } = instruction;
  const networkAsset = assetRules(asset, network);
  if (livemode || networkAsset === undefined) {
    const message = 'The sandbox chain sends no such settlements.';
    return { outcome: 'refused', code: 'live_not_supported', message };
  }
  const existing = await lookUpSettlement(deps, crypto_settlement_id);
  if (existing.outcome !== 'not_found') return existing;
  const outdated = await deps.findOutdated(instruction);
  if (outdated !== undefined) return outdated;
  const behavior = getSettlementBehavior(amount);
  if (behavior === 'instruction_lost' && (await deps.settlements.lose(instruction))) {
    throw new Error('The instruction got lost on its way to the chain.');
  }
  const answer = await recordSettlement(deps, networkAsset, instruction, behavior);
  if (behavior === 'answer_lost') throw new Error('The answer of the chain got lost.');
  return answer;
}

export async function lookUpSettlement(
  { settlements }: Pick<SettlementDeps, 'settlements'>,
  id: string,
): Promise<SettlementLookup> {
  return (await settlements.get(id))?.answer ?? { outcome: 'not_found' };
}

async function recordSettlement(
  { mongo, settlements, transactions, autoplay }: SettlementDeps,
  { asset, network }: AssetPair,
  instruction: SettlementInstruction,
  behavior: SettlementBehavior,
): Promise<SettlementAnswer> {
  const { crypto_settlement_id: resource_id, amount } = instruction;
  const _id = transactionId(network, resource_id);
  const answer = buildAnswer(behavior, _id);
  const steps = planSettlement(behavior, autoplay);
  const subject = { resource: 'crypto_settlement', resource_id } as const;
  try {
    await inTransaction(mongo, async (session) => {
      await settlements.record(instruction, answer, session);
      if (answer.outcome === 'refused') return;
      const transaction = { _id, ...subject, network, asset, amount, listed: false, steps };
      await transactions.add(transaction, session);
    });
    return answer;
  } catch (error) {
    const first = isDuplicateKey(error) ? await settlements.get(resource_id) : null;
    if (first?.answer == null) throw error;
    return first.answer;
  }
}

function buildAnswer(behavior: SettlementBehavior, transaction_id: string): SettlementAnswer {
  if (behavior === 'waits') return { outcome: 'pending' };
  if (behavior !== 'refused') return { outcome: 'sent', transaction_id };
  const message = 'The sandbox chain refuses this amount.';
  return { outcome: 'refused', code: 'settlement_refused', message };
}
