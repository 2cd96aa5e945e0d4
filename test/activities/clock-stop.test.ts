import { CancelledFailure } from '@temporalio/activity';
import type { Client } from '@temporalio/client';
import { MockActivityEnvironment } from '@temporalio/testing';
import { createClockActivities } from '../../activities/clock';
import { connectTemporal } from '../../src/temporal/connect';
import { storedPayout } from '../api/payout-setting';
import { useDatabase } from '../support/database';
import { useFixture } from '../support/fixture';
import { temporalAddress } from '../support/servers';

const OFFSET = { account_id: 'acct_clock', offset_ms: 60_000 };

const database = useDatabase();
const temporal = useFixture(
  async () => connectTemporal({ address: temporalAddress(), namespace: 'default' }),
  ({ connection }) => connection.close(),
);

beforeAll(async () => {
  const row = storedPayout(OFFSET, { status: 'submitted' });
  await database.db.collection<typeof row>('payouts').insertOne(row);
});

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
