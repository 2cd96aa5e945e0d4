import type { Network } from '../../src/domain/crypto/assets';
import { setWallet } from '../../src/service/wallets';
import { useService } from '../support/service';
import { useCommands } from './cli';

const FIRST = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed';
const SECOND = '0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359';
const DAY_MS = 86_400_000;

const service = useService();
const commands = useCommands(service);

/** A merchant, and what registers its wallet at a time. */
async function openMerchant(livemode: boolean) {
  const { account_id } = await service.account();
  const set = (address: string, at = new Date(), network: Network = 'ethereum') =>
    setWallet({ ...commands.deps, now: () => at }, { account_id, livemode, network, address });
  return { account_id, set };
}

test('a wallet takes effect at once in the sandbox, and is set once', async () => {
  const { account_id, set } = await openMerchant(false);
  const wallet = await set(FIRST);
  expect(wallet).toMatchObject({ network: 'ethereum', address: FIRST, counting: FIRST });
  expect(await set(FIRST)).toEqual(wallet);
  const lines = await service.stores.auditLog.list({ account_id, livemode: false, limit: 9 });
  const { counts_from } = wallet;
  expect(lines).toMatchObject([
    {
      ...{ act: 'wallet.set', livemode: false, target: 'ethereum', before: null },
      after: { address: FIRST, counts_from, counting: FIRST },
    },
  ]);
});

test('a wallet on live takes effect after 24 hours, and its predecessor receives nothing until then', async () => {
  const { set } = await openMerchant(true);
  const at = new Date('2026-03-01T12:00:00.000Z');
  const first = await set(FIRST, at);
  const counts_from = '2026-03-02T12:00:00.000Z';
  expect(first).toMatchObject({ counting: null, previous: null, counts_from });
  expect(await set(FIRST, at)).toEqual(first);
  const second = await set(SECOND, new Date(at.getTime() + DAY_MS));
  const paused_until = '2026-03-03T12:00:00.000Z';
  expect(second).toMatchObject({ address: SECOND, counting: null, previous: FIRST, paused_until });
});

test.each([
  [FIRST.toLowerCase(), 'ethereum'],
  [FIRST, 'bitcoin'],
] as const)('%s is refused as an address on %s', async (address, network) => {
  const { set } = await openMerchant(true);
  const refusal = set(address, new Date(), network);
  await expect(refusal).rejects.toMatchObject({ code: 'address_invalid' });
});

test('wallet set registers the wallet of an environment, which wallet show prints', async () => {
  const { account_id } = await openMerchant(true);
  const show = ['wallet', 'show', account_id, '--env'];
  const address = ['--network', 'ethereum', '--address', FIRST];
  const wallet = await commands.json('wallet', 'set', account_id, '--env', 'live', ...address);
  expect(wallet).toMatchObject({ network: 'ethereum', address: FIRST, counting: null });
  expect(await commands.json(...show, 'live')).toEqual({ data: [wallet] });
  expect(await commands.json(...show, 'sandbox')).toEqual({ data: [] });
  expect((await commands.cli(...show, 'live')).stdout).toContain('nothing until ');
});
