import { randomUUID } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { getAddress } from 'viem';
import { type Block, createNode, type EvmNode } from '../../../connectors/evm/node';
import { LISTED } from './ethereum';
import { Killed, type Step } from './kills';
import { CONFIRMATIONS, ETHER, useEvmWorld } from './world';

const world = useEvmWorld();

const TEN_ETHER = 10n * ETHER + 1n;

describe('an address', () => {
  it('is the payment’s own, the same however often it is asked for, and comes with its rules', async () => {
    const { address: earlier } = await world.address('USDC');
    const id = randomUUID();
    const asked = await Promise.all([world.address('USDC', id), world.address('USDC', id)]);
    expect(asked[0]).toEqual(asked[1]);
    expect(asked[0].address).not.toBe(earlier);
    expect(asked[0].answer).toEqual({
      outcome: 'given',
      address: asked[0].address,
      required_confirmations: CONFIRMATIONS,
      chain_id: 31_337,
      token_contract: getAddress(world.chain.token),
    });
  });

  it('is given once where the process dies while it is derived', async () => {
    const id = randomUUID();
    world.killAt('address derived');
    await expect(world.address('ETH', id)).rejects.toThrow(Killed);
    await world.restart();
    const { address } = await world.address('ETH', id);
    expect(await world.db.collection('addresses').countDocuments({ address })).toBe(1);
  });

  it('is refused for an asset that is not served, and for the sandbox', async () => {
    const ask = {
      crypto_payment_id: randomUUID(),
      amount_due: '1',
      expires_at: '',
      livemode: true,
    };
    const { giveAddress } = world.evm.activities;
    const bitcoin = await giveAddress({ ...ask, asset: 'BTC', network: 'bitcoin' });
    expect(bitcoin).toMatchObject({ outcome: 'declined', code: 'asset_not_available' });
    const sandbox = { ...ask, asset: 'ETH', network: 'ethereum', livemode: false };
    expect(await giveAddress(sandbox)).toMatchObject({ code: 'sandbox_not_supported' });
  });
});

test('a rate says what is due, in the smallest unit and rounded up', async () => {
  const question = { crypto_payment_id: randomUUID(), network: 'ethereum', livemode: true };
  const { quoteRate } = world.evm.activities;
  const ether = await quoteRate({ ...question, asset: 'ETH', amount: 100_001, currency: 'EUR' });
  expect(ether).toEqual({ outcome: 'quoted', amount_due: '500005000000000000', rate: '2000' });
  const none = await quoteRate({ ...question, asset: 'ETH', amount: 1, currency: 'JPY' });
  expect(none).toMatchObject({ outcome: 'declined', code: 'rate_not_available' });
});

describe('a deposit', () => {
  it('in ether is reported when it is seen and when it counts, exact to the unit', async () => {
    const { id, address } = await world.address('ETH');
    const hash = await world.chain.pay(address, TEN_ETHER);
    await world.blocks(1);
    const [seen] = world.product.about(id);
    expect(seen).toMatchObject({
      resource: 'crypto_payment',
      name: 'deposit',
      callback: { transaction_id: hash, amount: String(TEN_ETHER), confirmations: 1 },
    });
    expect(world.product.credited(id)).toBe(0n);
    await world.blocks(CONFIRMATIONS - 1);
    expect(world.product.credited(id)).toBe(TEN_ETHER);
    await world.blocks(3);
    const confirmations = world.product.about(id).map(({ callback }) => callback.confirmations);
    expect(confirmations).toEqual([1, CONFIRMATIONS]);
  });

  it('in a token is told with its top-up', async () => {
    const { id, address } = await world.address('USDC');
    const first = await world.chain.payToken(address, 7_000_000n);
    await world.blocks(CONFIRMATIONS);
    const second = await world.chain.payToken(address, 3_000_001n);
    await world.blocks(CONFIRMATIONS);
    expect(world.product.deposits(id)).toEqual({
      [first]: { amount: '7000000', confirmations: CONFIRMATIONS },
      [second]: { amount: '3000001', confirmations: CONFIRMATIONS },
    });
  });

  it('of nothing is not told; in another asset than was asked for it is told once, as such', async () => {
    const { id, address } = await world.address('USDC');
    await world.chain.pay(address, ETHER);
    await world.chain.payToken(address, 0n);
    await world.blocks(CONFIRMATIONS);
    expect(world.product.about(id)).toMatchObject([
      { name: 'wrong_asset', callback: { asset: 'ETH', amount: String(ETHER) } },
    ]);
    await world.chain.reorganise(CONFIRMATIONS + 1);
    await world.blocks(CONFIRMATIONS + 2);
    expect(world.product.names(id)).toEqual(['wrong_asset']);
  });

  it('that a contract sends is seen, unless the contract took it back', async () => {
    const { id, address } = await world.address('ETH');
    const hash = await world.chain.forward(address, ETHER);
    await world.blocks(1);
    await world.chain.forward(address, ETHER, true);
    await world.blocks(CONFIRMATIONS);
    expect(Object.keys(world.product.deposits(id))).toEqual([hash]);
    expect(world.product.credited(id)).toBe(ETHER);
  });

  it('is seen without traces, too, where its transaction sends it', async () => {
    const { id, address } = await world.address('ETH');
    await world.restart({ traces: false });
    await world.chain.pay(address, ETHER);
    await world.blocks(CONFIRMATIONS);
    await world.restart();
    expect(world.product.credited(id)).toBe(ETHER);
  });

  it('is forgotten when a reorganisation undoes it before it counts, and counts once after', async () => {
    const { id, address } = await world.address('ETH');
    await world.chain.pay(address, ETHER);
    await world.blocks(2);
    await world.chain.reorganise(2);
    await world.blocks(3);
    expect(world.product.deposits(id)).toEqual({});
    expect(world.product.names(id).at(-1)).toBe('deposit_undone');
    const again = await world.chain.pay(address, 2n * ETHER);
    await world.blocks(CONFIRMATIONS + 1);
    expect(Object.keys(world.product.deposits(id))).toEqual([again]);
    expect(world.product.credited(id)).toBe(2n * ETHER);
  });

  it('is told as undone when a reorganisation undoes it after it counted', async () => {
    const { id, address } = await world.address('USDC');
    await world.chain.payToken(address, 5_000_000n);
    await world.blocks(CONFIRMATIONS + 1);
    expect(world.product.credited(id)).toBe(5_000_000n);
    await world.chain.reorganise(CONFIRMATIONS + 1);
    await world.blocks(1);
    expect(world.product.names(id).at(-1)).toBe('deposit_undone');
    expect(world.product.credited(id)).toBe(0n);
  });

  it('is not undone for a node behind a balancer that lacks the blocks where branches part', async () => {
    const { id, address } = await world.address('ETH');
    await world.chain.pay(address, ETHER);
    await world.blocks(CONFIRMATIONS);
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

  it('that a node hid, having a block without its logs, is found where the cursor is set back', async () => {
    const { id, address } = await world.address('USDC');
    const node = createNode(world.chain.url);
    const noBlooms = (block: Block | undefined) => block && { ...block, logsBloom: null };
    await world.restart({
      node: {
        ...node,
        transfers: async () => [],
        block: async (number) => noBlooms(await node.block(number)),
      },
    });
    await world.chain.payToken(address, 5n);
    await world.blocks(CONFIRMATIONS);
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

  it('that another block takes in is undone and told anew, once for each branch', async () => {
    const { id, address } = await world.address('ETH');
    const hash = await world.chain.pay(address, ETHER);
    const serializedTransaction = await world.chain.bytesOf(hash);
    await world.blocks(CONFIRMATIONS);
    await world.chain.reorganise(CONFIRMATIONS);
    await world.chain.mine(2);
    await world.chain.client.sendRawTransaction({ serializedTransaction });
    await world.blocks(CONFIRMATIONS);
    expect(world.product.credited(id)).toBe(ETHER);
    const confirmed = ['deposit', 'deposit'];
    expect(world.product.names(id)).toEqual([...confirmed, 'deposit_undone', ...confirmed]);
  });

  it('is told at last when the product was away, with the state that it has by then', async () => {
    const { id, address } = await world.address('ETH');
    world.product.away(true);
    await world.chain.pay(address, ETHER);
    await world.blocks(2);
    world.product.away(false);
    await world.blocks(CONFIRMATIONS);
    expect(world.product.credited(id)).toBe(ETHER);
  });

  it('carries the time of its block, and the cursor’s time stays before it until it is reported', async () => {
    const { id, address } = await world.address('ETH');
    const until = async () => {
      const question = { network: 'ethereum', livemode: true };
      return (await world.evm.activities.readChainTime?.(question))?.reported_until ?? '';
    };
    world.product.away(true);
    await world.chain.pay(address, ETHER);
    await world.blocks(2);
    const number = (await world.chain.client.getBlockNumber()) - 1n;
    const { timestamp } = await world.chain.client.getBlock({ blockNumber: number });
    const mined_at = new Date(Number(timestamp) * 1_000).toISOString();
    expect((await until()) < mined_at).toBe(true);
    world.product.away(false);
    await world.run();
    expect(world.product.about(id)[0]).toMatchObject({ callback: { mined_at } });
    expect((await until()) >= mined_at).toBe(true);
  });

  it('is found after the node was away, with all blocks of the gap', async () => {
    const { id, address } = await world.address('ETH');
    await world.chain.pay(address, ETHER);
    await world.chain.mine(20);
    await world.chain.away();
    await expect(world.evm.round()).rejects.toThrow(/^The node did not answer eth_chainId: /);
    await expect(world.evm.round()).rejects.not.toThrow(/127\.0\.0\.1/);
    await world.chain.restart();
    await world.run();
    expect(world.product.credited(id)).toBe(ETHER);
  });
});

describe('killed', () => {
  it.each(['block read', 'block kept', 'deposit to be told', 'deposit told'] satisfies Step[])(
    'at “%s”, the connector loses nothing and counts nothing twice',
    async (step) => {
      const { id, address } = await world.address('ETH');
      await world.chain.pay(address, ETHER);
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
    },
  );

  it('while a branch is left, it has left it', async () => {
    const { id, address } = await world.address('ETH');
    await world.chain.pay(address, ETHER);
    await world.blocks(CONFIRMATIONS);
    await world.chain.reorganise(CONFIRMATIONS);
    await world.chain.mine(CONFIRMATIONS + 1);
    world.killAt('branch left');
    await expect(world.run()).rejects.toThrow(Killed);
    await world.restart();
    await world.run();
    expect(world.product.deposits(id)).toEqual({});
  });

  it('where two processes began at once, the connector follows over what the other one left', async () => {
    const { id, address } = await world.address('ETH');
    const next = Number(await world.chain.client.getBlockNumber()) + 1;
    const blocks = world.db.collection<{ _id: number; hash: string }>('blocks');
    await blocks.insertOne({ _id: next, hash: '0x' });
    await world.chain.pay(address, ETHER);
    await world.blocks(CONFIRMATIONS);
    expect(world.product.credited(id)).toBe(ETHER);
  });

  it('never by a second process, which may follow the same chain', async () => {
    const { id, address } = await world.address('ETH');
    const other = world.build();
    await world.chain.pay(address, ETHER);
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
      crypto_payment_id,
      transaction_id,
      asset: 'ETH',
      network: 'ethereum',
      livemode: true,
    });

  it('passes unless it is on the list, and its address is told to nobody', async () => {
    const { id, address } = await world.address('ETH');
    const clean = await world.chain.pay(address, ETHER);
    const listed = await world.chain.pay(address, ETHER, LISTED);
    await world.blocks(CONFIRMATIONS);
    expect(await screen(id, clean)).toEqual({ outcome: 'passed' });
    const failed = await screen(id, listed);
    expect(failed).toMatchObject({ outcome: 'failed', code: 'source_listed' });
    const all = JSON.stringify([failed, world.product.about(id)]).toLowerCase();
    expect(all).not.toContain(LISTED.toLowerCase());
    await expect(screen(id, `0x${'0'.repeat(64)}`)).rejects.toThrow('no such deposit');
  });

  it('is not passed while the list cannot be read', async () => {
    const { id, address } = await world.address('ETH');
    const hash = await world.chain.pay(address, ETHER);
    await world.blocks(1);
    writeFileSync(world.screeningFile, 'not an address\n');
    await expect(screen(id, hash)).rejects.toThrow('no address in line 1');
    rmSync(world.screeningFile);
    await expect(screen(id, hash)).rejects.toThrow('ENOENT');
    writeFileSync(world.screeningFile, `${LISTED}\n`);
    expect(await screen(id, hash)).toEqual({ outcome: 'passed' });
  });
});
