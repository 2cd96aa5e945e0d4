import { cancellationSignal, heartbeat } from '@temporalio/activity';
import type { MongoClient } from 'mongodb';
import type { Logger } from '../../src/base/log';
import type { LedgerCheckResult } from '../../src/domain/operators/ledger-check';
import { checkLedger } from '../../src/service/operators/ledger';
import { createLedgerCheckStore } from '../../src/store/metrics';
import { reportProgress } from '../shared/record';

const HEARTBEAT_MS = 10_000;
const FULL_EVERY_MS = 7 * 86_400_000;
const NAMED_MAX = 20;

export interface LedgerCheckDeps {
  openLongReader: () => Promise<MongoClient>;
  database: string;
  log: Pick<Logger, 'error'>;
  now: () => Date;
  noteRun: () => Promise<unknown>;
}

export type LedgerCheckActivities = ReturnType<typeof createLedgerCheckActivities>;

export function createLedgerCheckActivities(deps: LedgerCheckDeps) {
  return {
    /** Verifies all books, once a week also what is behind the checkpoints. */
    verifyBooks: (): Promise<LedgerCheckResult> => verifyBooks(deps),
  };
}

async function verifyBooks(deps: LedgerCheckDeps): Promise<LedgerCheckResult> {
  const { database, now } = deps;
  const client = await deps.openLongReader();
  const timer = setInterval(heartbeat, HEARTBEAT_MS);
  const signal = cancellationSignal();
  // One read may take longer than a worker has to stop.
  signal.addEventListener('abort', () => void client.close().catch(() => undefined));
  try {
    const last = await createLedgerCheckStore(client.db(database)).last();
    const sinceFull = now().getTime() - Date.parse(last?.full_at ?? '');
    const full = !(sinceFull < FULL_EVERY_MS);
    const { books, postings, differences, differences_total } = await checkLedger(
      client,
      database,
      {
        full,
        isMigrated: true,
        now,
        progress: reportProgress,
      },
    );
    if (differences_total > 0) deps.log.error({ count: differences_total }, 'the ledger differs');
    await deps.noteRun();
    const named = differences
      .slice(0, NAMED_MAX)
      .map(({ check, subject, part }) => `${check}: ${subject} ${part ?? ''}`.trim());
    return { full, books, postings, differences: differences_total, named };
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    clearInterval(timer);
    await client.close();
  }
}
