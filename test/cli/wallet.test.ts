import { inTransaction } from '../../src/base/mongo';
import { ENTRY_LINES } from '../../src/ledger/entry-lines';
import { openAccount } from '../support/service';
import { useProvisioning } from './cli';

const FIRST = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed';
const SECOND = '0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359';
const DAY_MS = 86_400_000;

const service = useProvisioning();

function set(account: string, env: string, address: string, network = 'ethereum') {
  const named = ['--env', env, '--network', network, '--address', address];
  return service.json('wallet', 'set', account, ...named);
}

test('a wallet takes effect at once in the sandbox', async () => {
  const { account_id } = await openAccount(service.stores, {});
  const wallet = await set(account_id, 'sandbox', FIRST);
  expect(wallet).toMatchObject({ network: 'ethereum', address: FIRST, counting: FIRST });
  const shown = await service.json('wallet', 'show', account_id, '--env', 'sandbox');
  expect(shown).toEqual({ data: [wallet] });
  expect(await service.json('wallet', 'show', account_id, '--env', 'live')).toEqual({ data: [] });
  expect(await set(account_id, 'sandbox', FIRST)).toEqual(wallet);
  const lines = await service.db.collection('audit_log').find({ account_id }).toArray();
  expect(lines.filter(({ act }) => act === 'wallet.set')).toEqual([
    expect.objectContaining({
      livemode: false,
      target: 'ethereum',
      actor: expect.objectContaining({ door: 'command_line' }),
      before: null,
      after: { address: FIRST, counts_from: expect.any(String), counting: FIRST },
    }),
  ]);
});

test('a wallet on live takes effect after 24 hours, and its predecessor receives nothing until then', async () => {
  const { account_id } = await openAccount(service.stores, {});
  const first = await set(account_id, 'live', FIRST);
  expect(first).toMatchObject({ counting: null, previous: null });
  expect(await set(account_id, 'live', FIRST)).toEqual(first);
  const { wallets } = service.stores;
  const stored = await wallets.get(account_id, true, 'ethereum');
  const countsIn = Date.parse(stored?.counts_from ?? '') - Date.parse(stored?.set_at ?? '');
  expect(countsIn).toBe(DAY_MS);
  // A day later it is replaced.
  const past = new Date(Date.now() - 1_000).toISOString();
  await service.db.collection('wallets').updateOne({ account_id }, { $set: { counts_from: past } });
  const second = await set(account_id, 'live', SECOND);
  expect(second).toMatchObject({ address: SECOND, counting: null, previous: FIRST });
  expect(second).toMatchObject({ paused_until: Object(second).counts_from });
  const { stdout } = await service.cli('wallet', 'show', account_id, '--env', 'live');
  expect(stdout).toContain('nothing until ');
});

test('a wrong checksum, network or account is refused', async () => {
  const { account_id } = await openAccount(service.stores, {});
  const refused = async (account: string, address: string, network = 'ethereum') => {
    const options = ['--env', 'live', '--network', network, '--address', address, '--json'];
    return await service.cli('wallet', 'set', account, ...options);
  };
  for (const [outcome, code] of [
    [await refused(account_id, FIRST.toLowerCase()), 'address_invalid'],
    [await refused(account_id, FIRST, 'bitcoin'), 'address_invalid'],
    [await refused(account_id, FIRST, 'dogecoin'), 'invalid_usage'],
    [await refused('acct_none', FIRST), 'account_not_found'],
  ] as const) {
    expect([outcome.exit, JSON.parse(outcome.stderr).error.code]).toEqual([1, code]);
  }
});

test('balance show has a row for each asset, exact at any size', async () => {
  const { account_id } = await openAccount(service.stores, {});
  const { mongo, ledger } = { mongo: service.db.client, ledger: service.stores.ledger };
  const at = new Date().toISOString();
  const about = { account_id, livemode: true, at, resource_id: 'deposit', step: 'tx' };
  const sum = 10n ** 25n + 1n;
  const legs = ENTRY_LINES.crypto_payment_credited('chain', sum);
  const posting = { kind: 'crypto_payment_credited', currency: 'ETH.ethereum', legs } as const;
  await inTransaction(mongo, (session) => ledger.post({ ...about, ...posting }, session));
  expect(await service.json('balance', 'show', account_id, '--env', 'live')).toEqual({
    data: [
      {
        balance_account: 'main',
        asset: 'ETH',
        network: 'ethereum',
        available: String(sum),
        reserved: '0',
      },
    ],
  });
  const { stdout } = await service.cli('balance', 'show', account_id, '--env', 'live');
  expect(stdout).toContain('10000000.000000000000000001 ETH');
});
