import type { Address } from 'viem';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import { createNode } from '../../../connectors/evm/node';
import { CONFIRMATIONS, ETHER, useEvmWorld } from './world';

/** Settlements while the node takes its time: the record and Temporal go on meanwhile. */
const world = useEvmWorld();

const wallet = (): Address => privateKeyToAddress(generatePrivateKey());
const etherOf = (address: Address) => world.chain.client.getBalance({ address });
const sentCount = () => world.chain.client.getTransactionCount({ address: world.payer.address });
const keptCount = () => world.db.collection('settlements').countDocuments();

/** Starts a connector whose node is slow over the gas, and lets something happen meanwhile. */
async function restartSlow(gas: bigint | undefined, meanwhile: () => void): Promise<void> {
  const gasOf = async () => {
    meanwhile();
    return gas;
  };
  await world.restart({ node: { ...createNode(world.chain.url), estimateGas: gasOf } });
}

const ANSWERS = [
  ['would take', 21_000n],
  ['would revert', undefined],
] as const;

it.each(ANSWERS)(
  'a transfer that the chain %s is not signed once the record has ended',
  async (_, gas) => {
    const [before, to] = [await sentCount(), wallet()];
    const keptBefore = await keptCount();
    const input = world.settle('ETH', ETHER, to);
    await restartSlow(gas, () => world.product.endInRecord(input.crypto_settlement_id));
    const { sendSettlement, lookUpSettlement } = world.evm.activities;
    expect(await sendSettlement(input)).toEqual({ outcome: 'outdated' });
    await world.blocks(CONFIRMATIONS);
    expect(await lookUpSettlement(input)).toEqual({ outcome: 'not_found' });
    expect(await keptCount()).toBe(keptBefore);
    expect(await sentCount()).toBe(before);
    expect(await etherOf(to)).toBe(0n);
  },
);

it.each(ANSWERS)(
  'a transfer that the chain %s is left by an attempt that took too long',
  async (_, gas) => {
    const [before, to] = [await sentCount(), wallet()];
    const keptBefore = await keptCount();
    const input = world.settle('ETH', ETHER, to);
    await restartSlow(gas, () => {
      world.clock.ahead_ms += 25_000;
    });
    await expect(world.evm.activities.sendSettlement(input)).rejects.toThrow('took too long');
    await world.blocks(1);
    expect(await world.evm.activities.lookUpSettlement(input)).toEqual({ outcome: 'not_found' });
    expect(await keptCount()).toBe(keptBefore);

    // The next attempt has a time of its own, and the nonce that was given back.
    await world.restart();
    expect(await world.evm.activities.sendSettlement(input)).toMatchObject({ outcome: 'sent' });
    await world.blocks(CONFIRMATIONS);
    expect(await etherOf(to)).toBe(ETHER);
    expect(await sentCount()).toBe(before + 1);
  },
);

test('an attempt that is slow, and in time, pays', async () => {
  const to = wallet();
  const input = world.settle('ETH', 1n, to);
  world.clock.stopped_at = Date.now();
  await restartSlow(21_000n, () => {
    world.clock.ahead_ms += 24_999;
  });
  expect(await world.evm.activities.sendSettlement(input)).toMatchObject({ outcome: 'sent' });
  await world.blocks(CONFIRMATIONS);
  expect(await etherOf(to)).toBe(1n);
});
