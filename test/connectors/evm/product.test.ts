import { type ConnectorKey, deliverCallback } from '../../../connectors/contract/callbacks';
import type { CryptoConnectorActivities } from '../../../connectors/contract/crypto';
import { createInstructionGuard } from '../../../connectors/contract/guard';
import { runCommand } from '../../../connectors/evm/commands';
import { createLogger } from '../../../src/base/log';
import { createConnectorKey, revokeConnectorKey } from '../../../src/callbacks/keys';
import { createEncrypter } from '../../../src/encryption/encrypter';
import { type CryptoShop, IN_ETHER, openCryptoShop, WALLET } from '../../api/crypto-setting';
import { operatorsAudit } from '../../support/audit';
import { eventually } from '../../support/http';
import { scriptedChain } from '../../support/scripted-chain';
import { type Service, startService } from '../../support/service';
import { CONFIRMATIONS, type EvmWorld, startEvmWorld } from './world';

// A product of its own: its chain is this connector, on a real node.
let service: Service;
let world: EvmWorld;
let shop: CryptoShop;
/** Key that signs the reports; without it they are unsigned. */
let key: ConnectorKey | undefined;

beforeAll(async () => {
  service = await startService({ chain: scriptedChain(createSandboxActivities()) });
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

/** Builds the activities as a sandbox key reaches them, since this chain has no real money. */
function createSandboxActivities(): CryptoConnectorActivities {
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

test('a payment is topped up while connector and node die, and its funds are settled', async () => {
  const { id, amount_due, address, payment_uri } = await shop.pay();
  expect(amount_due).toBe(String(due));
  expect(payment_uri).toBe(`ethereum:${address}@31337?value=${due}`);
  await world.chain.pay(address, due - 1n);
  await world.makeBlocks(CONFIRMATIONS);
  await shop.until(id, 'underpaid', ({ status }) => status === 'underpaid');

  await world.chain.pay(address, 8n);
  await world.chain.mine();
  world.killAt('deposit to be reported');
  await expect(world.run()).rejects.toThrow('killed at');
  await world.chain.restart();
  await world.restart();
  await world.makeBlocks(CONFIRMATIONS);
  const received = await shop.until(id, 'received', ({ status }) => status === 'received');
  expect(received.amount_received).toBe(String(due + 7n));
  expect(received.deposits.map(({ status }) => status)).toEqual(['confirmed', 'confirmed']);
  expect(await shop.events(id)).toEqual(['crypto.payment.underpaid', 'crypto.payment.received']);
  expect(await shop.balance()).toEqual({ available: String(due + 7n), reserved: '0' });

  await shop.registerWallet();
  world.killAt('settlement stored');
  const { asset, network } = IN_ETHER;
  const settlement = await shop.post('/v1/crypto/settlements', { asset, network });
  expect(settlement.status).toBe(201);
  const crypto_settlement_id = settlement.body.id;
  await world.restart();
  await eventually('the connector to have it', async () => {
    const answer = await world.evm.activities.lookUpSettlement({ crypto_settlement_id });
    return answer.outcome !== 'not_found';
  });
  await world.run();
  await world.makeBlocks(CONFIRMATIONS);
  await service.becomes('crypto_settlements', crypto_settlement_id, { status: 'completed' });
  expect(await world.chain.client.getBalance({ address: WALLET })).toBe(due + 7n);
  expect(await shop.events(crypto_settlement_id)).toEqual(['crypto.settlement.completed']);
  expect(await shop.balance()).toEqual({ available: '0', reserved: '0' });
});

test('a deposit that a revoked key signed counts once it is reported again', async () => {
  const { mongo, stores, keys, chainConnector: connector } = service;
  const acting = { mongo, stores, audit: operatorsAudit(stores), now: () => new Date() };
  const create = () =>
    createConnectorKey({ ...acting, encrypter: createEncrypter(keys.seal) }, connector);
  const log = createLogger('test-evm', 'silent');
  const since = new Date().toISOString();
  const repeatReports = async () => {
    const deps = { ...acting, db: world.db, log };
    const results = await runCommand(deps, ['tell-again', '--since', since]);
    await world.run();
    return results;
  };
  const { id, address } = await shop.pay();
  key = await create();
  await world.chain.pay(address, due);
  await world.makeBlocks(CONFIRMATIONS - 1);
  await shop.until(id, 'seen', ({ deposits }) => deposits.length === 1);
  await revokeConnectorKey(acting, key.key_id);
  await world.makeBlocks(2);
  await shop.attention(id, 'sender_not_known');
  expect((await shop.read(id)).status).toBe('awaiting_deposit');
  key = await create();
  expect(await repeatReports()).toMatchObject({ deposits: 1 });
  await shop.until(id, 'received', ({ status }) => status === 'received');
  const before = await shop.balance();
  await repeatReports();
  expect(await shop.balance()).toEqual(before);
  key = undefined;
});

test('a restored connector gives no payment an address that another one has', async () => {
  const { address } = await shop.pay();
  await world.db.collection('address_lines').deleteMany({});
  await world.db.collection('addresses').deleteMany({});
  const after = await shop.pay();
  expect(after.address).not.toBe(address);
  const both = [address, after.address];
  const taken = await service.stores.crypto_payments.takenAddresses('ethereum', both);
  expect(taken.sort()).toEqual(both.sort());
});

test('the ledger agrees with every payment to the unit', async () => {
  expect((await shop.verify()).differences).toEqual([]);
});
