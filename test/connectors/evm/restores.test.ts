import type { Document } from 'mongodb';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import { runCommand } from '../../../connectors/evm/commands';
import { readExtendedKey } from '../../../connectors/evm/extended-key';
import { createLogger } from '../../../src/base/log';
import { ACCOUNT } from './words';
import { CONFIRMATIONS, ETHER, useEvmWorld } from './world';

/** Databases that are older than the chain, and reports that the product did not apply. */
const world = useEvmWorld();
beforeEach(async () => {
  world.clock.ahead_ms = 0;
  await world.restart();
});

/** Copies the connector's database. @returns function that restores it */
async function backUp(): Promise<() => Promise<void>> {
  const names = (await world.db.listCollections().toArray()).map(({ name }) => name);
  const copies: [string, Document[]][] = await Promise.all(
    names.map(async (name) => [name, await world.db.collection(name).find().toArray()]),
  );
  return async () => {
    for (const [name, documents] of copies) {
      await world.db.collection(name).deleteMany({});
      if (documents.length > 0) await world.db.collection(name).insertMany(documents);
    }
    await world.restart();
  };
}

const now = () => new Date(Date.now() + world.clock.ahead_ms);
const ids = (id: string) => world.product.deliveries.filter((each) => each.includes(id));
const tellAgain = (...args: string[]) => {
  const log = createLogger('test-evm', 'silent');
  return runCommand({ db: world.db, now, log }, ['tell-again', ...args]);
};

describe('a restored database', () => {
  it('repeats the ids of deposits that were reported before', async () => {
    const { id, address } = await world.address('ETH');
    const restore = await backUp();
    const hash = await world.chain.pay(address, ETHER);
    await world.blocks(CONFIRMATIONS + 1);
    const before = ids(id);
    const block = world.product.about(id)[0]?.callback.block_hash;
    expect(before).toEqual([`${hash}:${id}:${block}:seen`, `${hash}:${id}:${block}:confirmed`]);
    await restore();
    await world.run();
    const again = ids(id).slice(before.length);
    expect(again).toEqual(before.slice(-again.length));
    expect(world.product.credited(id)).toBe(ETHER);
  });

  it('confirms a deposit that was only seen, under an id that was never used', async () => {
    const { id, address } = await world.address('USDC');
    const restore = await backUp();
    await world.chain.payToken(address, 5n);
    await world.blocks(2);
    const before = ids(id);
    await restore();
    await world.chain.mine(CONFIRMATIONS + 8);
    await world.run();
    const [last] = ids(id).slice(-1);
    expect(before).not.toContain(last);
    expect(last).toMatch(/:confirmed$/);
    expect(world.product.credited(id)).toBe(5n);
  });

  it('repeats the ids of settlements, with what they cost and when they were mined', async () => {
    const input = world.settle('ETH', ETHER, privateKeyToAddress(generatePrivateKey()));
    await world.evm.activities.sendSettlement(input);
    const restore = await backUp();
    const id = input.crypto_settlement_id;
    await world.blocks(CONFIRMATIONS);
    const [completed] = world.product.about(id);
    const { transaction_id, block_hash, network_fee } = completed?.callback ?? {};
    expect(ids(id)).toEqual([`${id}:completed:${transaction_id}:${block_hash}`]);
    expect(BigInt(network_fee ?? 0)).toBeGreaterThan(0n);
    await restore();
    world.clock.ahead_ms = 5_000;
    await world.run();
    expect(new Set(ids(id)).size).toBe(1);
    expect(ids(id)).toHaveLength(2);
  });

  it('reports a block that comes back after it was dropped, under another id', async () => {
    const { id, address } = await world.address('ETH');
    await world.chain.pay(address, ETHER);
    await world.blocks(1);
    const deposits = world.db.collection('deposits');
    const kept = await deposits.findOne({ crypto_payment_id: id });
    const put = async (block: unknown) => {
      const change = { $set: { block, is_open: true } };
      await deposits.updateOne({ crypto_payment_id: id }, change);
      await world.run();
    };
    await put(null);
    await put(kept?.['block']);
    expect(world.product.names(id)).toEqual(['deposit', 'deposit_undone', 'deposit']);
    expect(ids(id)[2]).toBe(`${ids(id)[0]}:1`);
    await world.blocks(CONFIRMATIONS);
    expect(world.product.credited(id)).toBe(ETHER);
  });

  it('passes addresses that the service knows, or the chain shows used', async () => {
    const key = readExtendedKey(ACCOUNT.publicExtendedKey);
    const lines = world.db.collection<{ _id: string; next: number }>('address_lines');
    const next = async () => (await lines.findOne({ _id: key.fingerprint }))?.next ?? 0;
    const start = await next();
    const taken = [key.addressAt(start), key.addressAt(start + 60)];
    const findTaken = async (addresses: readonly string[]) =>
      taken.filter((each) => addresses.includes(each));
    await world.restart({ findTaken });
    expect(await next()).toBe(start + 61);
    await world.chain.pay(key.addressAt(start + 63), 1n);
    await world.chain.payToken(key.addressAt(start + 61 + 19), 1n);
    await world.chain.mine();
    await world.restart({ findTaken });
    expect(await next()).toBe(start + 81);
    // While the process runs, too.
    taken.push(key.addressAt(start + 81));
    expect((await world.address('ETH')).address).toBe(key.addressAt(start + 82));
  });
});

describe('reports that were delivered', () => {
  it('are told again since a time, under the ids that they had', async () => {
    // Later than all reports of the tests before.
    world.clock.ahead_ms = 60_000;
    const { id, address } = await world.address('ETH');
    await world.chain.pay(address, ETHER);
    await world.blocks(CONFIRMATIONS + 1);
    const before = ids(id);
    const later = new Date(now().getTime() - 1).toISOString();
    const other = await world.address('USDC');
    await world.chain.payToken(other.address, 5n);
    await world.blocks(CONFIRMATIONS + 1);
    const input = world.settle('ETH', 1n, privateKeyToAddress(generatePrivateKey()));
    await world.evm.activities.sendSettlement(input);
    await world.blocks(CONFIRMATIONS + 1);
    expect(await tellAgain('--since', later)).toEqual({ deposits: 1, settlements: 1 });
    await world.run();
    expect(ids(id)).toEqual(before);
    const [seen, confirmed] = ids(other.id);
    expect(ids(other.id)).toEqual([seen, confirmed, confirmed]);
    expect(ids(input.crypto_settlement_id)).toHaveLength(2);
    expect(world.product.names(input.crypto_settlement_id)).toEqual(['completed']);
    await world.run();
    expect(ids(other.id)).toHaveLength(3);
  });

  it.each([
    [['--since', 'yesterday'], 'must be a time'],
    [['--since', '2999-01-01T00:00:00Z'], 'in the past'],
    [[], 'must be a time'],
  ])('are not told again with %j', async (args, why) => {
    await expect(tellAgain(...args)).rejects.toThrow(why);
  });
});
