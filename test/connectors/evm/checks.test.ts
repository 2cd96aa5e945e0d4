import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { runCommand } from '../../../connectors/evm/commands';
import type { Finding } from '../../../connectors/evm/findings';
import { createNode, type EvmNode } from '../../../connectors/evm/node';
import type { Rates } from '../../../connectors/evm/rates';
import { createLogger } from '../../../src/base/log';
import { CONFIRMATIONS, ETHER, useEvmWorld } from './world';

/** Reports of the chain are compared before they are believed. */
const world = useEvmWorld();
beforeEach(async () => {
  Object.assign(world.clock, { ahead_ms: 0, stopped_at: undefined });
  await world.restart();
});

const node = () => createNode(world.chain.url);
const log = createLogger('test-evm', 'silent');
const command = (...args: string[]) =>
  runCommand({ db: world.db, now: () => new Date(), log }, args);
const findings = (crypto_payment_id: string | null) =>
  world.db.collection<Finding>('findings').find({ crypto_payment_id }).toArray();
const stages = (id: string) =>
  world.product.about(id).map(({ callback }) => callback.callback_id.split(':')[3]);

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
  ])('that %s holds the deposit after ten minutes, and an operator is told', async (_, change) => {
    world.clock.stopped_at = Date.now();
    const { id, address } = await world.address('ETH');
    await world.restart({ secondNode: { ...node(), ...change } });
    await world.chain.pay(address, ETHER);
    await world.blocks(CONFIRMATIONS);
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
      confirmations: CONFIRMATIONS,
      screening: 'failed',
      code: 'nodes_disagree',
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
    const { id, address } = await world.address('ETH');
    await world.restart({ secondNode: { ...node(), ...change } });
    await world.chain.pay(address, ETHER);
    await world.blocks(CONFIRMATIONS);
    expect(stages(id)).toEqual(['seen']);
    await world.restart({ secondNode: node() });
    await world.run();
    expect(stages(id)).toEqual(['seen', 'confirmed']);
    expect(world.product.credited(id)).toBe(ETHER);
  });

  it('is asked for deposits above the limit of their asset alone', async () => {
    const [ether, token] = [await world.address('ETH'), await world.address('USDC')];
    await world.restart({
      secondNode: { ...node(), head: away },
      checkAbove: { ETH: ETHER, USDC: 0n },
    });
    await world.chain.pay(ether.address, ETHER);
    await world.chain.payToken(token.address, 1n);
    await world.blocks(CONFIRMATIONS);
    expect(stages(ether.id)).toEqual(['seen', 'confirmed']);
    expect(stages(token.id)).toEqual(['seen']);
    await world.restart();
    await world.run();
  });
});

describe('a block whose bloom allows transfers, from a node without them,', () => {
  const empty = { transfers: async () => [] };
  const lacking = { ...empty, provenTransfers: async () => undefined };

  it('is not passed before the logs are there', async () => {
    const { id, address } = await world.address('USDC');
    await world.restart({ node: { ...node(), ...lacking } });
    await world.chain.payToken(address, 5n);
    await world.chain.mine();
    await expect(world.run()).rejects.toThrow('without its logs');
    await world.restart();
    await world.blocks(CONFIRMATIONS);
    expect(world.product.credited(id)).toBe(5n);
  });

  it.each<[string, Partial<EvmNode>, (() => EvmNode) | undefined]>([
    ['all logs of the block', empty, undefined],
    ['the second node', lacking, node],
  ])('is read from %s', async (_, change, second) => {
    const { id, address } = await world.address('USDC');
    await world.restart({ node: { ...node(), ...change }, secondNode: second?.() });
    await world.chain.payToken(address, 6n);
    await world.blocks(CONFIRMATIONS);
    expect(world.product.credited(id)).toBe(6n);
  });

  it('has none that are proven where its logs are not those of the bloom', async () => {
    await world.chain.payToken(world.payer.address, 1n);
    await world.chain.payToken(world.payer.address, 2n);
    await world.chain.mine();
    const number = await world.chain.client.getBlockNumber();
    const found = await node().block(number);
    if (found === undefined) throw new Error('no block');
    const logsBloom = `0x${'f'.repeat(512)}` as const;
    expect(await node().provenTransfers(world.chain.token, found)).toHaveLength(2);
    expect(await node().provenTransfers(world.chain.token, { ...found, logsBloom })).toBe(
      undefined,
    );
    await world.run();
  });
});

describe('dust', () => {
  it('is counted and listed, and reported only where it completes the amount due', async () => {
    const { id, address } = await world.address('USDC', randomUUID(), { amount_due: '1000000' });
    const dust = await world.chain.payToken(address, 9_999n);
    await world.blocks(CONFIRMATIONS);
    expect(world.product.about(id)).toEqual([]);
    expect(world.followed).toMatchObject({ dust: 1 });
    const listed = { crypto_payment_id: id, asset: 'USDC', amount: '9999', transaction_id: dust };
    expect(await command('dust')).toMatchObject({ dust: [listed] });
    const most = await world.chain.payToken(address, 995_000n);
    await world.blocks(1);
    const rest = await world.chain.payToken(address, 5_000n);
    await world.blocks(CONFIRMATIONS);
    expect(Object.keys(world.product.deposits(id))).toEqual([most, rest]);
    expect(world.followed).toMatchObject({ dust: 1 });
  });
});

describe('rates', () => {
  const quote = (asset: string, currency = 'EUR') =>
    world.evm.activities.quoteRate({
      ...{ crypto_payment_id: randomUUID(), network: 'ethereum', livemode: true },
      ...{ asset, amount: 10_000, currency },
    });
  const rates = (prices: Rates['rates']) => ({ as_of: new Date().toISOString(), rates: prices });
  const write = (prices: Rates['rates']) =>
    writeFileSync(world.ratesFile, JSON.stringify(rates(prices)));
  const REFUSED = { outcome: 'declined', code: 'rate_not_plausible' };

  it('may change by a fifth in an hour, however many the steps', async () => {
    write({ ETH: { EUR: '2000' } });
    expect(await quote('ETH')).toMatchObject({ outcome: 'quoted', rate: '2000' });
    write({ ETH: { EUR: '2390' } });
    expect(await quote('ETH')).toMatchObject({ outcome: 'quoted' });
    for (const price of ['2', '2000000', '2410', '1660']) {
      write({ ETH: { EUR: price } });
      expect(await quote('ETH')).toMatchObject(REFUSED);
    }
    expect(await findings(null)).toMatchObject([{ name: 'rate_refused' }]);
    write({ ETH: { EUR: '2410' } });
    world.clock.ahead_ms = 2 * 3_600_000;
    expect(await quote('ETH')).toMatchObject({ outcome: 'quoted' });
    write({ ETH: { EUR: '2000' } });
    expect(await quote('ETH')).toMatchObject(REFUSED);
  });

  it.each([
    ['itself', { USDC: { USD: '0.9' } }, 'USD'],
    ['itself, for another currency', { USDC: { USD: '0.9', GBP: '0.75' } }, 'GBP'],
    ['ether', { USDC: { GBP: '0.9' }, ETH: { USD: '2000', GBP: '1500' } }, 'GBP'],
  ])('of USDC that is no dollar by %s are refused', async (_, prices, currency) => {
    write(prices);
    expect(await quote('USDC', currency)).toMatchObject(REFUSED);
    const dollar = { USDC: { USD: '1.01', GBP: '0.75' }, ETH: { USD: '2000', GBP: '1500' } };
    write(dollar);
    expect(await quote('USDC', currency)).toMatchObject({ outcome: 'quoted' });
  });

  it.each([
    ['another price', { ETH: { USD: '2100' } }],
    ['no price', { USDC: { USD: '1' } }],
  ])('are refused where the second source has %s', async (_, second) => {
    write({ ETH: { USD: '2000' } });
    await world.restart({ secondRates: async () => rates(second) });
    expect(await quote('ETH', 'USD')).toMatchObject(REFUSED);
    await world.restart({ secondRates: async () => rates({ ETH: { USD: '2040' } }) });
    expect(await quote('ETH', 'USD')).toMatchObject({ outcome: 'quoted' });
  });
});

describe('the balance of an address', () => {
  it('is compared when the window closes and six hours later, and what is unexplained is found', async () => {
    const chainTime = async () => Number((await world.chain.client.getBlock()).timestamp) * 1_000;
    const expires_at = new Date(await chainTime()).toISOString();
    const [plain, late, clean] = await Promise.all(
      [1, 2, 3].map(() => world.address('ETH', randomUUID(), { expires_at })),
    );
    if (!plain || !late || !clean) throw new Error('no addresses');
    await world.restart({ traces: false });
    await world.chain.forward(plain.address, ETHER);
    await world.chain.pay(clean.address, ETHER);
    await world.chain.pay(clean.address, 1n);
    await world.chain.payToken(clean.address, 5n);
    await world.blocks(2);
    expect(await findings(plain.id)).toMatchObject([
      { name: 'unexplained_balance', text: expect.stringContaining(' 1 ETH ') },
    ]);
    expect(await command('findings')).toMatchObject({
      findings: expect.arrayContaining([expect.objectContaining({ crypto_payment_id: plain.id })]),
    });
    await world.chain.forward(late.address, 2n * ETHER);
    await world.blocks(2);
    expect(await findings(late.id)).toEqual([]);
    await world.chain.client.increaseTime({ seconds: 6 * 3_600 });
    await world.blocks(2);
    expect(await findings(late.id)).toMatchObject([{ name: 'unexplained_balance' }]);
    expect(await findings(clean.id)).toEqual([]);
    await world.chain.forward(clean.address, ETHER);
    await world.chain.client.increaseTime({ seconds: 24 * 3_600 });
    await world.blocks(2);
    expect(await findings(clean.id)).toEqual([]);
  });
});
