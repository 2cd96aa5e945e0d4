import { randomUUID } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { getAddress } from 'viem';
import { type Block, createNode, type EvmNode } from '../../../connectors/evm/node';
import { LISTED } from './ethereum';
import { Killed, type Step } from './kills';
import { CONFIRMATIONS, ETHER, useEvmWorld } from './world';

const world = useEvmWorld();
const FACTS = { amount_due: '1', network: 'ethereum', livemode: true };
const isOpen = async (crypto_payment_id: string) =>
  (await world.db.collection('deposits').findOne({ crypto_payment_id }))?.['is_open'];
const pay = (asset: 'ETH' | 'USDC', ...args: Parameters<typeof world.chain.pay>) =>
  asset === 'ETH' ? world.chain.pay(...args) : world.chain.payToken(...args);

describe('an address', () => {
  it('is the payment’s own, stays the same for repeats, and comes with its rules', async () => {
    const { address: earlier } = await world.giveAddress('USDC');
    const id = randomUUID();
    const give = () => world.giveAddress('USDC', { id });
    const [first, second] = await Promise.all([give(), give()]);
    expect(first).toEqual(second);
    expect(first.address).not.toBe(earlier);
    expect(first.answer).toEqual({
      outcome: 'given',
      address: first.address,
      required_confirmations: CONFIRMATIONS,
      chain_id: 31_337,
      token_contract: getAddress(world.chain.token),
    });
  });

  it('is declined for an asset that is not served, and for the sandbox', async () => {
    const question = { ...FACTS, crypto_payment_id: randomUUID(), expires_at: '' };
    const { giveAddress } = world.evm.activities;
    const bitcoin = await giveAddress({ ...question, asset: 'BTC', network: 'bitcoin' });
    expect(bitcoin).toMatchObject({ outcome: 'declined', code: 'asset_not_available' });
    const sandbox = await giveAddress({ ...question, asset: 'ETH', livemode: false });
    expect(sandbox).toMatchObject({ outcome: 'declined', code: 'sandbox_not_supported' });
  });
});

describe('a deposit', () => {
  it.each([
    ['ETH', 10n * ETHER + 1n],
    ['USDC', 7_000_001n],
  ] as const)(
    'in %s is reported when it is seen and when it counts, as a top-up is',
    async (asset, amount) => {
      const { id, address } = await world.giveAddress(asset);
      const first = await pay(asset, address, amount);
      await world.makeBlocks(1);
      const facts = { transaction_id: first, amount: String(amount), confirmations: 1 };
      expect(world.product.about(id)).toMatchObject([
        { resource: 'crypto_payment', name: 'deposit', callback: facts },
      ]);
      expect(world.product.credited(id)).toBe(0n);
      await world.makeBlocks(CONFIRMATIONS - 1);
      expect(world.product.credited(id)).toBe(amount);
      const second = await pay(asset, address, amount - 1n);
      await world.makeBlocks(CONFIRMATIONS + 2);
      expect(world.product.listDeposits(id)).toEqual({
        [first]: { amount: String(amount), confirmations: CONFIRMATIONS },
        [second]: { amount: String(amount - 1n), confirmations: CONFIRMATIONS },
      });
      const confirmations = [1, CONFIRMATIONS];
      expect(world.product.confirmations(id)).toEqual([...confirmations, ...confirmations]);
    },
  );

  it('in another asset is reported once as that, and one of nothing is not reported', async () => {
    const { id, address } = await world.giveAddress('USDC');
    await world.chain.pay(address, ETHER);
    await world.chain.payToken(address, 0n);
    await world.makeBlocks(CONFIRMATIONS);
    expect(world.product.about(id)).toMatchObject([
      { name: 'wrong_asset', callback: { asset: 'ETH', amount: String(ETHER) } },
    ]);
    await world.chain.reorganise(CONFIRMATIONS + 1);
    await world.makeBlocks(CONFIRMATIONS + 2);
    expect(world.product.names(id)).toEqual(['wrong_asset']);
  });

  it('that a contract sends is seen, unless the contract reverts', async () => {
    const { id, address } = await world.giveAddress('ETH');
    const hash = await world.chain.forward(address, ETHER);
    await world.makeBlocks(1);
    await world.chain.forward(address, ETHER, true);
    await world.makeBlocks(CONFIRMATIONS);
    expect(Object.keys(world.product.listDeposits(id))).toEqual([hash]);
    expect(world.product.credited(id)).toBe(ETHER);
  });

  it.each([
    ['before', 'ETH', 2, 0n],
    ['after', 'USDC', CONFIRMATIONS + 1, 5n],
  ] as const)(
    'is undone when a reorganization drops it %s it counts, and counts once if it comes again',
    async (_, asset, blocks, credited) => {
      const { id, address } = await world.deposit(asset, blocks);
      expect(world.product.credited(id)).toBe(credited);
      await world.chain.reorganise(blocks);
      await world.makeBlocks(blocks + 1);
      expect(world.product.names(id).at(-1)).toBe('deposit_undone');
      expect(world.product.listDeposits(id)).toEqual({});
      const again = await pay(asset, address, 20_000_000_000_000n);
      await world.makeBlocks(CONFIRMATIONS + 1);
      expect(Object.keys(world.product.listDeposits(id))).toEqual([again]);
      expect(world.product.credited(id)).toBe(20_000_000_000_000n);
    },
  );

  it('stays when a node lacks the blocks where two branches part', async () => {
    const { id } = await world.deposit('ETH');
    const counted = await world.chain.client.getBlockNumber();
    await world.chain.reorganise(1);
    await world.chain.mine(2);
    const node = createNode(world.chain.url);
    const block: EvmNode['block'] = async (number) =>
      number < counted ? undefined : await node.block(number);
    await world.restart({ node: { ...node, block } });
    await expect(world.run()).rejects.toThrow('lacks a block');
    await world.restart();
    await world.run();
    expect(world.product.names(id)).not.toContain('deposit_undone');
    expect(world.product.credited(id)).toBe(ETHER);
  });

  it('that a node hid is found once the cursor is set back', async () => {
    const node = createNode(world.chain.url);
    const noBlooms = (block: Block | undefined) => block && { ...block, logsBloom: null };
    const block: EvmNode['block'] = async (number) => noBlooms(await node.block(number));
    await world.restart({ node: { ...node, transfers: async () => [], block } });
    const { id } = await world.deposit('USDC');
    expect(world.product.about(id)).toEqual([]);
    const number = Number(await world.chain.client.getBlockNumber()) - CONFIRMATIONS;
    const blocks = world.db.collection<{ _id: number; hash: string }>('blocks');
    const hash = (await blocks.findOne({ _id: number }))?.hash;
    await blocks.deleteMany({ _id: { $gt: number } });
    await world.db.collection('cursor').updateOne({}, { $set: { number, hash } });
    await world.restart();
    await world.run();
    expect(world.product.credited(id)).toBe(5n);
  });

  it('that comes into another block is undone and reported again, once for each branch', async () => {
    const { id, address } = await world.giveAddress('ETH');
    const hash = await world.chain.pay(address, ETHER);
    const serializedTransaction = await world.chain.bytesOf(hash);
    await world.makeBlocks(CONFIRMATIONS);
    await world.chain.reorganise(CONFIRMATIONS);
    await world.chain.mine(2);
    await world.chain.client.sendRawTransaction({ serializedTransaction });
    await world.makeBlocks(CONFIRMATIONS);
    expect(world.product.credited(id)).toBe(ETHER);
    const branch = ['deposit', 'deposit'];
    expect(world.product.names(id)).toEqual([...branch, 'deposit_undone', ...branch]);
  });

  it('waits for a product that is away, with the time of its block, and holds the chain time', async () => {
    const readTime = async () =>
      (await world.evm.activities.readChainTime?.(FACTS))?.reported_until ?? '';
    world.product.away(true);
    const { id } = await world.deposit('ETH', 2);
    const blockNumber = (await world.chain.client.getBlockNumber()) - 1n;
    const { timestamp } = await world.chain.client.getBlock({ blockNumber });
    const mined_at = new Date(Number(timestamp) * 1_000).toISOString();
    expect((await readTime()) < mined_at).toBe(true);
    world.product.away(false);
    await world.run();
    expect(world.product.about(id)[0]).toMatchObject({ callback: { mined_at } });
    expect((await readTime()) >= mined_at).toBe(true);
    await world.makeBlocks(CONFIRMATIONS);
    expect(world.product.credited(id)).toBe(ETHER);
  });
});

describe('the number of confirmations', () => {
  afterEach(() => world.restart());

  it.each([
    ['ETH', 'lowered', 1],
    ['USDC', 'lowered', 1],
    ['ETH', 'raised', CONFIRMATIONS + 1],
  ] as const)(
    'of a payment in %s stays after the setting was %s',
    async (asset, _, confirmations) => {
      const { id, address, answer } = await world.giveAddress(asset);
      await world.restart({ confirmations });
      expect((await world.giveAddress(asset, { id })).answer).toEqual(answer);
      await pay(asset, address, ETHER / 10n ** 8n);
      await world.makeBlocks(1);
      expect([world.product.confirmations(id), await isOpen(id)]).toEqual([[1], true]);
      await world.makeBlocks(CONFIRMATIONS + 1);
      expect([world.product.confirmations(id), await isOpen(id)]).toEqual([
        [1, CONFIRMATIONS],
        false,
      ]);
    },
  );

  it('of a new payment is the setting of today', async () => {
    await world.restart({ confirmations: 1 });
    const { id, answer } = await world.deposit('ETH');
    expect(answer.required_confirmations).toBe(1);
    expect([world.product.confirmations(id), await isOpen(id)]).toEqual([[1], false]);
  });
});

describe('a killed connector', () => {
  it.each([
    'block read',
    'block stored',
    'deposit to be reported',
    'deposit reported',
  ] satisfies Step[])('at “%s” loses nothing and counts nothing twice', async (step) => {
    const { id } = await world.deposit('ETH', 0);
    let kills = 0;
    for (let block = 0; block < CONFIRMATIONS; block += 1) {
      await world.chain.mine();
      world.killAt(step);
      await world.run().catch((error) => {
        expect(error).toBeInstanceOf(Killed);
        kills += 1;
      });
      world.killAt(undefined);
      await world.restart();
      await world.run();
    }
    expect(kills).toBeGreaterThan(1);
    expect(world.product.credited(id)).toBe(ETHER);
    expect(world.product.names(id)).toEqual(['deposit', 'deposit']);
  });

  it('has left a branch that it was leaving', async () => {
    const { id } = await world.deposit('ETH');
    await world.chain.reorganise(CONFIRMATIONS);
    await world.chain.mine(CONFIRMATIONS + 1);
    world.killAt('branch left');
    await expect(world.run()).rejects.toThrow(Killed);
    await world.restart();
    await world.run();
    expect(world.product.listDeposits(id)).toEqual({});
  });
});

describe('two processes', () => {
  it('that began at once leave blocks that a follower replaces', async () => {
    const next = Number(await world.chain.client.getBlockNumber()) + 1;
    const blocks = world.db.collection<{ _id: number; hash: string }>('blocks');
    await blocks.insertOne({ _id: next, hash: '0x' });
    const { id } = await world.deposit('ETH');
    expect(world.product.credited(id)).toBe(ETHER);
  });

  it('may follow the same chain', async () => {
    const other = world.build();
    const { id } = await world.deposit('ETH', 0);
    for (let block = 0; block < CONFIRMATIONS; block += 1) {
      await world.chain.mine();
      await Promise.all([world.evm.round(), other.round()]);
    }
    await world.run();
    expect(world.product.credited(id)).toBe(ETHER);
  });
});

describe('a source', () => {
  const screen = (crypto_payment_id: string, transaction_id: string) =>
    world.evm.activities.screenSource({
      ...{ ...FACTS, crypto_payment_id, transaction_id, asset: 'ETH' },
    });

  it('passes unless it is on the list, and its address is in no report', async () => {
    const { id, address } = await world.giveAddress('ETH');
    const clean = await world.chain.pay(address, ETHER);
    const listed = await world.chain.pay(address, ETHER, LISTED);
    await world.makeBlocks(CONFIRMATIONS);
    expect(await screen(id, clean)).toEqual({ outcome: 'passed' });
    const failed = await screen(id, listed);
    expect(failed).toMatchObject({ outcome: 'failed', code: 'source_listed' });
    const all = JSON.stringify([failed, world.product.about(id)]).toLowerCase();
    expect(all).not.toContain(LISTED.toLowerCase());
    await expect(screen(id, `0x${'0'.repeat(64)}`)).rejects.toThrow('no such deposit');
  });

  it('does not pass while the list cannot be read', async () => {
    const { id, hash } = await world.deposit('ETH', 1);
    writeFileSync(world.screeningFile, 'not an address\n');
    await expect(screen(id, hash)).rejects.toThrow('no address in line 1');
    rmSync(world.screeningFile);
    await expect(screen(id, hash)).rejects.toThrow('ENOENT');
    writeFileSync(world.screeningFile, `${LISTED}\n`);
    expect(await screen(id, hash)).toEqual({ outcome: 'passed' });
  });
});
