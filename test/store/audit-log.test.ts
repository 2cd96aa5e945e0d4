import type { Change } from '../../src/store/audit';
import { operatorsAudit } from '../support/audit';
import { useDatabase } from '../support/database';

const database = useDatabase();

test('live keys, live wallets and freezes count for the alert; sandbox ones and old ones do not', async () => {
  const audit = operatorsAudit(database.stores);
  const { auditLog } = database.stores;
  const add = (act: Change['act'], livemode: boolean | null) =>
    audit({ act, account_id: 'acct_1', livemode, target: null });
  await add('api_key.created', true);
  await add('api_key.created', true);
  await add('api_key.created', false);
  await add('wallet.set', true);
  await add('wallet.set', false);
  await add('account.frozen', null);
  await add('account.unfrozen', null);
  expect(await auditLog.countWatched('2026-01-01T00:00:00.000Z')).toEqual([
    { act: 'api_key.created', count: 2 },
    { act: 'wallet.set', count: 1 },
    { act: 'account.frozen', count: 1 },
  ]);
  const counts = await auditLog.countWatched('9999-01-01T00:00:00.000Z');
  expect(counts.map(({ count }) => count)).toEqual([0, 0, 0]);
});
