import type { MongoClient } from 'mongodb';
import { assetRules, type Coin } from '../../../src/domain/crypto';
import { inTransaction, isDuplicateKey } from '../../../src/mongo';
import type {
  SettlementAnswer,
  SettlementInstruction,
  SettlementLookup,
} from '../../contract/crypto';
import { transactionId } from './blocks';
import { type SettlementBehaviour, settlementBehaviourOf } from './magic-amounts';
import { planSettlement } from './plan';
import type { SettlementBook } from './settlements';
import type { TransactionStore } from './transactions';

export interface SettlementDeps {
  mongo: MongoClient;
  settlements: SettlementBook;
  transactions: TransactionStore;
  /** Whether completions follow by themselves. */
  autoplay: boolean;
  /** Holds an instruction against the product's record. */
  assertCurrent: (instruction: SettlementInstruction) => Promise<void>;
}

/**
 * Writes answer and transaction in one write; a repeat answers from the book, so that there is one
 * transaction on the chain however often it is asked for.
 * @throws Error where the sandbox plays that the instruction, or the answer to it, got lost
 */
export async function sendSettlement(
  deps: SettlementDeps,
  instruction: SettlementInstruction,
): Promise<SettlementAnswer> {
  const { crypto_settlement_id, asset, network, amount, livemode } = instruction;
  const coin = assetRules(asset, network);
  if (livemode || coin === undefined) {
    const message = 'The sandbox chain sends no such settlements.';
    return { outcome: 'refused', code: 'live_not_supported', message };
  }
  const known = await lookUpSettlement(deps, crypto_settlement_id);
  if (known.outcome !== 'not_found') return known;
  await deps.assertCurrent(instruction);
  const behaviour = settlementBehaviourOf(amount);
  if (behaviour === 'instruction_lost' && (await deps.settlements.lose(instruction))) {
    throw new Error('The instruction got lost on its way to the chain.');
  }
  const answer = await book(deps, coin, instruction, behaviour);
  if (behaviour === 'answer_lost') throw new Error('The answer of the chain got lost.');
  return answer;
}

export async function lookUpSettlement(
  { settlements }: Pick<SettlementDeps, 'settlements'>,
  id: string,
): Promise<SettlementLookup> {
  return (await settlements.get(id))?.answer ?? { outcome: 'not_found' };
}

async function book(
  { mongo, settlements, transactions, autoplay }: SettlementDeps,
  { asset, network }: Coin,
  instruction: SettlementInstruction,
  behaviour: SettlementBehaviour,
): Promise<SettlementAnswer> {
  const { crypto_settlement_id: resource_id, amount } = instruction;
  const _id = transactionId(network, resource_id);
  const answer = answerTo(behaviour, _id);
  const steps = planSettlement(behaviour, autoplay);
  const subject = { resource: 'crypto_settlement', resource_id } as const;
  try {
    await inTransaction(mongo, async (session) => {
      await settlements.record(instruction, answer, session);
      if (answer.outcome === 'refused') return;
      const moved = { _id, ...subject, network, asset, amount, listed: false, steps };
      await transactions.add(moved, session);
    });
    return answer;
  } catch (error) {
    const first = isDuplicateKey(error) ? await settlements.get(resource_id) : null;
    if (first?.answer == null) throw error;
    return first.answer;
  }
}

function answerTo(behaviour: SettlementBehaviour, transaction_id: string): SettlementAnswer {
  if (behaviour === 'waits') return { outcome: 'pending' };
  if (behaviour !== 'refused') return { outcome: 'sent', transaction_id };
  const message = 'The sandbox chain refuses this amount.';
  return { outcome: 'refused', code: 'settlement_refused', message };
}
