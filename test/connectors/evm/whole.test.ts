import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import { type ConnectorKey, deliverCallback } from '../../../connectors/contract/callbacks';
import type { CryptoConnectorActivities } from '../../../connectors/contract/crypto';
import { createInstructionGuard } from '../../../connectors/contract/guard';
import { runCommand } from '../../../connectors/evm/commands';
import { createLogger } from '../../../src/base/log';
import { createConnectorKey, revokeConnectorKey } from '../../../src/callbacks/keys';
import { createEncrypter } from '../../../src/encryption/encrypter';
import { type CryptoShop, IN_ETHER, openCryptoShop } from '../../api/crypto-setting';
import { operatorsAudit } from '../../support/audit';
import { eventually } from '../../support/http';
import { scriptedChain } from '../../support/scripted-chain';
import { type Service, startService } from '../../support/service';
import { LISTED } from './ethereum';
import { CONFIRMATIONS, type EvmWorld, startEvmWorld } from './world';

/** The whole product over a real chain: API, workflows and ledger, with webhooks recorded. */
let service: Service;
let world: EvmWorld;
let shop: CryptoShop;
/** Key that signs the reports; without it they are unsigned. */
let key: ConnectorKey | undefined;

beforeAll(async () => {
  service = await startService({ chain: scriptedChain(sandboxed()) });
  const { stores, temporal, queues, chainConnector: connector } = service;
  const now = () => new Date();
  const inbox = { stores, temporal, lifecycleQueue: queues.lifecycle, now };
  const log = createLogger('test-guard', 'silent');
  const guard = createInstructionGuard({ ...stores, connector, log });
  world = await startEvmWorld({
    deliver: (report) => deliverCallback({ ...inbox, key }, { connector, ...report }),
    findTaken: (addresses) => stores.crypto_payments.takenAddresses('ethereum', addresses),
    findOutdated: (instruction) =>
      guard.findOutdated('crypto_settlement', { ...instruction, livemode: false }),
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

test('a deposit whose key was revoked at its delivery counts once it is told again', async () => {
  const { mongo, stores, keys, chainConnector: connector } = service;
  const acting = { mongo, stores, audit: operatorsAudit(stores), now: () => new Date() };
  const create = () =>
    createConnectorKey({ ...acting, encrypter: createEncrypter(keys.seal) }, connector);
  const since = new Date().toISOString();
  const { id, address } = await shop.pay();
  key = await create();
  await world.chain.pay(address, due);
  await world.blocks(CONFIRMATIONS - 1);
  await shop.until(id, 'seen', ({ deposits }) => deposits.length === 1);
  await revokeConnectorKey(acting, key.key_id);
  await world.blocks(2);
  await shop.attention(id, 'sender_not_known');
  expect((await shop.read(id)).status).toBe('awaiting_deposit');
  key = await create();
  const log = createLogger('test-evm', 'silent');
  const told = await runCommand({ ...acting, db: world.db, log }, ['tell-again', '--since', since]);
  expect(told).toMatchObject({ deposits: 1 });
  await world.run();
  await shop.until(id, 'received', ({ status }) => status === 'received');
  const before = await shop.balance();
  await runCommand({ ...acting, db: world.db, log }, ['tell-again', '--since', since]);
  await world.run();
  expect(await shop.balance()).toEqual(before);
  key = undefined;
});

test('a payment gets no address that another one has, after the connector was restored', async () => {
  const { address } = await shop.pay();
  await world.db.collection('address_lines').deleteMany({});
  await world.db.collection('addresses').deleteMany({});
  const after = await shop.pay();
  expect(after.address).not.toBe(address);
  const held = await service.stores.crypto_payments.takenAddresses('ethereum', [
    address,
    after.address,
  ]);
  expect(held.sort()).toEqual([address, after.address].sort());
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
