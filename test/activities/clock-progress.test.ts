import { CancelledFailure } from '@temporalio/activity';
import type { Client } from '@temporalio/client';
import { MockActivityEnvironment } from '@temporalio/testing';
import { createClockActivities } from '../../activities/clock';
import { connectTemporal } from '../../src/temporal/connect';
import { storedPayout } from '../api/payout-setting';
import { useDatabase } from '../support/database';
import { useFixture } from '../support/fixture';
import { temporalAddress } from '../support/servers';

const BATCH = 20;
const OFFSET = { account_id: 'acct_clock', offset_ms: 60_000 };

const database = useDatabase();
const temporal = useFixture(
  async () => connectTemporal({ address: temporalAddress(), namespace: 'default' }),
  ({ connection }) => connection.close(),
);

const payoutName = (n: number) => `payout-${`${n}`.padStart(2, '0')}`;
beforeAll(async () => {
  const rows = Array.from({ length: 2 * BATCH + 1 }, (_, n) =>
    storedPayout(OFFSET, { _id: payoutName(n), status: 'submitted' }),
  );
  await database.db.collection<(typeof rows)[number]>('payouts').insertMany(rows);
});

/** A try that continues from what an earlier one reported. @param failsAfter payout */
async function advance(heartbeatDetails: unknown, failsAfter?: string) {
  const pages: string[] = [];
  const payouts = {
    ...database.stores.payouts,
    inFlightOf: async (account_id: string, after: string, limit: number) => {
      if (after === failsAfter) throw new Error('killed');
      pages.push(after);
      return await database.stores.payouts.inFlightOf(account_id, after, limit);
    },
  };
  const heartbeats: unknown[] = [];
  const environment = new MockActivityEnvironment({ heartbeatDetails });
  environment.on('heartbeat', (details: unknown) => heartbeats.push(details));
  const stores = { ...database.stores, payouts };
  const { advanceResources } = createClockActivities({ stores, temporal, now: () => new Date() });
  const run = environment.run(() => advanceResources(OFFSET));
  return { stop: await run.catch((error: Error) => error.message), pages, heartbeats };
}

test('a try continues where the one before was, and forgets nothing that it found', async () => {
  const found = { due_at_ms: 1_800_000_000_000, waiting: ['payment-1'] };
  const first = await advance(
    { kind: 'refund', after: 'refund-1', stop: found },
    payoutName(BATCH - 1),
  );
  expect(first).toMatchObject({ stop: 'killed', pages: [''] });
  const place = { kind: 'payout', after: payoutName(BATCH - 1), stop: found };
  expect(first.heartbeats).toEqual([
    { kind: 'refund', after: 'refund-1', stop: found },
    { kind: 'payout', after: '', stop: found },
    place,
  ]);
  const second = await advance(place);
  expect(second.pages).toEqual([payoutName(BATCH - 1), payoutName(2 * BATCH - 1)]);
  expect(second.stop).toEqual(found);
});

test.each([undefined, 3, { kind: 'payout' }])(
  'a try after the report %j begins at the start',
  async (report) => {
    const { stop, pages } = await advance(report);
    expect(pages).toEqual(['', payoutName(BATCH - 1), payoutName(2 * BATCH - 1)]);
    expect(stop).toEqual({ due_at_ms: null, waiting: [] });
  },
);

test('a try ends as its worker stops, though no workflow answers', async () => {
  const environment = new MockActivityEnvironment();
  const withDeadline = () => {
    environment.cancel();
    return new Promise(() => undefined);
  };
  const silent: Client = Object.create(temporal, { withDeadline: { value: withDeadline } });
  const deps = { stores: database.stores, temporal: silent, now: () => new Date() };
  const run = environment.run(() => createClockActivities(deps).advanceResources(OFFSET));
  await expect(run).rejects.toBeInstanceOf(CancelledFailure);
});
