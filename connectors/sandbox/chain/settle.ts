import type { ClientSession, Collection, Db, MongoClient } from 'mongodb';
import { inTransaction, isDuplicateKey } from '../../../src/base/mongo';
import { type AssetPair, assetRules } from '../../../src/domain/crypto/assets';
import type { CancelAnswer, Outdated } from '../../contract/activities';
import type {
  SettlementAnswer,
  SettlementInstruction,
  SettlementLookup,
} from '../../contract/crypto';
import { type Attempt, beginAttempt } from '../../contract/guard';
import { getBehavior } from '../magic-amounts';
import { SETTLEMENT_MAGIC_AMOUNTS } from './magic-amounts';
import { planSettlement, type SettlementBehavior, transactionId } from './plan';
import type { TransactionStore } from './transactions';

interface BookedSettlement {
  _id: string;
  /** Null if it was cancelled before it arrived. */
  instruction: SettlementInstruction | null;
  /** First answer; null if the instruction got lost. */
  answer: SettlementAnswer | null;
  created_at: Date;
}

type SettlementBook = ReturnType<typeof createSettlementBook>;

export function createSettlementBook(db: Db, now: () => Date) {
  const entries: Collection<BookedSettlement> = db.collection('chain_settlements');
  return {
    get: (_id: string) => entries.findOne({ _id }),
    /** Loses only the first instruction of an id. @returns whether it did */
    lose: async (instruction: SettlementInstruction): Promise<boolean> => {
      const { upsertedCount } = await entries.updateOne(
        { _id: instruction.crypto_settlement_id },
        { $setOnInsert: { instruction, answer: null, created_at: now() } },
        { upsert: true },
      );
      return upsertedCount === 1;
    },
    /** @throws a duplicate key error for an answered instruction */
    record: async (
      _id: string,
      instruction: SettlementInstruction | null,
      answer: SettlementAnswer,
      session: ClientSession,
    ): Promise<void> => {
      const entry = { instruction, answer, created_at: now() };
      // A lost entry is replaced; with any other the insert fails on its ID.
      await entries.replaceOne({ _id, answer: null }, entry, { upsert: true, session });
    },
  };
}

export interface SettlementDeps {
  mongo: MongoClient;
  settlements: SettlementBook;
  transactions: TransactionStore;
  autoplay: boolean;
  now: () => Date;
  /** @see connectors/contract/guard.ts */
  findOutdated: (instruction: SettlementInstruction) => Promise<Outdated | undefined>;
}

/**
 * Writes answer and transaction together; a repeat is answered from the book.
 * @throws Error if the sandbox simulates a lost instruction or answer
 */
export async function sendSettlement(
  deps: SettlementDeps,
  instruction: SettlementInstruction,
): Promise<SettlementAnswer | Outdated> {
  const { crypto_settlement_id, asset, network, amount, livemode } = instruction;
  const attempt = beginAttempt(deps.now);
  const networkAsset = assetRules(asset, network);
  if (livemode || networkAsset === undefined) {
    const message = 'The sandbox chain sends no such settlements.';
    return { outcome: 'refused', code: 'live_not_supported', message };
  }
  const existing = await lookUpSettlement(deps, crypto_settlement_id);
  if (existing.outcome !== 'not_found') return existing;
  const outdated = await deps.findOutdated(instruction);
  if (outdated !== undefined) return outdated;
  const behavior = getBehavior(SETTLEMENT_MAGIC_AMOUNTS, Number(amount));
  if (behavior === 'instruction_lost' && (await deps.settlements.lose(instruction))) {
    throw new Error('The instruction got lost in transit to the chain.');
  }
  const answer = await recordSettlement({ ...deps, attempt }, networkAsset, instruction, behavior);
  if (behavior === 'answer_lost') throw new Error('The answer of the chain got lost.');
  return answer;
}

export async function lookUpSettlement(
  { settlements }: Pick<SettlementDeps, 'settlements'>,
  id: string,
): Promise<SettlementLookup> {
  return (await settlements.get(id))?.answer ?? { outcome: 'not_found' };
}

const CANCELLED: SettlementAnswer = {
  outcome: 'refused',
  code: 'cancelled',
  message: 'The settlement was cancelled before it reached the chain.',
};

/** Refuses a settlement that has not arrived, also when it arrives later. */
export async function cancelSettlement(
  { mongo, settlements }: Pick<SettlementDeps, 'mongo' | 'settlements'>,
  id: string,
): Promise<CancelAnswer> {
  try {
    await inTransaction(mongo, (session) => settlements.record(id, null, CANCELLED, session));
    return { outcome: 'cancelled' };
  } catch (error) {
    const first = isDuplicateKey(error) ? await settlements.get(id) : null;
    if (first?.answer == null) throw error;
    return { outcome: first.answer.outcome === 'refused' ? 'cancelled' : 'too_late' };
  }
}

async function recordSettlement(
  { mongo, settlements, transactions, autoplay, attempt }: SettlementDeps & { attempt: Attempt },
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
      attempt.assertInTime();
      await settlements.record(resource_id, instruction, answer, session);
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
