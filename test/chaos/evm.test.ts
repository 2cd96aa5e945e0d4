import { randomBytes } from 'node:crypto';
import { getAddress, type Hash } from 'viem';
import { passOn, startProxy } from '../../connectors/conformance/proxy';
import type { Deposit } from '../../connectors/evm/deposits';
import type { Settlement } from '../../connectors/evm/settlements';
import { createConnectorKey } from '../../src/callbacks/keys';
import { createEncrypter } from '../../src/encryption/encrypter';
import { ASSET, type CryptoShop, ETHER, openCryptoShop, WALLET } from '../api/crypto-setting';
import { startEthereum } from '../connectors/evm/ethereum';
import { operatorsAudit } from '../support/audit';
import { eventually } from '../support/eventually';
import { mongodbUri, temporalAddress } from '../support/servers';
import { type Service, startService } from '../support/service';
import { createEvmProcess, type EvmProcess } from './evm-process';

/** The Ethereum connector as a process that is killed at each step, its node with it, for live money. */
const CONFIRMATIONS = 3;
const CONNECTOR = `evm-${randomBytes(4).toString('hex')}`;
const STEP_MS_MAX = 90_000;

let chain: Awaited<ReturnType<typeof startEthereum>>;
let proxy: Awaited<ReturnType<typeof startNodeProxy>>;
let service: Service;
let shop: CryptoShop;
let evm: EvmProcess;

beforeAll(async () => {
  const live = { connectors: `${CONNECTOR}=eth_ethereum`, prefix: CONNECTOR };
  [chain, service] = await Promise.all([
    startEthereum(),
    startService({ live, environments: ['live'] }),
  ]);
  proxy = await startNodeProxy(chain.url);
  shop = await openCryptoShop(service, true);
  const { mongo, stores, keys } = service;
  const encrypter = createEncrypter(keys.seal);
  const acting = { mongo, stores, encrypter, audit: operatorsAudit(stores), now: () => new Date() };
  evm = createEvmProcess({
    ...{ node: proxy.url, token: chain.token, connector: CONNECTOR, confirmations: CONFIRMATIONS },
    // Live money moves for signed reports alone.
    signing: await createConnectorKey(acting, CONNECTOR),
    env: {
      ...{ MONGODB_URI: mongodbUri(), MONGODB_DB: service.database },
      ...{ TEMPORAL_ADDRESS: temporalAddress(), TASK_QUEUE_PREFIX: CONNECTOR },
    },
  });
  await chain.client.setBalance({ address: evm.payer, value: 10n * ETHER });
});
afterAll(async () => {
  await evm?.destroy();
  await service?.mongo.db(`${service.database}_${CONNECTOR}`).dropDatabase();
  await service?.stop();
  await proxy?.stop();
  await chain?.stop();
});

/** Starts a proxy in front of a node, which loses questions, or their answers, when a test says so. */
async function startNodeProxy(node: string) {
  let loss: { method: string; isAnswer: boolean; happened: () => void } | undefined;
  const { url, stop } = await startProxy(0, async (request) => {
    const { method } = JSON.parse(request.body.toString());
    const lost = loss?.method === method ? loss : undefined;
    const answer = lost?.isAnswer === false ? undefined : await passOn(node, request);
    if (lost === undefined) return answer;
    lost.happened();
    // What is lost leaves the client waiting.
    return await new Promise<never>(() => {});
  });
  return {
    ...{ url, stop },
    /** Loses transactions from now on; resolves once one is lost. */
    loseTransaction: (at: 'question' | 'answer') =>
      new Promise<void>((happened) => {
        loss = { method: 'eth_sendRawTransaction', isAnswer: at === 'answer', happened };
      }),
    open: () => {
      loss = undefined;
    },
  };
}

const due = 5n * 10n ** 16n;
const book = () => service.mongo.db(`${service.database}_${CONNECTOR}`);
const sentCount = () => chain.client.getTransactionCount({ address: evm.payer });
const settlement = (_id: string) => book().collection<Settlement>('settlements').findOne({ _id });

test('the Ethereum connector refuses a development server of Temporal for live money and says why', async () => {
  const refused = await evm.start({ ALLOW_LIVE_DEMO: '' });
  expect(await refused.exited).toBe('ended with exit code 1');
  expect(evm.said()).toContain('Temporal is a development server');
});

test('a deposit is credited once, whenever the process and the node are killed', async () => {
  await evm.follow();
  const { id, address } = await shop.pay();
  const hash = await chain.pay(address, due);
  await told(hash, 0);
  await evm.kill();
  await chain.mine();
  await evm.start();
  await told(hash, 1);
  await evm.kill();

  await chain.restart();
  await chain.mine();
  await evm.follow();
  expect(await shop.balance()).toEqual({ available: '0', reserved: '0' });
  await evm.kill();

  await chain.mine();
  await chain.away();
  await evm.start();
  await evm.until('the node does not answer');
  await chain.restart();
  await told(hash, CONFIRMATIONS);
  await evm.kill();

  await chain.mine();
  await evm.follow();
  const received = await shop.untilStatus(id, 'received');
  expect(received.deposits).toMatchObject([{ transaction_id: hash, status: 'confirmed' }]);
  expect(await shop.balance()).toEqual({ available: String(due), reserved: '0' });
  expect(await shop.events(id)).toEqual(['crypto.payment.received']);
});

test('a settlement is one transaction, whenever the process and the node are killed', async () => {
  await shop.registerWallet();
  let lost = proxy.loseTransaction('question');
  const requested = await shop.post('/v1/crypto/settlements', ASSET);
  expect(requested.status).toBe(201);
  const { id } = requested.body;
  await lost;
  await evm.kill();
  expect(await settlement(id)).toMatchObject({ broadcast: null, mined: null });
  expect(await pooledCount()).toBe(0);

  await chain.restart();
  lost = proxy.loseTransaction('answer');
  await evm.start();
  await lost;
  await evm.kill();
  expect(await settlement(id)).toMatchObject({ broadcast: null });
  expect(await pooledCount()).toBe(1);

  proxy.open();
  await evm.start();
  await until(id, 'sent');
  await evm.kill();

  await chain.mine(CONFIRMATIONS - 1);
  await evm.start();
  const isMined = async () => (await settlement(id))?.mined != null;
  await eventually('its block is seen', isMined, STEP_MS_MAX);
  await evm.kill();

  await chain.restart();
  await chain.mine();
  await evm.start();
  await until(id, 'completed');
  expect(await chain.client.getBalance({ address: getAddress(WALLET) })).toBe(due);
  expect(await sentCount()).toBe(1);
  expect((await settlement(id))?.attempts).toHaveLength(1);
  expect(await shop.events(id)).toEqual(['crypto.settlement.completed']);
  expect(await shop.balance()).toEqual({ available: '0', reserved: '0' });
});

test('the connector follows its node again after an outage, without a restart', async () => {
  const { id, address } = await shop.pay();
  await chain.away();
  await evm.until('the round over the chain failed');
  await chain.restart();
  const hash = await chain.pay(address, due);
  await chain.mine(CONFIRMATIONS);
  await told(hash, CONFIRMATIONS);
  await shop.untilStatus(id, 'received');
});

test('no payment gets the address of another one after the database of the connector was restored', async () => {
  const { address } = await shop.pay();
  await evm.kill();
  for (const name of ['address_counters', 'addresses'])
    await book().collection(name).deleteMany({});
  await evm.follow();
  expect((await shop.pay()).address).not.toBe(address);
});

test('the connector ends on SIGTERM and leaves a ledger without differences', async () => {
  expect(await evm.stop()).toBe('ended with exit code 0');
  expect(await shop.balance()).toEqual({ available: String(due), reserved: '0' });
  expect((await shop.verify()).differences).toEqual([]);
});

/** Waits until the product has the report of a deposit with so many confirmations. */
async function told(transaction_id: Hash, confirmations: number): Promise<void> {
  const deposits = book().collection<Deposit>('deposits');
  const isReported = async () =>
    (await deposits.findOne({ transaction_id }))?.reported?.confirmations === confirmations;
  await eventually(`${confirmations} confirmations to be reported`, isReported, STEP_MS_MAX);
}

async function until(id: string, status: string): Promise<void> {
  const isSo = async () => (await shop.get(`/v1/crypto/settlements/${id}`)).body.status === status;
  await eventually(`it is ${status}`, isSo, STEP_MS_MAX);
}

/** Number of the account's transactions that wait for a block. */
async function pooledCount(): Promise<number> {
  const requested = { address: evm.payer, blockTag: 'pending' } as const;
  return (await chain.client.getTransactionCount(requested)) - (await sentCount());
}
