import { ApplicationFailure } from '@temporalio/activity';
import type { ClientSession, MongoClient } from 'mongodb';
import { NO_TURN } from '../src/domain/turn';
import { inTurn, type Turn } from '../src/ledger/turns';
import { Contention, inTransaction } from '../src/mongo';

/** Time within which a debit that nobody waits for should be done. */
const DUE_MS = 10_000;

/**
 * Runs a transaction that takes from a balance, in its turn.
 * @throws ApplicationFailure `no_turn`, with the time to come again: the attempt gives its slot free
 */
export async function inDebitTurn<T>(
  { mongo }: { mongo: MongoClient },
  turn: Turn,
  work: (session: ClientSession) => Promise<T>,
): Promise<T> {
  try {
    return await inTurn(turn, () => inTransaction(mongo, work));
  } catch (error) {
    if (!(error instanceof Contention)) throw error;
    const { message, retryMs: nextRetryDelay } = error;
    throw ApplicationFailure.create({ message, type: NO_TURN, nextRetryDelay });
  }
}

/** Turn of a debit that was decided at a time: the longer it has waited, the sooner it comes. */
export function debitTurn(book: string, decidedAt: string): Turn {
  return { book, by: Date.parse(decidedAt) + DUE_MS };
}
