import { randomUUID } from 'node:crypto';
import { CONFIRMATIONS, ETHER, type EvmWorld, startEvmWorld } from './world';

/** Deposits to addresses that were given under another `EVM_CONFIRMATIONS` than today's. */
let world: EvmWorld;
beforeAll(async () => {
  world = await startEvmWorld();
});
afterEach(async () => {
  await world.restart();
});
afterAll(async () => {
  await world.end();
});

/** Confirmations in the reports of a payment's deposits, in their order. */
const told = (id: string) => world.product.about(id).map(({ callback }) => callback.confirmations);
const isOpen = async (crypto_payment_id: string) =>
  (await world.db.collection('deposits').findOne({ crypto_payment_id }))?.['is_open'];

/** Removes what earlier versions did not write. */
async function forgetTerms(): Promise<void> {
  const unset = { $unset: { required_confirmations: '' } };
  await world.db.collection('addresses').updateMany({}, unset);
}

describe('after the setting was lowered', () => {
  it.each(['ETH', 'USDC'] as const)('a deposit of %s is told until it counts', async (asset) => {
    const { id, address } = await world.address(asset);
    await world.restart({ confirmations: 1 });
    if (asset === 'ETH') await world.chain.pay(address, ETHER);
    else await world.chain.payToken(address, 7n);
    await world.blocks(1);
    expect(told(id)).toEqual([1]);
    expect(await isOpen(id)).toBe(true);
    await world.blocks(CONFIRMATIONS);
    expect(told(id)).toEqual([1, 2, CONFIRMATIONS]);
    expect(await isOpen(id)).toBe(false);
  });

  it('a deposit that was seen before is told until it counts', async () => {
    const { id, address } = await world.address('ETH');
    await world.chain.pay(address, ETHER);
    await world.blocks(1);
    await world.restart({ confirmations: 1 });
    await world.blocks(CONFIRMATIONS);
    expect(told(id)).toEqual([1, 2, CONFIRMATIONS]);
  });

  it('a repeat answers the number that was given, and a new address has the new one', async () => {
    const { id, answer } = await world.address('ETH');
    await world.restart({ confirmations: 1 });
    expect((await world.address('ETH', id)).answer).toEqual(answer);
    const fresh = await world.address('ETH');
    expect(fresh.answer.required_confirmations).toBe(1);
    await world.chain.pay(fresh.address, ETHER);
    await world.blocks(CONFIRMATIONS);
    expect(told(fresh.id)).toEqual([1]);
    expect(await isOpen(fresh.id)).toBe(false);
  });

  it('an address of an earlier version goes by the setting', async () => {
    const { id, address } = await world.address('ETH');
    await forgetTerms();
    await world.restart({ confirmations: 2 });
    expect((await world.address('ETH', id)).answer.required_confirmations).toBe(2);
    await world.chain.pay(address, ETHER);
    await world.blocks(CONFIRMATIONS);
    expect(told(id)).toEqual([1, 2]);
    expect(await isOpen(id)).toBe(false);
  });
});

test('after the setting was raised a deposit is told until the new number', async () => {
  const { id, address, answer } = await world.address('ETH');
  await world.restart({ confirmations: CONFIRMATIONS + 1 });
  expect((await world.address('ETH', id)).answer).toEqual(answer);
  await world.chain.pay(address, ETHER);
  await world.blocks(CONFIRMATIONS + 2);
  expect(told(id)).toEqual([1, 2, CONFIRMATIONS, CONFIRMATIONS + 1]);
});

test('two processes with different settings give a payment one number', async () => {
  const other = world.build({ confirmations: CONFIRMATIONS + 4 });
  const asked = {
    ...{ crypto_payment_id: randomUUID(), asset: 'ETH', network: 'ethereum', amount_due: '1' },
    ...{ livemode: true, expires_at: new Date().toISOString() },
  };
  const [one, another] = await Promise.all([
    world.evm.activities.giveAddress(asked),
    other.activities.giveAddress(asked),
  ]);
  expect(one).toMatchObject({ outcome: 'given' });
  expect(another).toEqual(one);
});
