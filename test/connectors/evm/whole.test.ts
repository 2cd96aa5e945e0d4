import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import { deliverCallback } from '../../../connectors/contract/callbacks';
import type { CryptoConnectorActivities } from '../../../connectors/contract/crypto';
import { createInstructionGuard } from '../../../connectors/contract/guard';
import { type CryptoShop, IN_ETHER, openCryptoShop } from '../../api/crypto-setting';
import { eventually } from '../../support/http';
import { scriptedChain } from '../../support/scripted-chain';
import { type Service, startService } from '../../support/service';
import { LISTED } from './ethereum';
import { CONFIRMATIONS, type EvmWorld, startEvmWorld } from './world';

/** The whole product over a real chain: API, workflows and ledger, with webhooks recorded. */
let service: Service;
let world: EvmWorld;
let shop: CryptoShop;

beforeAll(async () => {
  service = await startService({ chain: scriptedChain(sandboxed()) });
  const { stores, temporal, queues, coins: connector } = service;
  const inbox = { stores, temporal, lifecycleQueue: queues.lifecycle, now: () => new Date() };
  const guard = createInstructionGuard(stores);
  world = await startEvmWorld({
    deliver: (report) => deliverCallback(inbox, { connector, ...report }),
    findOutdated: ({ crypto_settlement_id: id, version }) =>
      guard({ resource: 'crypto_settlement', id, version }),
  });
  shop = await openCryptoShop(service);
});
afterAll(async () => {
  await service?.stop();
  await world?.end();
});

/** The connector as a sandbox key reaches it, since this chain is nobody's money. */
function sandboxed(): CryptoConnectorActivities {
  const livemode = true;
  return {
    quoteRate: (input) => world.evm.activities.quoteRate({ ...input, livemode }),
    giveAddress: (input) => world.evm.activities.giveAddress({ ...input, livemode }),
    screenSource: (input) => world.evm.activities.screenSource({ ...input, livemode }),
    sendSettlement: (input) => world.evm.activities.sendSettlement({ ...input, livemode }),
    lookUpSettlement: (input) => world.evm.activities.lookUpSettlement(input),
  };
}

const due = 5n * 10n ** 16n;

test('a payment is underpaid, topped up over a death of connector and node, and settled', async () => {
  const { id, amount_due, address, payment_uri } = await shop.pay();
  expect(amount_due).toBe(String(due));
  expect(payment_uri).toBe(`ethereum:${address}@31337?value=${due}`);
  await world.chain.pay(address, due - 1n);
  await world.blocks(CONFIRMATIONS);
  await shop.until(id, 'underpaid', ({ status }) => status === 'underpaid');

  await world.chain.pay(address, 8n);
  await world.chain.mine();
  world.killAt('deposit to be told');
  await expect(world.run()).rejects.toThrow('killed at');
  await world.chain.restart();
  await world.restart();
  await world.blocks(CONFIRMATIONS);
  const received = await shop.until(id, 'received', ({ status }) => status === 'received');
  expect(received.amount_received).toBe(String(due + 7n));
  expect(received.deposits.map(({ status }) => status)).toEqual(['confirmed', 'confirmed']);
  expect(await shop.events(id)).toEqual(['crypto.payment.underpaid', 'crypto.payment.received']);
  expect(await shop.balance()).toEqual({ available: String(due + 7n), reserved: '0' });

  const wallet = privateKeyToAddress(generatePrivateKey());
  await register(wallet);
  world.killAt('settlement kept');
  const asked = { asset: IN_ETHER.asset, network: IN_ETHER.network };
  const settled = await shop.post('/v1/crypto/settlements', asked);
  expect(settled.status).toBe(201);
  const settlement = settled.body.id;
  await world.restart();
  await eventually('the connector has it', async () => {
    const answer = await world.evm.activities.lookUpSettlement({
      crypto_settlement_id: settlement,
    });
    return answer.outcome !== 'not_found';
  });
  await world.run();
  await world.blocks(CONFIRMATIONS);
  await eventually('it is completed', async () => {
    const { body } = await shop.get(`/v1/crypto/settlements/${settlement}`);
    return body.status === 'completed';
  });
  expect(await world.chain.client.getBalance({ address: wallet })).toBe(due + 7n);
  expect(await shop.events(settlement)).toEqual(['crypto.settlement.completed']);
  expect(await shop.balance()).toEqual({ available: '0', reserved: '0' });
});

test('a token of a listed source is held, and released by an operator', async () => {
  const { id, address, amount_due } = await shop.pay({ asset: 'USDC' });
  await world.chain.payToken(LISTED, BigInt(amount_due));
  await world.chain.mine();
  await world.chain.payToken(address, BigInt(amount_due), LISTED);
  await world.blocks(CONFIRMATIONS);
  await shop.until(id, 'held', ({ status }) => status === 'held');
  expect(await shop.balance('USDC.ethereum')).toEqual({ available: '0', reserved: '0' });
  await shop.act('crypto_payment', id, 'release');
  await shop.until(id, 'received', ({ status }) => status === 'received');
  expect(await shop.events(id)).toEqual(['crypto.payment.held', 'crypto.payment.received']);
  expect((await shop.balance('USDC.ethereum')).available).toBe(amount_due);
});

test('a reorganisation is forgotten before a deposit counts, and shown to operators after', async () => {
  const { id, address } = await shop.pay();
  await world.chain.pay(address, due);
  await world.blocks(1);
  await shop.until(id, 'seen', ({ deposits }) => deposits.length === 1);
  await world.chain.reorganise(1);
  await world.blocks(2);
  await shop.until(id, 'forgotten', ({ deposits }) => deposits.length === 0);
  await world.chain.pay(address, due);
  await world.blocks(CONFIRMATIONS);
  await shop.until(id, 'received', ({ status }) => status === 'received');
  await world.chain.reorganise(CONFIRMATIONS);
  await world.blocks(1);
  await shop.attention(id, 'deposit_undone');
});

test('the ledger says so to the unit', async () => {
  expect((await shop.verify()).differences).toEqual([]);
});

/** Registers a wallet that counts at once. */
async function register(address: string): Promise<void> {
  const { account_id } = shop;
  const wallet = { account_id, livemode: false, network: 'ethereum', address } as const;
  const now = new Date().toISOString();
  await service.stores.wallets.set(wallet, { now, counts_from: now });
}
