import { randomUUID } from 'node:crypto';
import { CONFIRMATIONS, ETHER, useEvmWorld } from './world';

/** Deposits to addresses that were given under another `confirmations` than today's. */
const world = useEvmWorld();
afterEach(async () => {
  await world.restart();
});

/** Confirmations in the reports of a payment's deposits, in their order. */
const told = (id: string) => world.product.about(id).map(({ callback }) => callback.confirmations);
const isOpen = async (crypto_payment_id: string) =>
  (await world.db.collection('deposits').findOne({ crypto_payment_id }))?.['is_open'];

describe('after the setting was lowered', () => {
  it.each(['ETH', 'USDC'] as const)(
    'a deposit of %s is reported until it counts',
    async (asset) => {
      const { id, address } = await world.address(asset);
      await world.restart({ confirmations: 1 });
      if (asset === 'ETH') await world.chain.pay(address, ETHER);
      else await world.chain.payToken(address, 7n);
      await world.blocks(1);
      expect(told(id)).toEqual([1]);
      expect(await isOpen(id)).toBe(true);
      await world.blocks(CONFIRMATIONS);
      expect(told(id)).toEqual([1, CONFIRMATIONS]);
      expect(await isOpen(id)).toBe(false);
    },
  );

  it('a deposit that was seen before is reported until it counts', async () => {
    const { id, address } = await world.address('ETH');
    await world.chain.pay(address, ETHER);
    await world.blocks(1);
    await world.restart({ confirmations: 1 });
    await world.blocks(CONFIRMATIONS);
    expect(told(id)).toEqual([1, CONFIRMATIONS]);
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
});

test('after the setting was raised a payment keeps its number', async () => {
  const { id, address, answer } = await world.address('ETH');
  await world.restart({ confirmations: CONFIRMATIONS + 1 });
  expect((await world.address('ETH', id)).answer).toEqual(answer);
  await world.chain.pay(address, ETHER);
  await world.blocks(CONFIRMATIONS + 2);
  expect(told(id)).toEqual([1, CONFIRMATIONS]);
  expect(await isOpen(id)).toBe(false);
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
