import { ApplicationFailure } from '@temporalio/activity';
import type { ClientSession, MongoClient } from 'mongodb';
import { NO_TURN } from '../src/domain/turn';
import { inTurn, type Turn } from '../src/ledger/turns';
import type { Logger } from '../src/log';
import { Contention, inTransaction } from '../src/mongo';
import type { Stores } from '../src/store';

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
  return await unlessContended(() => inTurn(turn, () => inTransaction(mongo, work)));
}

/** @throws ApplicationFailure `no_turn`, with the time to come again: the attempt gives its slot free */
export async function unlessContended<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
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

/** Ending of the ids after whose moves a book is folded: of one resource in 256. */
const FOLDING = '00';

/**
 * Takes open postings into their book after every 256th move, so that few are open. Nobody needs it
 * now: without a turn, or with the database away, it is left to the next one.
 */
export async function foldOften(
  { mongo, stores, log }: { mongo: MongoClient; stores: Stores; log: Logger },
  resource_id: string,
  book: string,
): Promise<void> {
  if (!resource_id.endsWith(FOLDING)) return;
  const fold = (session: ClientSession) => stores.ledger.fold(book, session);
  try {
    const turn = { book, by: Number.MAX_SAFE_INTEGER };
    await inTurn(turn, () => inTransaction(mongo, fold));
  } catch (err) {
    log.debug({ err }, 'book not folded');
  }
}
