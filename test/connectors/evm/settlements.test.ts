import { randomUUID } from 'node:crypto';
import type { Address } from 'viem';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import type { SettlementInstruction } from '../../../connectors/contract/crypto';
import { createNode } from '../../../connectors/evm/node';
import type { Settlement } from '../../../connectors/evm/settlements';
import { CHAIN_ID, CUSTOMER } from './ethereum';
import { Killed, type Step } from './kills';
import { CONFIRMATIONS, ETHER, useEvmWorld } from './world';

const world = useEvmWorld();
afterEach(async () => {
  // Every test leaves the line of nonces free.
  await world.blocks(CONFIRMATIONS + 1);
});

const wallet = (): Address => privateKeyToAddress(generatePrivateKey());
const etherOf = (address: Address) => world.chain.client.getBalance({ address });
const sentCount = () => world.chain.client.getTransactionCount({ address: world.payer.address });
const kept = (_id: string) => world.db.collection<Settlement>('settlements').findOne({ _id });
const CANCELLED = { outcome: 'cancelled' };
const send = (input: SettlementInstruction) => world.evm.activities.sendSettlement(input);

describe('a settlement', () => {
  it('in ether arrives, exact to the unit, and is told as completed', async () => {
    const to = wallet();
    const input = world.settle('ETH', 10n * ETHER + 1n, to);
    const answer = await send(input);
    expect(answer.outcome).toBe('sent');
    await world.blocks(CONFIRMATIONS - 1);
    expect(world.product.names(input.crypto_settlement_id)).toEqual([]);
    await world.blocks(1);
    expect(await etherOf(to)).toBe(10n * ETHER + 1n);
    const [told] = world.product.about(input.crypto_settlement_id);
    const transaction_id = answer.outcome === 'sent' ? answer.transaction_id : undefined;
    expect(told).toMatchObject({ name: 'completed', callback: { transaction_id } });
  });

  it('in a token arrives', async () => {
    const to = wallet();
    const input = world.settle('USDC', 12_345_678n, to);
    await send(input);
    await world.blocks(CONFIRMATIONS);
    expect(await world.chain.tokensOf(to)).toBe(12_345_678n);
    expect(world.product.names(input.crypto_settlement_id)).toEqual(['completed']);
  });

  it('is one transaction however often it is asked for, also at once and after its end', async () => {
    const before = await sentCount();
    const input = world.settle('ETH', ETHER, wallet());
    const other = world.build();
    const answers = await Promise.all([
      send(input),
      send(input),
      other.activities.sendSettlement(input),
    ]);
    await world.blocks(CONFIRMATIONS);
    const later = [await send(input), await world.evm.activities.lookUpSettlement(input)];
    const [first] = later;
    expect(first?.outcome).toBe('sent');
    for (const answer of [...answers, ...later]) {
      // The node's answer to the first may have come after the last was asked.
      if (answer.outcome !== 'pending') expect(answer).toEqual(first);
    }
    expect(await sentCount()).toBe(before + 1);
  });

  it('is not found before it was asked for', async () => {
    const crypto_settlement_id = randomUUID();
    const answer = await world.evm.activities.lookUpSettlement({ crypto_settlement_id });
    expect(answer).toEqual({ outcome: 'not_found' });
  });

  it('takes its turn in the one line of nonces', async () => {
    const to = wallet();
    const inputs = [1n, 2n, 3n].map((amount) => world.settle('ETH', amount, to));
    await Promise.all(inputs.map(send));
    await world.blocks(CONFIRMATIONS);
    expect(await etherOf(to)).toBe(6n);
    const nonces = await Promise.all(
      inputs.map(async (each) => (await kept(each.crypto_settlement_id))?.nonce),
    );
    expect(new Set(nonces).size).toBe(3);
  });
});

describe('a settlement is refused, for good', () => {
  it.each([
    ['wallet_invalid', { wallet_address: '0x123' }],
    ['wallet_invalid', { wallet_address: '0x70997970c51812DC3A010C7d01b50e0d17dc79C8' }],
    ['wallet_invalid', { wallet_address: `0x${'0'.repeat(40)}` }],
    ['asset_not_available', { asset: 'BTC', network: 'bitcoin' }],
    ['sandbox_not_supported', { livemode: false }],
  ])('as %s', async (code, change) => {
    const input = { ...world.settle('ETH', 1n, CUSTOMER), ...change };
    const refused = await send(input);
    expect(refused).toMatchObject({ outcome: 'refused', code });
    expect(await world.evm.activities.lookUpSettlement(input)).toEqual(refused);
  });

  it('where the chain would revert it', async () => {
    const to = wallet();
    await world.chain.refuse(to);
    await world.blocks(1);
    const before = await sentCount();
    const input = world.settle('USDC', 1n, to);
    const refused = await send(input);
    expect(refused).toMatchObject({ outcome: 'refused', code: 'wallet_refused' });
    expect(await send(input)).toEqual(refused);
    expect(await sentCount()).toBe(before);
  });
});

describe('a settlement is not taken yet, and nothing is kept', () => {
  afterEach(async () => {
    await world.restart();
  });

  it.each([
    ['ether', 'ETH', 10_000n * ETHER],
    ['USDC', 'USDC', 10n ** 15n],
  ] as const)('while the account holds too little %s', async (what, asset, amount) => {
    const input = world.settle(asset, amount, wallet());
    await expect(send(input)).rejects.toThrow(`too little ${what}`);
    expect(await world.evm.activities.lookUpSettlement(input)).toEqual({ outcome: 'not_found' });
  });

  it('while the provider answers of another chain, which is not followed either', async () => {
    const { client } = world.chain;
    const become = (chainId: number) =>
      client.request<{ Method: 'anvil_setChainId'; Parameters: [number]; ReturnType: null }>({
        method: 'anvil_setChainId',
        params: [chainId],
      });
    await become(5);
    const input = world.settle('ETH', 1n, wallet());
    await expect(send(input)).rejects.toThrow('on chain 5');
    await expect(world.evm.round()).rejects.toThrow('on chain 5');
    await become(CHAIN_ID);
    expect(await world.evm.activities.lookUpSettlement(input)).toEqual({ outcome: 'not_found' });
  });

  it('while the book lacks a settlement for a nonce that the chain has not seen', async () => {
    const lines = world.db.collection('nonces');
    await lines.updateOne({}, { $inc: { next: 1 } });
    const input = world.settle('ETH', 1n, wallet());
    await expect(send(input)).rejects.toThrow('compare them');
    await expect(world.restart()).rejects.toThrow('compare them');
    await lines.updateOne({}, { $inc: { next: -1 } });
    expect(await world.evm.activities.lookUpSettlement(input)).toEqual({ outcome: 'not_found' });
  });

  it('by a process for another chain, on the same database', async () => {
    const chainId = async () => 5;
    const node = { ...createNode(world.chain.url), chainId };
    await expect(world.restart({ chainId: 5, node })).rejects.toThrow(
      'The database is of chain 31337',
    );
  });

  it('by a process that pays from another account, before those under way have ended', async () => {
    const other = { _id: randomUUID(), from: CUSTOMER, nonce: 0, is_open: true };
    const rows = world.db.collection<typeof other>('settlements');
    await rows.insertOne(other);
    await expect(world.restart()).rejects.toThrow(`Settlements of ${CUSTOMER} are in progress`);
    await rows.deleteOne({ _id: other._id });
  });

  it('while gas is too dear', async () => {
    await world.restart({ feeCap: 1n });
    await expect(send(world.settle('ETH', 1n, wallet()))).rejects.toThrow('Gas is dearer');
  });

  it('once the record says that it has ended', async () => {
    const input = world.settle('ETH', 1n, wallet());
    world.product.endInRecord(input.crypto_settlement_id);
    expect(await send(input)).toEqual({ outcome: 'outdated' });
  });
});

describe('a cancellation', () => {
  const cancel = (input: SettlementInstruction) => world.evm.activities.cancelSettlement?.(input);

  it('keeps a settlement that is not signed from ever being signed', async () => {
    const input = world.settle('ETH', 1n, wallet());
    expect([await cancel(input), await cancel(input)]).toEqual(Array(2).fill(CANCELLED));
    const refused = { outcome: 'refused', code: 'cancelled' };
    expect(await send(input)).toMatchObject(refused);
    expect(await world.evm.activities.lookUpSettlement(input)).toMatchObject(refused);
    expect(await kept(input.crypto_settlement_id)).toBeNull();
  });

  it('of a refused settlement changes nothing', async () => {
    const input = world.settle('ETH', 1n, '0x0000000000000000000000000000000000000000');
    const refused = await send(input);
    expect(await cancel(input)).toEqual(CANCELLED);
    expect(await send(input)).toEqual(refused);
  });

  it('comes too late for one that is signed, also before its broadcast', async () => {
    const input = world.settle('ETH', 1n, wallet());
    world.killAt('settlement kept');
    await expect(send(input)).rejects.toThrow(Killed);
    expect(await cancel(input)).toEqual({ outcome: 'too_late' });
    await world.run();
    await world.blocks(CONFIRMATIONS);
    expect(world.product.names(input.crypto_settlement_id).at(-1)).toBe('completed');
  });

  it('and an instruction at once are one of the two', async () => {
    for (let round = 0; round < 8; round += 1) {
      const input = world.settle('ETH', 1n, wallet());
      const sending = send(input).catch(() => undefined);
      const [cancelled] = await Promise.all([cancel(input), sending]);
      const isSigned = (await kept(input.crypto_settlement_id)) !== null;
      expect(cancelled).toEqual(isSigned ? { outcome: 'too_late' } : CANCELLED);
    }
  });
});

describe('a fee', () => {
  it('is raised on the same nonce when no block takes the settlement, which is paid once', async () => {
    const to = wallet();
    const before = await sentCount();
    const input = world.settle('ETH', ETHER, to);
    const first = await send(input);
    world.clock.ahead_ms += 200_000;
    await world.run();
    await world.run();
    const { attempts = [], nonce } = (await kept(input.crypto_settlement_id)) ?? {};
    expect(attempts).toHaveLength(2);
    expect(nonce).toBe(before);
    const second = { outcome: 'sent', transaction_id: attempts[1]?.hash };
    expect(await world.evm.activities.lookUpSettlement(input)).toEqual(second);
    expect(second).not.toEqual(first);
    await world.blocks(CONFIRMATIONS);
    expect(world.product.names(input.crypto_settlement_id)).toEqual(['sent', 'completed']);
    expect(await etherOf(to)).toBe(ETHER);
    expect(await sentCount()).toBe(before + 1);
  });

  it('is raised, too, where the chain grew too dear before the node took the settlement', async () => {
    const to = wallet();
    const input = world.settle('ETH', 6n, to);
    world.killAt('settlement kept');
    await expect(send(input)).rejects.toThrow(Killed);
    const [first] = (await kept(input.crypto_settlement_id))?.attempts ?? [];
    const baseFeePerGas = 2n * BigInt(first?.fee_max ?? 0);
    await world.chain.client.setNextBlockBaseFeePerGas({ baseFeePerGas });
    await world.blocks(1);
    expect(await etherOf(to)).toBe(0n);
    world.clock.ahead_ms += 200_000;
    await world.run();
    await world.blocks(CONFIRMATIONS);
    expect(await etherOf(to)).toBe(6n);
    expect(world.product.names(input.crypto_settlement_id).at(-1)).toBe('completed');
  });

  it('is raised no further than it may be', async () => {
    const input = world.settle('ETH', 1n, wallet());
    await send(input);
    const [first] = (await kept(input.crypto_settlement_id))?.attempts ?? [];
    await world.restart({ feeCap: BigInt(first?.fee_max ?? 0) });
    world.clock.ahead_ms += 200_000;
    await world.run();
    expect((await kept(input.crypto_settlement_id))?.attempts).toHaveLength(1);
    await world.restart();
  });
});

describe('killed', () => {
  it.each(['settlement signed', 'settlement kept', 'settlement broadcast'] satisfies Step[])(
    'at “%s”, and the node with it, the connector pays once',
    async (step) => {
      const to = wallet();
      const before = await sentCount();
      const input = world.settle('ETH', ETHER, to);
      world.killAt(step);
      await expect(send(input)).rejects.toThrow(Killed);
      await world.chain.restart();
      await world.restart();
      const found = await world.evm.activities.lookUpSettlement(input);
      expect(found.outcome).toBe(step === 'settlement signed' ? 'not_found' : 'pending');
      if (found.outcome === 'not_found') await send(input);
      await world.run();
      await world.blocks(CONFIRMATIONS);
      expect(await etherOf(to)).toBe(ETHER);
      expect(await sentCount()).toBe(before + 1);
      expect(world.product.names(input.crypto_settlement_id).at(-1)).toBe('completed');
    },
  );

  it('when the node has lost what it took, the connector broadcasts it again', async () => {
    const to = wallet();
    const input = world.settle('USDC', 4n, to);
    await send(input);
    await world.chain.restart();
    await world.blocks(1);
    expect(await world.chain.tokensOf(to)).toBe(0n);
    world.clock.ahead_ms += 61_000;
    await world.run();
    await world.blocks(CONFIRMATIONS);
    expect(await world.chain.tokensOf(to)).toBe(4n);
  });

  it('after a fee was raised and before it was broadcast, the connector pays once', async () => {
    const to = wallet();
    const input = world.settle('ETH', 5n, to);
    await send(input);
    world.clock.ahead_ms += 200_000;
    world.killAt('fee raised');
    await expect(world.run()).rejects.toThrow(Killed);
    await world.restart();
    await world.run();
    await world.blocks(CONFIRMATIONS);
    expect(await etherOf(to)).toBe(5n);
  });

  it.each(['settlement to be told', 'settlement told'] satisfies Step[])(
    'at “%s”, the connector tells the end, and the same',
    async (step) => {
      const input = world.settle('ETH', 1n, wallet());
      await send(input);
      await world.blocks(CONFIRMATIONS - 1);
      await world.chain.mine();
      world.killAt(step);
      await expect(world.run()).rejects.toThrow(Killed);
      await world.restart();
      await world.run();
      expect(world.product.names(input.crypto_settlement_id)).toEqual(['completed']);
    },
  );
});

describe('the end', () => {
  it('is failed when the chain reverts what it would not have refused before', async () => {
    const to = wallet();
    const input = world.settle('USDC', 9n, to);
    const answer = await send(input);
    const hash = answer.outcome === 'sent' ? answer.transaction_id : '';
    await world.chain.refuse(to);
    await world.blocks(CONFIRMATIONS);
    const [told] = world.product.about(input.crypto_settlement_id);
    expect(told).toMatchObject({
      name: 'failed',
      callback: { transaction_id: hash, code: 'transaction_reverted' },
    });
    expect(await world.chain.tokensOf(to)).toBe(0n);
  });

  it('comes again after a reorganisation that took it back, and pays once', async () => {
    const to = wallet();
    const before = await sentCount();
    const input = world.settle('ETH', 8n, to);
    await send(input);
    await world.blocks(CONFIRMATIONS);
    await world.chain.reorganise(CONFIRMATIONS);
    expect(await etherOf(to)).toBe(0n);
    await world.chain.mine();
    await world.run();
    await world.blocks(CONFIRMATIONS);
    expect(await etherOf(to)).toBe(8n);
    expect(await sentCount()).toBe(before + 1);
    expect(world.product.names(input.crypto_settlement_id)).toEqual(['completed']);
  });
});

describe('another program that uses the account', () => {
  it('and takes a nonce fails the settlement, and stops all others until it is looked at', async () => {
    const to = wallet();
    const input = world.settle('ETH', ETHER, to);
    await send(input);
    const { nonce = 0 } = (await kept(input.crypto_settlement_id)) ?? {};
    const { client } = world.chain;
    const price = { maxFeePerGas: 10n ** 12n, maxPriorityFeePerGas: 10n ** 11n, gas: 21_000n };
    const sign = async (at: number) =>
      await world.payer.signTransaction({
        ...{ type: 'eip1559', chainId: 31_337, nonce: at, to: CUSTOMER, value: 1n },
        ...price,
      });
    await client.sendRawTransaction({ serializedTransaction: await sign(nonce) });
    await client.sendRawTransaction({ serializedTransaction: await sign(nonce + 1) });
    await expect(send(world.settle('ETH', 1n, to))).rejects.toThrow('compare them');
    await world.blocks(CONFIRMATIONS);
    const [told] = world.product.about(input.crypto_settlement_id);
    expect(told).toMatchObject({ name: 'failed', callback: { code: 'nonce_taken' } });
    expect(await etherOf(to)).toBe(0n);
    await expect(send(world.settle('ETH', 1n, to))).rejects.toThrow('compare them');
    await expect(world.restart()).rejects.toThrow('compare them');
  });
});
