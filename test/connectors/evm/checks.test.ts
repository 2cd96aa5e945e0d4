import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import type { Document } from 'mongodb';
import { runCommand } from '../../../connectors/evm/commands';
import type { Finding } from '../../../connectors/evm/findings';
import { readExtendedKey } from '../../../connectors/evm/keys';
import { createNode, type EvmNode, NodeFailure } from '../../../connectors/evm/node';
import type { Rates } from '../../../connectors/evm/rates';
import { createTestLogger } from '../../support/quiet';
import { CUSTOMER, LISTED } from './ethereum';
import { ACCOUNT } from './words';
import { CONFIRMATIONS, ETHER, useEvmWorld } from './world';

/** Comparisons of the connector before it reports, and its acts after a restore of its database. */
const world = useEvmWorld();
beforeEach(async () => {
  Object.assign(world.clock, { ahead_ms: 0, stopped_at: undefined });
  await world.restart();
});

const node = () => createNode(world.chain.url);
const now = () => new Date(Date.now() + world.clock.ahead_ms);
const command = (...args: string[]) =>
  runCommand({ db: world.db, now, log: createTestLogger('test-evm') }, args);
const findings = (crypto_payment_id: string | null) =>
  world.db.collection<Finding>('findings').find({ crypto_payment_id }).toArray();
const stages = (id: string) =>
  world.product.about(id).map(({ callback }) => callback.callback_id.split(':')[3]);
const deliveries = (id: string) => world.product.deliveries.filter((each) => each.includes(id));

describe('a second node', () => {
  const movements: EvmNode['movements'] = async (block) =>
    (await node().movements(block)).map((each) => ({ ...each, value: each.value + 1n }));
  const block: EvmNode['block'] = async (number) => {
    const found = await node().block(number);
    return found && { ...found, hash: `0x${'1'.repeat(64)}` };
  };

  it.each<[string, Partial<EvmNode>]>([
    ['has no such deposit', { movements: async () => [] }],
    ['has another amount', { movements }],
    ['has another block', { block }],
  ])('that %s holds the deposit after ten minutes, for an operator', async (_, change) => {
    world.clock.stopped_at = Date.now();
    await world.restart({ secondNode: { ...node(), ...change } });
    const { id } = await world.deposit('ETH');
    expect(stages(id)).toEqual(['seen']);
    expect(world.followed).toMatchObject({ unchecked: 1 });
    expect(await findings(id)).toMatchObject([{ name: 'nodes_disagree' }]);
    world.clock.ahead_ms = 599_000;
    await world.run();
    expect(stages(id)).toEqual(['seen']);
    world.clock.ahead_ms = 601_000;
    await world.run();
    expect(stages(id)).toEqual(['seen', 'held']);
    expect(world.product.about(id)[1]?.callback).toMatchObject({
      ...{ confirmations: CONFIRMATIONS, screening: 'failed', code: 'nodes_disagree' },
    });
    await world.run();
    expect(world.product.credited(id)).toBe(0n);
    expect(world.followed).toMatchObject({ unchecked: 0, findings: { nodes_disagree: 1 } });
    const [finding] = await findings(id);
    await command('acknowledge', String(finding?._id));
    await expect(command('acknowledge', String(finding?._id))).rejects.toThrow('no open finding');
    await world.run();
    expect(world.followed).toMatchObject({ findings: { nodes_disagree: 0 } });
  });

  const away = async () => {
    throw new Error('away');
  };
  it.each<[string, Partial<EvmNode>]>([
    ['is away', { head: away }],
    ['lags', { head: async () => (await node().head()) - 1n }],
    ['is of another chain', { chainId: async () => 5 }],
    ['differs for a moment', { movements: async () => [] }],
  ])('that %s delays the last report, until it has the deposit', async (_, change) => {
    await world.restart({ secondNode: { ...node(), ...change } });
    const { id } = await world.deposit('ETH');
    expect(stages(id)).toEqual(['seen']);
    await world.restart({ secondNode: node() });
    await world.run();
    expect(stages(id)).toEqual(['seen', 'confirmed']);
    expect(world.product.credited(id)).toBe(ETHER);
  });

  it('checks only deposits above the limit of their asset', async () => {
    await world.restart({
      secondNode: { ...node(), head: away },
      checkAbove: { ETH: ETHER, USDC: 0n },
    });
    const [ether, token] = [await world.deposit('ETH', 0), await world.deposit('USDC')];
    expect(stages(ether.id)).toEqual(['seen', 'confirmed']);
    expect(stages(token.id)).toEqual(['seen']);
    await world.restart();
    await world.run();
  });
});

describe('a block whose bloom allows transfers, from a node without them,', () => {
  const empty = { transfers: async () => [] };
  const lacking = { ...empty, provenTransfers: async () => undefined };

  it('waits for its logs', async () => {
    await world.restart({ node: { ...node(), ...lacking } });
    const { id } = await world.deposit('USDC', 0);
    await world.chain.mine();
    await expect(world.run()).rejects.toThrow('without its logs');
    await world.restart();
    await world.makeBlocks(CONFIRMATIONS);
    expect(world.product.credited(id)).toBe(5n);
  });

  it.each<[string, Partial<EvmNode>, (() => EvmNode) | undefined]>([
    ['all logs of the block', empty, undefined],
    ['the second node', lacking, node],
  ])('is read from %s', async (_, change, second) => {
    await world.restart({ node: { ...node(), ...change }, secondNode: second?.() });
    const { id } = await world.deposit('USDC');
    expect(world.product.credited(id)).toBe(5n);
  });

  it('proves no transfers with logs that are not those of the bloom', async () => {
    await world.chain.payToken(world.payer.address, 1n);
    await world.chain.payToken(world.payer.address, 2n);
    await world.chain.mine();
    const found = await node().block(await world.chain.client.getBlockNumber());
    if (found === undefined) throw new Error('no block');
    const prove = (of: typeof found) => node().provenTransfers(world.chain.token, of);
    expect(await prove(found)).toHaveLength(2);
    expect(await prove({ ...found, logsBloom: `0x${'f'.repeat(512)}` })).toBe(undefined);
    await world.run();
  });
});

describe('a deposit that no block has', () => {
  const HOUR_MS = 3_600_000;
  /** Pays a payment whose window ends in ten seconds, and passes its end. */
  const payInTime = async (asset: 'ETH' | 'USDC', amount: bigint, from = CUSTOMER) => {
    const at = Date.now();
    world.clock.stopped_at = at;
    const expires_at = new Date(at + 10_000).toISOString();
    const { id, address } = await world.giveAddress(asset, { expires_at });
    const pay = asset === 'ETH' ? world.chain.pay : world.chain.payToken;
    const hash = await pay(address, amount, from);
    await world.run();
    const seen = {
      confirmations: 0,
      amount: String(amount),
      occurred_at: new Date(at).toISOString(),
    };
    expect(world.product.about(id)).toMatchObject([{ name: 'deposit', callback: seen }]);
    world.clock.ahead_ms = 90_000;
    return { id, address, hash };
  };

  it.each([
    ['ETH', ETHER],
    ['USDC', 10_000n],
  ] as const)('is reported once, and counts once from its blocks: %s', async (asset, amount) => {
    const { id } = await payInTime(asset, amount);
    await world.run();
    expect(world.product.credited(id)).toBe(0n);
    await world.makeBlocks(CONFIRMATIONS);
    expect(world.product.confirmations(id)).toEqual([0, 1, CONFIRMATIONS]);
    expect(world.product.names(id)).toEqual(['deposit', 'deposit', 'deposit']);
    expect(world.product.credited(id)).toBe(amount);
  });

  it('is withdrawn a minute after the node lost it, and may come back', async () => {
    const { id, hash, address } = await payInTime('ETH', ETHER);
    const bytes = await world.chain.bytesOf(hash);
    await world.chain.client.dropTransaction({ hash });
    await world.run();
    world.clock.ahead_ms += 59_000;
    await world.run();
    expect(world.product.names(id)).toEqual(['deposit']);
    world.clock.ahead_ms += 1_000;
    await world.run();
    expect(world.product.names(id)).toEqual(['deposit', 'deposit_undone']);
    await world.chain.client.sendRawTransaction({ serializedTransaction: bytes });
    await world.run();
    expect(world.product.names(id)).toHaveLength(2);
    await world.makeBlocks(CONFIRMATIONS);
    expect(world.product.credited(id)).toBe(ETHER);
    const { timestamp } = await world.chain.client.getBlock();
    const since = Date.parse(String(world.product.about(id).at(-1)?.callback.occurred_at));
    expect(Number(timestamp) * 1_000 - since).toBeLessThan(60_000);
    expect(await world.chain.client.getBalance({ address })).toBe(ETHER);
  });

  it('is withdrawn when its block has nothing of it', async () => {
    // The account has no tokens.
    const { id } = await payInTime('USDC', 10_000n, LISTED);
    await world.makeBlocks(1);
    world.clock.ahead_ms += 60_000;
    await world.run();
    expect(world.product.names(id)).toEqual(['deposit', 'deposit_undone']);
  });

  // The node is asked only while a payment awaits a deposit.
  it.each<[string, number, Partial<EvmNode>]>([
    ['is not asked', 0, {}],
    ['fails to show any', 9, { pending: () => Promise.reject(new NodeFailure('away')) }],
  ])(
    'is withdrawn an hour after the window where the node %s, and late if mined then',
    async (_, hours, change) => {
      const { id } = await payInTime('ETH', ETHER);
      const expires_at = new Date(Date.now() + hours * HOUR_MS).toISOString();
      await world.giveAddress('ETH', { expires_at });
      await world.restart({ node: { ...node(), ...change } });
      world.clock.ahead_ms = 10_000 + HOUR_MS - 1;
      await world.run();
      expect(world.product.names(id)).toEqual(['deposit']);
      world.clock.ahead_ms += 1;
      await world.run();
      await world.run();
      expect(world.product.names(id)).toEqual(['deposit', 'deposit_undone']);
      await world.makeBlocks(1);
      const { timestamp } = await world.chain.client.getBlock();
      const occurred_at = new Date(Number(timestamp) * 1_000).toISOString();
      expect(world.product.about(id)[2]?.callback).toMatchObject({ occurred_at, confirmations: 1 });
    },
  );

  it.each<[string, () => Promise<unknown>]>([
    ['that is dust', () => payNew('ETH', 1n)],
    ['that comes after the window', () => payNew('ETH', ETHER, -1)],
    ['of another asset', () => payNew('USDC', ETHER)],
    ['of more tokens than there are', () => payNew('USDC', 10n ** 28n, 60, 'payToken')],
  ])('%s is not reported', async (_, pay) => {
    await pay();
    await world.run();
    expect(world.product.about(newest)).toEqual([]);
  });
  let newest: string;
  const payNew = async (
    asset: 'ETH' | 'USDC',
    amount: bigint,
    seconds = 60,
    pay: 'pay' | 'payToken' = 'pay',
  ) => {
    const expires_at = new Date(now().getTime() + seconds * 1_000).toISOString();
    const { id, address } = await world.giveAddress(asset, { expires_at });
    newest = id;
    await world.chain[pay](address, amount);
  };

  it('is reported for at most ten transactions, and only if they pay for the block', async () => {
    const { id, address } = await world.giveAddress('ETH');
    const { client } = world.chain;
    for (let sent = 0; sent < 11; sent += 1) await world.chain.pay(address, ETHER / 100n);
    await world.run();
    await world.run();
    expect(world.product.names(id)).toHaveLength(10);
    const other = await world.giveAddress('ETH');
    const { baseFeePerGas } = await client.getBlock();
    await world.chain.mine();
    const low = { maxFeePerGas: 1n, maxPriorityFeePerGas: 0n, gas: 21_000n };
    const offer = { account: CUSTOMER, to: other.address, value: ETHER, ...low };
    expect(Number(baseFeePerGas)).toBeGreaterThan(1);
    const hash = await client.sendTransaction(offer).catch(() => undefined);
    await world.run();
    expect(world.product.about(other.id)).toEqual([]);
    if (hash !== undefined) await client.dropTransaction({ hash });
  });

  it.each<[string, EvmNode['pending']]>([
    ['shows none', async () => undefined],
    ['fails to answer', () => Promise.reject(new NodeFailure('away'))],
  ])('is seen in its block by a node that %s', async (_, pending) => {
    await world.restart({ node: { ...node(), pending } });
    const { id, address } = await world.giveAddress('ETH');
    await world.chain.pay(address, ETHER);
    await world.run();
    expect(world.product.about(id)).toEqual([]);
    await world.makeBlocks(CONFIRMATIONS);
    expect(world.product.credited(id)).toBe(ETHER);
  });
});

test('dust is counted and listed, and reported only when it completes the amount due', async () => {
  const { id, address } = await world.giveAddress('USDC', { amount_due: '1000000' });
  const dust = await world.chain.payToken(address, 9_999n);
  await world.makeBlocks(CONFIRMATIONS);
  expect(world.product.about(id)).toEqual([]);
  expect(world.followed).toMatchObject({ dust: 1 });
  const listed = { crypto_payment_id: id, asset: 'USDC', amount: '9999', transaction_id: dust };
  expect(await command('dust')).toMatchObject({ dust: [listed] });
  const most = await world.chain.payToken(address, 995_000n);
  await world.makeBlocks(1);
  const rest = await world.chain.payToken(address, 5_000n);
  await world.makeBlocks(CONFIRMATIONS);
  expect(Object.keys(world.product.listDeposits(id))).toEqual([most, rest]);
  expect(world.followed).toMatchObject({ dust: 1 });
});

describe('rates', () => {
  const quote = (asset: string, currency = 'EUR') =>
    world.evm.activities.quoteRate({
      ...{ crypto_payment_id: randomUUID(), network: 'ethereum', livemode: true },
      ...{ asset, amount: 100_001, currency },
    });
  const buildRates = (rates: Rates['rates']) => ({ as_of: new Date().toISOString(), rates });
  const write = (rates: Rates['rates']) =>
    writeFileSync(world.ratesFile, JSON.stringify(buildRates(rates)));
  const REFUSED = { outcome: 'declined', code: 'rate_not_plausible' };

  it('may change by a fifth in an hour, in any number of steps', async () => {
    const quoteAt = async (price: string) => {
      write({ ETH: { EUR: price } });
      return await quote('ETH');
    };
    // Rounded up to the smallest unit.
    const quoted = { outcome: 'quoted', amount_due: '500005000000000000', rate: '2000' };
    expect(await quoteAt('2000')).toEqual(quoted);
    expect(await quoteAt('2390')).toMatchObject({ outcome: 'quoted' });
    for (const price of ['2', '2000000', '2410', '1660']) {
      expect(await quoteAt(price)).toMatchObject(REFUSED);
    }
    expect(await findings(null)).toMatchObject([{ name: 'rate_refused' }]);
    world.clock.ahead_ms = 2 * 3_600_000;
    expect(await quoteAt('2410')).toMatchObject({ outcome: 'quoted' });
    expect(await quoteAt('2000')).toMatchObject(REFUSED);
    const missing = { outcome: 'declined', code: 'rate_not_available' };
    expect(await quote('ETH', 'JPY')).toMatchObject(missing);
  });

  it.each([
    ['itself', { USDC: { USD: '0.9' } }, 'USD'],
    ['itself, in another currency', { USDC: { USD: '0.9', GBP: '0.75' } }, 'GBP'],
    ['ether', { USDC: { GBP: '0.9' }, ETH: { USD: '2000', GBP: '1500' } }, 'GBP'],
  ])('that show USDC is no dollar, by the price of %s, are refused', async (_, rates, currency) => {
    write(rates);
    expect(await quote('USDC', currency)).toMatchObject(REFUSED);
    write({ USDC: { USD: '1.01', GBP: '0.75' }, ETH: { USD: '2000', GBP: '1500' } });
    expect(await quote('USDC', currency)).toMatchObject({ outcome: 'quoted' });
  });

  it.each([
    ['another price', { ETH: { USD: '2100' } }],
    ['no price', { USDC: { USD: '1' } }],
  ])('are refused if the second source has %s', async (_, second) => {
    write({ ETH: { USD: '2000' } });
    await world.restart({ secondRates: async () => buildRates(second) });
    expect(await quote('ETH', 'USD')).toMatchObject(REFUSED);
    await world.restart({ secondRates: async () => buildRates({ ETH: { USD: '2040' } }) });
    expect(await quote('ETH', 'USD')).toMatchObject({ outcome: 'quoted' });
  });
});

test('an unexplained balance is found when the payment expires and six hours later', async () => {
  const { client } = world.chain;
  const chainTime = Number((await client.getBlock()).timestamp) * 1_000;
  const expires_at = new Date(chainTime).toISOString();
  const give = () => world.giveAddress('ETH', { expires_at });
  const [plain, late, clean] = await Promise.all([give(), give(), give()]);
  await world.restart({ traces: false });
  await world.chain.forward(plain.address, ETHER);
  await world.chain.pay(clean.address, ETHER);
  await world.chain.pay(clean.address, 1n);
  await world.chain.payToken(clean.address, 5n);
  await world.makeBlocks(2);
  expect(await findings(plain.id)).toMatchObject([
    { name: 'unexplained_balance', text: expect.stringContaining(' 1 ETH ') },
  ]);
  expect(await command('findings')).toMatchObject({
    findings: expect.arrayContaining([expect.objectContaining({ crypto_payment_id: plain.id })]),
  });
  await world.chain.forward(late.address, 2n * ETHER);
  await world.chain.forward(plain.address, ETHER);
  await world.makeBlocks(2);
  expect(await findings(late.id)).toEqual([]);
  await client.increaseTime({ seconds: 6 * 3_600 });
  await world.makeBlocks(2);
  expect(await findings(late.id)).toMatchObject([{ name: 'unexplained_balance' }]);
  expect((await findings(plain.id)).map(({ text }) => text)).toEqual([
    expect.stringContaining(' 1 ETH '),
    expect.stringContaining(' 2 ETH '),
  ]);
  expect(await findings(clean.id)).toEqual([]);
  await world.chain.forward(clean.address, ETHER);
  await client.increaseTime({ seconds: 24 * 3_600 });
  await world.makeBlocks(2);
  expect(await findings(clean.id)).toEqual([]);
});

describe('a restored database', () => {
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

  it('repeats the ids of reports, with the fee and the block of settlements', async () => {
    const { id, address } = await world.giveAddress('ETH');
    const settlement = world.buildSettlement('ETH', ETHER);
    await settlement.send();
    const restore = await backUp();
    const hash = await world.chain.pay(address, ETHER);
    await world.makeBlocks(CONFIRMATIONS + 1);
    const before = deliveries(id);
    const block = world.product.about(id)[0]?.callback.block_hash;
    expect(before).toEqual([`${hash}:${id}:${block}:seen`, `${hash}:${id}:${block}:confirmed`]);
    const [completed] = world.product.about(settlement.id);
    const { transaction_id, block_hash, network_fee } = completed?.callback ?? {};
    const settled = `${settlement.id}:completed:${transaction_id}:${block_hash}`;
    expect(deliveries(settlement.id)).toEqual([settled]);
    expect(BigInt(network_fee ?? 0)).toBeGreaterThan(0n);
    await restore();
    world.clock.ahead_ms = 5_000;
    await world.run();
    const again = deliveries(id).slice(before.length);
    expect(again).toEqual(before.slice(-again.length));
    expect(world.product.credited(id)).toBe(ETHER);
    expect(deliveries(settlement.id)).toEqual([settled, settled]);
  });

  it('confirms a deposit that was only seen under an id that was never used', async () => {
    const { id, address } = await world.giveAddress('USDC');
    const restore = await backUp();
    await world.chain.payToken(address, 5n);
    await world.makeBlocks(2);
    const before = deliveries(id);
    await restore();
    await world.chain.mine(CONFIRMATIONS + 8);
    await world.run();
    const last = deliveries(id).at(-1);
    expect(before).not.toContain(last);
    expect(last).toMatch(/:confirmed$/);
    expect(world.product.credited(id)).toBe(5n);
  });

  it('reports a block that comes back after it was dropped under another id', async () => {
    const { id } = await world.deposit('ETH', 1);
    const deposits = world.db.collection('deposits');
    const stored = await deposits.findOne({ crypto_payment_id: id });
    for (const block of [null, stored?.['block']]) {
      const change = { $set: { block, is_open: true } };
      await deposits.updateOne({ crypto_payment_id: id }, change);
      await world.run();
    }
    expect(world.product.names(id)).toEqual(['deposit', 'deposit_undone', 'deposit']);
    expect(deliveries(id)[2]).toBe(`${deliveries(id)[0]}:1`);
    await world.makeBlocks(CONFIRMATIONS);
    expect(world.product.credited(id)).toBe(ETHER);
  });

  it('skips addresses that the product knows or that were used on the chain', async () => {
    const key = readExtendedKey(ACCOUNT.publicExtendedKey);
    const counters = world.db.collection<{ _id: string; next: number }>('address_counters');
    const next = async () => (await counters.findOne({ _id: key.fingerprint }))?.next ?? 0;
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
    expect((await world.giveAddress('ETH')).address).toBe(key.addressAt(start + 82));
  });
});

describe('the command that repeats reports', () => {
  it('repeats those since a time under the same ids', async () => {
    // Later than all reports of the tests before.
    world.clock.ahead_ms = 3 * 3_600_000;
    const { id } = await world.deposit('ETH', CONFIRMATIONS + 1);
    const before = deliveries(id);
    const since = new Date(now().getTime() - 1).toISOString();
    const other = await world.deposit('USDC', CONFIRMATIONS + 1);
    const settlement = world.buildSettlement('ETH', 1n);
    await settlement.send();
    await world.makeBlocks(CONFIRMATIONS + 1);
    const results = await command('tell-again', '--since', since);
    expect(results).toEqual({ deposits: 1, settlements: 1 });
    await world.run();
    expect(deliveries(id)).toEqual(before);
    const [seen, confirmed] = deliveries(other.id);
    expect(deliveries(other.id)).toEqual([seen, confirmed, confirmed]);
    expect(deliveries(settlement.id)).toHaveLength(2);
    expect(world.product.names(settlement.id)).toEqual(['completed']);
    await world.run();
    expect(deliveries(other.id)).toHaveLength(3);
  });

  it.each([
    [['--since', 'yesterday'], 'must be a time'],
    [['--since', '2999-01-01T00:00:00Z'], 'in the past'],
    [[], 'must be a time'],
  ])('refuses %j', async (args, message) => {
    await expect(command('tell-again', ...args)).rejects.toThrow(message);
  });
});
