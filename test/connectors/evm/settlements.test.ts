import { randomUUID } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { getAddress } from 'viem';
import { type Block, createNode, type EvmNode } from '../../../connectors/evm/node';
import { CHAIN_ID, CUSTOMER, LISTED } from './ethereum';
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
    'in %s is reported when seen and when it counts, as a top-up is',
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
    'is undone when dropped %s it counts, and counts once if it comes again',
    async (...row) => {
      const [, asset, blocks, credited] = row;
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
      expect(world.product.confirmations(id)).toEqual([1, CONFIRMATIONS]);
      expect(await isOpen(id)).toBe(false);
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

describe('settlements', () => {
  afterEach(async () => {
    // Every test leaves no nonce in use.
    await world.makeBlocks(CONFIRMATIONS + 1);
  });

  const countSent = () => world.chain.client.getTransactionCount({ address: world.payer.address });
  const countRows = () => world.db.collection('settlements').countDocuments();
  const CANCELLED = { outcome: 'cancelled' };
  const TOO_LATE = { outcome: 'too_late' };
  const NOT_FOUND = { outcome: 'not_found' };

  /** Builds a settlement, and sends it. */
  async function sendOne(...args: Parameters<typeof world.buildSettlement>) {
    const settlement = world.buildSettlement(...args);
    const answer = await settlement.send();
    const transaction_id = answer.outcome === 'sent' ? answer.transaction_id : '';
    return { ...settlement, answer, transaction_id };
  }

  /** Builds a settlement whose process dies at a step while it sends. */
  async function killOne(step: Step, ...args: Parameters<typeof world.buildSettlement>) {
    const settlement = world.buildSettlement(...args);
    world.killAt(step);
    await expect(settlement.send()).rejects.toThrow(Killed);
    return settlement;
  }

  /** Lets the time pass after which a fee is raised. */
  async function runLater(): Promise<void> {
    world.clock.ahead_ms += 200_000;
    await world.run();
  }

  async function restartAndRun(): Promise<void> {
    await world.restart();
    await world.run();
  }

  describe('a settlement', () => {
    it.each([
      ['ETH', 10n * ETHER + 1n],
      ['USDC', 12_345_678n],
    ] as const)(
      'in %s of %d units arrives, also after a reorganization, and is reported once',
      async (asset, amount) => {
        const before = await countSent();
        const { id, transaction_id, readBalance } = await sendOne(asset, amount);
        await world.makeBlocks(CONFIRMATIONS - 1);
        expect(world.product.names(id)).toEqual([]);
        await world.makeBlocks(1);
        expect(await readBalance()).toBe(amount);
        await world.chain.reorganise(CONFIRMATIONS);
        expect(await readBalance()).toBe(0n);
        await world.makeBlocks(CONFIRMATIONS + 1);
        expect([await readBalance(), await countSent()]).toEqual([amount, before + 1]);
        const completed = { name: 'completed', callback: { transaction_id } };
        expect(world.product.about(id)).toMatchObject([completed]);
      },
    );

    it('is one transaction for repeats at once, from two processes and after its end', async () => {
      const before = await countSent();
      const { input, send, lookUp } = world.buildSettlement('ETH', ETHER);
      expect(await lookUp()).toEqual(NOT_FOUND);
      const other = world.build().activities;
      const answers = await Promise.all([send(), send(), other.sendSettlement(input)]);
      await world.makeBlocks(CONFIRMATIONS);
      const last = await send();
      expect([last.outcome, await lookUp()]).toEqual(['sent', last]);
      // The node's answer to the first may come after the last instruction.
      const answered = answers.filter(({ outcome }) => outcome !== 'pending');
      expect(answered).toEqual(answered.map(() => last));
      expect(await countSent()).toBe(before + 1);
    });

    it('has a nonce of its own when three are sent at once', async () => {
      const first = world.buildSettlement('ETH', 1n);
      const others = [2n, 3n].map((amount) => world.buildSettlement('ETH', amount, first.wallet));
      const all = [first, ...others];
      await Promise.all(all.map(({ send }) => send()));
      await world.makeBlocks(CONFIRMATIONS);
      expect(await first.readBalance()).toBe(6n);
      const rows = await Promise.all(all.map(({ readRow }) => readRow()));
      expect(new Set(rows.map((row) => row?.nonce)).size).toBe(3);
    });

    it('that the node has lost is broadcast again', async () => {
      const { readBalance } = await sendOne('USDC', 4n);
      await world.chain.restart();
      await world.makeBlocks(1);
      expect(await readBalance()).toBe(0n);
      world.clock.ahead_ms += 61_000;
      await world.run();
      await world.makeBlocks(CONFIRMATIONS);
      expect(await readBalance()).toBe(4n);
    });

    it('fails when the chain reverts it after it was sent', async () => {
      const { id, transaction_id, wallet, readBalance } = await sendOne('USDC', 9n);
      await world.chain.refuse(wallet);
      await world.makeBlocks(CONFIRMATIONS);
      const callback = { transaction_id, code: 'transaction_reverted' };
      expect(world.product.about(id)[0]).toMatchObject({ name: 'failed', callback });
      expect(await readBalance()).toBe(0n);
    });
  });

  describe('a settlement is refused for good', () => {
    it.each([
      ['wallet_invalid', { wallet_address: '0x123' }],
      ['wallet_invalid', { wallet_address: '0x70997970c51812DC3A010C7d01b50e0d17dc79C8' }],
      ['wallet_invalid', { wallet_address: `0x${'0'.repeat(40)}` }],
      ['asset_not_available', { asset: 'BTC', network: 'bitcoin' }],
      ['sandbox_not_supported', { livemode: false }],
    ])('as %s, which a cancellation does not change', async (code, changes) => {
      const { answer, lookUp, cancel } = await sendOne('ETH', 1n, CUSTOMER, changes);
      expect(answer).toMatchObject({ outcome: 'refused', code });
      expect([await cancel(), await lookUp()]).toEqual([CANCELLED, answer]);
    });

    it('if the chain would revert it', async () => {
      const settlement = world.buildSettlement('USDC', 1n);
      await world.chain.refuse(settlement.wallet);
      await world.makeBlocks(1);
      const before = await countSent();
      const refused = await settlement.send();
      expect(refused).toMatchObject({ outcome: 'refused', code: 'wallet_refused' });
      expect([await settlement.send(), await countSent()]).toEqual([refused, before]);
    });
  });

  describe('a settlement waits, and nothing is stored,', () => {
    const nonces = () => world.db.collection('nonces');
    type SetChain = { Method: 'anvil_setChainId'; Parameters: [number]; ReturnType: null };
    const setChainId = (chainId: number) =>
      world.chain.client.request<SetChain>({ method: 'anvil_setChainId', params: [chainId] });

    const limitFee = () => world.restart({ feeCap: 1n });
    const leaveChain = async () => {
      await setChainId(5);
      await expect(world.evm.round()).rejects.toThrow('on chain 5');
    };
    const comeBack = () => setChainId(CHAIN_ID);
    const shiftNonce = (by: number) => nonces().updateOne({}, { $inc: { next: by } });
    const skipNonce = async () => {
      await shiftNonce(1);
      await expect(world.restart()).rejects.toThrow('compare them');
    };
    const freeNonce = () => shiftNonce(-1);

    it.each<[string, 'ETH' | 'USDC', bigint, string, (() => unknown)?, (() => unknown)?]>([
      ['while ether is short', 'ETH', 10_000n * ETHER, 'too little ether'],
      ['while USDC is short', 'USDC', 10n ** 15n, 'too little USDC'],
      ['while gas is too expensive', 'ETH', 1n, 'Gas is dearer', limitFee],
      ['while the node is on another chain', 'ETH', 1n, 'on chain 5', leaveChain, comeBack],
      ['while a nonce has no settlement', 'ETH', 1n, 'compare them', skipNonce, freeNonce],
    ])('%s', async (...row) => {
      const [, asset, amount, message, begin, end] = row;
      const { send, lookUp } = world.buildSettlement(asset, amount);
      await begin?.();
      await expect(send()).rejects.toThrow(message);
      await end?.();
      expect(await lookUp()).toEqual(NOT_FOUND);
      await world.restart();
    });

    it('in a process for another chain on the same database', async () => {
      const node = { ...createNode(world.chain.url), chainId: async () => 5 };
      const restart = world.restart({ chainId: 5, node });
      await expect(restart).rejects.toThrow('The database is of chain 31337');
      await world.restart();
    });

    it('in a process that pays from another account, until those in progress have ended', async () => {
      const other = { _id: randomUUID(), from: CUSTOMER, nonce: 0, is_open: true };
      const rows = world.db.collection<typeof other>('settlements');
      await rows.insertOne(other);
      await expect(world.restart()).rejects.toThrow(`Settlements of ${CUSTOMER} are in progress`);
      await rows.deleteOne({ _id: other._id });
      await world.restart();
    });
  });

  describe('a node that is slow about gas', () => {
    /** Starts a connector whose node lets something happen while it estimates. */
    const restartSlow = (gas: bigint | undefined, meanwhile: () => void) => {
      const estimateGas: EvmNode['estimateGas'] = async () => {
        meanwhile();
        return gas;
      };
      return world.restart({ node: { ...createNode(world.chain.url), estimateGas } });
    };
    const ANSWERS = [
      ['accept', 21_000n],
      ['revert', undefined],
    ] as const;

    afterEach(() => world.restart());

    it.each(ANSWERS)(
      'leaves a transfer that it would %s unsigned if the product has ended it meanwhile',
      async (_, gas) => {
        const before = [await countSent(), await countRows()];
        const { id, send, lookUp } = world.buildSettlement('ETH', ETHER);
        await restartSlow(gas, () => world.product.endSettlement(id));
        expect(await send()).toEqual({ outcome: 'outdated' });
        expect(await lookUp()).toEqual(NOT_FOUND);
        expect([await countSent(), await countRows()]).toEqual(before);
      },
    );

    it.each(ANSWERS)(
      'lets an attempt with a transfer that it would %s end after 25 seconds, and the next one pay',
      async (_, gas) => {
        const [before, rows] = [await countSent(), await countRows()];
        const { send, lookUp, readBalance } = world.buildSettlement('ETH', ETHER);
        await restartSlow(gas, () => (world.clock.ahead_ms += 25_000));
        await expect(send()).rejects.toThrow('took too long');
        await world.makeBlocks(1);
        expect([await lookUp(), await countRows()]).toEqual([NOT_FOUND, rows]);
        // The next attempt has time of its own, and the same nonce.
        world.clock.stopped_at = Date.now();
        await restartSlow(21_000n, () => (world.clock.ahead_ms += 24_999));
        expect(await send()).toMatchObject({ outcome: 'sent' });
        world.clock.stopped_at = undefined;
        await world.makeBlocks(CONFIRMATIONS);
        expect([await readBalance(), await countSent()]).toEqual([ETHER, before + 1]);
      },
    );
  });

  describe('a cancellation', () => {
    it('keeps a settlement that is not signed from being signed', async () => {
      const { send, cancel, lookUp, readRow } = world.buildSettlement('ETH', 1n);
      expect([await cancel(), await cancel()]).toEqual([CANCELLED, CANCELLED]);
      const refused = { outcome: 'refused', code: 'cancelled' };
      expect([await send(), await lookUp()]).toMatchObject([refused, refused]);
      expect(await readRow()).toBeNull();
    });

    it('comes too late for a signed settlement, also before its broadcast', async () => {
      const { id, cancel } = await killOne('settlement stored', 'ETH', 1n);
      expect(await cancel()).toEqual(TOO_LATE);
      await world.run();
      await world.makeBlocks(CONFIRMATIONS);
      expect(world.product.names(id).at(-1)).toBe('completed');
    });

    it('that races with the instruction gives one of the two results, eight times', async () => {
      for (let round = 0; round < 8; round += 1) {
        const { send, cancel, readRow } = world.buildSettlement('ETH', 1n);
        const sending = send().catch(() => undefined);
        const [cancelled] = await Promise.all([cancel(), sending]);
        expect(cancelled).toEqual((await readRow()) === null ? CANCELLED : TOO_LATE);
      }
    });
  });

  describe('a fee', () => {
    it('is raised on the same nonce when no block includes the settlement', async () => {
      const before = await countSent();
      const { id, answer, lookUp, readRow, readBalance } = await sendOne('ETH', ETHER);
      // A process that is killed after it has raised the fee raises it once.
      world.killAt('fee raised');
      await expect(runLater()).rejects.toThrow(Killed);
      await restartAndRun();
      await world.run();
      const { attempts = [], nonce } = (await readRow()) ?? {};
      expect([attempts.length, nonce]).toEqual([2, before]);
      const second = { outcome: 'sent', transaction_id: attempts[1]?.hash };
      expect(await lookUp()).toEqual(second);
      expect(second).not.toEqual(answer);
      await world.makeBlocks(CONFIRMATIONS);
      expect(world.product.names(id)).toEqual(['sent', 'completed']);
      expect([await readBalance(), await countSent()]).toEqual([ETHER, before + 1]);
    });

    it('is raised when the chain became too expensive before the broadcast', async () => {
      const { id, readRow, readBalance } = await killOne('settlement stored', 'ETH', 6n);
      const [first] = (await readRow())?.attempts ?? [];
      const baseFeePerGas = 2n * BigInt(first?.fee_max ?? 0);
      await world.chain.client.setNextBlockBaseFeePerGas({ baseFeePerGas });
      await world.makeBlocks(1);
      expect(await readBalance()).toBe(0n);
      await runLater();
      await world.makeBlocks(CONFIRMATIONS);
      expect(await readBalance()).toBe(6n);
      expect(world.product.names(id).at(-1)).toBe('completed');
    });

    it('is never raised above its limit', async () => {
      const { readRow } = await sendOne('ETH', 1n);
      const [first] = (await readRow())?.attempts ?? [];
      await world.restart({ feeCap: BigInt(first?.fee_max ?? 0) });
      await runLater();
      expect((await readRow())?.attempts).toHaveLength(1);
      await world.restart();
    });
  });

  describe('a killed connector', () => {
    it.each(['settlement signed', 'settlement stored', 'settlement broadcast'] satisfies Step[])(
      'at “%s”, together with its node, pays once',
      async (step) => {
        const before = await countSent();
        const { id, send, lookUp, readBalance } = await killOne(step, 'ETH', ETHER);
        await world.chain.restart();
        await world.restart();
        const found = await lookUp();
        expect(found.outcome).toBe(step === 'settlement signed' ? 'not_found' : 'pending');
        if (found.outcome === 'not_found') await send();
        await world.run();
        await world.makeBlocks(CONFIRMATIONS);
        expect([await readBalance(), await countSent()]).toEqual([ETHER, before + 1]);
        expect(world.product.names(id).at(-1)).toBe('completed');
      },
    );
  });

  // The last test: the connector refuses to pay after it.
  test('another program that uses a nonce fails the settlement, and stops all others', async () => {
    const { id, wallet, readRow, readBalance } = await sendOne('ETH', ETHER);
    const { nonce = 0 } = (await readRow()) ?? {};
    for (const at of [nonce, nonce + 1]) {
      const serializedTransaction = await world.payer.signTransaction({
        ...{ type: 'eip1559', chainId: 31_337, nonce: at, to: CUSTOMER, value: 1n, gas: 21_000n },
        ...{ maxFeePerGas: 10n ** 12n, maxPriorityFeePerGas: 10n ** 11n },
      });
      await world.chain.client.sendRawTransaction({ serializedTransaction });
    }
    const next = world.buildSettlement('ETH', 1n, wallet);
    await expect(next.send()).rejects.toThrow('compare them');
    await world.makeBlocks(CONFIRMATIONS);
    const failed = { name: 'failed', callback: { code: 'nonce_taken' } };
    expect(world.product.about(id)[0]).toMatchObject(failed);
    expect(await readBalance()).toBe(0n);
    await expect(next.send()).rejects.toThrow('compare them');
    await expect(world.restart()).rejects.toThrow('compare them');
  });
});
