import { randomUUID } from 'node:crypto';
import { CancelledFailure } from '@temporalio/activity';
import { MockActivityEnvironment } from '@temporalio/testing';
import { createLedgerCheckActivities } from '../../../activities/schedules/ledger';
import { connectLongReader } from '../../../src/base/mongo-reads';
import type { LedgerCheckResult } from '../../../src/domain/ledger-check';
import { SEARCH_KEYS } from '../../../src/domain/search-attributes';
import { createMetricStore } from '../../../src/store/metrics';
import { openShop } from '../../api/payout-setting';
import { saveHistory } from '../../support/histories';
import { mongodbUri } from '../../support/servers';
import { useService } from '../../support/service';

const service = useService();

async function check(history: string) {
  const handle = await service.temporal.workflow.start<() => Promise<LedgerCheckResult>>(
    'ledgerCheck',
    { taskQueue: service.queues.lifecycle, workflowId: `ledger-${randomUUID()}` },
  );
  const result = await handle.result();
  await saveHistory(handle, history);
  const { typedSearchAttributes } = await handle.describe();
  return { result, attention: typedSearchAttributes.get(SEARCH_KEYS.attention) };
}

const readMetrics = () => createMetricStore(service.db).read(new Date());

test('the ledger is checked by itself, wholly once a week, and what differs is shown', async () => {
  await openShop(service);
  const first = await check('schedule-ledger');
  expect(first.result).toMatchObject({ full: true, differences: 0, named: [] });
  expect(first.result.postings).toBeGreaterThan(0);
  expect(first.attention).toBeUndefined();
  const { ledger, schedules } = await readMetrics();
  expect(ledger).toMatchObject({ differences: 0, full_at: ledger?.checked_at });
  expect(schedules).toEqual([{ schedule: 'ledger', succeeded_at: expect.any(String) }]);

  const { books } = service.stores.ledger.collections;
  const book = await books.findOne({});
  await books.updateOne({ _id: book?._id ?? '' }, { $inc: { 'balances.main.available': 1 } });
  const second = await check('schedule-ledger-differs');
  expect(second.attention).toBe('ledger_differs');
  expect(second.result).toMatchObject({
    full: false,
    differences: 2,
    named: expect.arrayContaining([`balance_differs: ${book?._id} balances.main.available`]),
  });
  expect((await readMetrics()).ledger).toMatchObject({ differences: 2, full_at: ledger?.full_at });
});

test('a check whose worker stops ends, and counts as no run', async () => {
  await openShop(service);
  const environment = new MockActivityEnvironment();
  let runs = 0;
  const { verifyBooks } = createLedgerCheckActivities({
    openLongReader: () => connectLongReader(mongodbUri(), 'test'),
    database: service.db.databaseName,
    log: { error: () => undefined },
    now: () => {
      environment.cancel();
      return new Date();
    },
    noteRun: async () => {
      runs += 1;
    },
  });
  await expect(environment.run(verifyBooks)).rejects.toBeInstanceOf(CancelledFailure);
  expect(runs).toBe(0);
});
