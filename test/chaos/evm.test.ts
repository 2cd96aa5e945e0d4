import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import * as Keystore from 'ox/Keystore';
import { type Address, getAddress, type Hash } from 'viem';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import { passOn, startProxy } from '../../connectors/conformance/proxy';
import type { ConnectorKey } from '../../connectors/contract/callbacks';
import type { Deposit } from '../../connectors/evm/deposits';
import type { Settlement } from '../../connectors/evm/settlements';
import { createConnectorKey } from '../../src/callbacks/keys';
import { createEncrypter } from '../../src/encryption/encrypter';
import { type Child, startChild } from '../../stack/child-process';
import { type CryptoShop, ETHER, IN_ETHER, openCryptoShop } from '../api/crypto-setting';
import { CHAIN_ID, startEthereum } from '../connectors/evm/ethereum';
import { ACCOUNT } from '../connectors/evm/words';
import { operatorsAudit } from '../support/audit';
import { eventually } from '../support/http';
import { mongodbUri, temporalAddress } from '../support/servers';
import { type Service, startService } from '../support/service';

/** The Ethereum connector as a process that is killed at each step, its node with it, for live money. */
const CONFIRMATIONS = 3;
const CONNECTOR = `evm-${randomBytes(4).toString('hex')}`;
const STEP_MS_MAX = 90_000;

let chain: Awaited<ReturnType<typeof startEthereum>>;
let proxy: NodeProxy;
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
  evm = createEvmProcess({
    ...{ node: proxy.url, token: chain.token, connector: CONNECTOR, confirmations: CONFIRMATIONS },
    ...{ database: service.database, prefix: CONNECTOR, signing: await signingKey() },
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

/** Makes a key of the connector, since live money moves for signed reports alone. */
async function signingKey(): Promise<ConnectorKey> {
  const { mongo, stores, keys } = service;
  const now = () => new Date();
  const acting = { mongo, stores, audit: operatorsAudit(stores), now };
  return await createConnectorKey({ ...acting, encrypter: createEncrypter(keys.seal) }, CONNECTOR);
}

const due = 5n * 10n ** 16n;
const book = () => service.mongo.db(`${service.database}_${CONNECTOR}`);
const sentCount = () => chain.client.getTransactionCount({ address: evm.payer });
const settlement = (_id: string) => book().collection<Settlement>('settlements').findOne({ _id });

test('refuses a development server of Temporal for live money and says why', async () => {
  const refused = await evm.start({ ALLOW_LIVE_DEMO: '' });
  expect(await refused.exited).toBe('ended with exit code 1');
  expect(evm.said()).toContain('Temporal is a development server');
});

test('credits a deposit once, whenever the process and the node are killed', async () => {
  await evm.follow();
  const { id, address } = await shop.pay();
  const hash = await chain.pay(address, due);
  await chain.mine();
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
  const received = await shop.until(id, 'received', ({ status }) => status === 'received');
  expect(received.deposits).toMatchObject([{ transaction_id: hash, status: 'confirmed' }]);
  expect(await shop.balance()).toEqual({ available: String(due), reserved: '0' });
  expect(await shop.events(id)).toEqual(['crypto.payment.received']);
});

test('sends one transaction for a settlement, whenever the process and the node are killed', async () => {
  const wallet = privateKeyToAddress(generatePrivateKey());
  await register(wallet);
  let lost = proxy.lose('eth_sendRawTransaction', 'question');
  const { asset, network } = IN_ETHER;
  const requested = await shop.post('/v1/crypto/settlements', { asset, network });
  expect(requested.status).toBe(201);
  const { id } = requested.body;
  await lost;
  await evm.kill();
  expect(await settlement(id)).toMatchObject({ broadcast: null, mined: null });
  expect(await pooledCount()).toBe(0);

  await chain.restart();
  lost = proxy.lose('eth_sendRawTransaction', 'answer');
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
  expect(await chain.client.getBalance({ address: wallet })).toBe(due);
  expect(await sentCount()).toBe(1);
  expect((await settlement(id))?.attempts).toHaveLength(1);
  expect(await shop.events(id)).toEqual(['crypto.settlement.completed']);
  expect(await shop.balance()).toEqual({ available: '0', reserved: '0' });
});

test('follows a node again after an outage, without a restart', async () => {
  const { id, address } = await shop.pay();
  await chain.away();
  await evm.until('the round over the chain failed');
  await chain.restart();
  const hash = await chain.pay(address, due);
  await chain.mine(CONFIRMATIONS);
  await told(hash, CONFIRMATIONS);
  await shop.until(id, 'received', ({ status }) => status === 'received');
});

test('gives no payment the address of another one after its database was restored', async () => {
  const { address } = await shop.pay();
  await evm.kill();
  for (const name of ['address_counters', 'addresses'])
    await book().collection(name).deleteMany({});
  await evm.follow();
  expect((await shop.pay()).address).not.toBe(address);
});

test('ends on SIGTERM and leaves a ledger without differences', async () => {
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
  const isSo = async () => {
    const { body } = await shop.get(`/v1/crypto/settlements/${id}`);
    return body.status === status;
  };
  await eventually(`it is ${status}`, isSo, STEP_MS_MAX);
}

/** Number of the account's transactions that wait for a block. */
async function pooledCount(): Promise<number> {
  const requested = { address: evm.payer, blockTag: 'pending' } as const;
  return (await chain.client.getTransactionCount(requested)) - (await sentCount());
}

/** Registers a wallet that counts at once. */
async function register(address: string): Promise<void> {
  const { account_id } = shop;
  const wallet = { account_id, livemode: true, network: 'ethereum', address } as const;
  const now = new Date().toISOString();
  await service.stores.wallets.set(wallet, { now, counts_from: now });
}

/** Process of the connector, as `docs/evm.md` runs it. */
const MAIN = resolve('dist/connectors/evm/main.js');
const PASSWORD = 'correct horse';
const STOP_MS_MAX = 60_000;
const UP_MS_MAX = 90_000;

interface EvmProcessOptions {
  /** URL of the node. */
  node: string;
  token: Address;
  connector: string;
  /** Database and queues of the product. */
  database: string;
  prefix: string;
  confirmations: number;
  /** Key that reports are signed with. */
  signing: ConnectorKey;
}

type EvmProcess = ReturnType<typeof createEvmProcess>;

/** The connector's process, one at a time, with files of its own for what it is given. */
function createEvmProcess(options: EvmProcessOptions) {
  const folder = mkdtempSync(join(tmpdir(), 'evm-process-'));
  const key = generatePrivateKey();
  const env = { PATH: process.env['PATH'], ...environment(folder, key, options) };
  let child: Child | undefined;
  let starts = 0;
  const logFile = () => join(folder, `${starts}.log`);
  const said = () => readFileSync(logFile(), 'utf8');
  const start = async (change: NodeJS.ProcessEnv = {}): Promise<Child> => {
    starts += 1;
    child = await startChild({
      ...{ name: 'evm', command: process.execPath, args: [MAIN], logFile: logFile() },
      ...{ env: { ...env, ...change }, ipc: true, graceMs: STOP_MS_MAX },
    });
    return child;
  };
  const until = (words: string) =>
    eventually(
      `“${words}”`,
      async () => {
        if (child?.hasExited()) throw new Error(`The process has ended:\n${said()}`);
        return said().includes(words);
      },
      UP_MS_MAX,
    );
  return {
    /** Account that pays settlements. */
    payer: privateKeyToAddress(key),
    /** Starts a process, which may have to wait for the node. */
    start,
    said,
    /** Waits until its log has these words. */
    until,
    /** Starts a process and waits until it follows the chain. */
    follow: async () => {
      await start();
      await until('the chain is followed');
    },
    /** Kills it by SIGKILL. */
    kill: async () => {
      child?.kill();
      await child?.exited;
    },
    /** Ends the process by SIGTERM and returns how it ended, in words. */
    stop: async () => {
      await child?.stop();
      return await child?.exited;
    },
    destroy: async () => {
      child?.kill();
      await child?.exited;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Variables of the process, whose secrets lie in files. */
function environment(
  folder: string,
  key: `0x${string}`,
  { node, token, connector, database, prefix, confirmations, signing }: EvmProcessOptions,
) {
  const file = (name: string, content: string): string => {
    const path = join(folder, name);
    writeFileSync(path, content, { mode: 0o600 });
    return path;
  };
  const [derived, how] = Keystore.scrypt({ password: PASSWORD, n: 1_024 });
  const rates = { ETH: { EUR: '2000' }, USDC: { EUR: '0.8' } };
  const settings = {
    connector,
    rpc_url_file: file('node', `${node}\n`),
    chain_id: CHAIN_ID,
    confirmations,
    traces: true,
    xpub_file: file('xpub', ACCOUNT.publicExtendedKey),
    usdc_address: getAddress(token),
    keystore_file: file('keystore', JSON.stringify(Keystore.encrypt(key, derived, how))),
    keystore_password_file: file('password', PASSWORD),
    screening_file: file('list', '# Nobody.\n'),
    rates: file('rates', JSON.stringify({ as_of: new Date().toISOString(), rates })),
    rates_seconds: 3_600,
    fee_max_gwei: '1000',
    raise_seconds: 86_400,
    poll_ms: 100,
  };
  return {
    EVM_CONFIG_FILE: file('evm.json', JSON.stringify(settings)),
    CONNECTOR_KEY_FILE: file('key.json', JSON.stringify(signing)),
    MONGODB_URI: mongodbUri(),
    MONGODB_DB: database,
    TEMPORAL_ADDRESS: temporalAddress(),
    TASK_QUEUE_PREFIX: prefix,
    ALLOW_LIVE_DEMO: 'yes',
  };
}

/** Way on which a question to the node gets lost: there, or back with the answer. */
type LostAt = 'question' | 'answer';

type NodeProxy = Awaited<ReturnType<typeof startNodeProxy>>;

/** Starts a proxy in front of a node, which loses questions when a test says so. */
async function startNodeProxy(node: string) {
  let loss: { method: string; at: LostAt; happened: () => void } | undefined;
  const { url, stop } = await startProxy(0, async (request) => {
    const { method } = JSON.parse(request.body.toString());
    const lost = loss?.method === method ? loss : undefined;
    const answer = lost?.at === 'question' ? undefined : await passOn(node, request);
    if (lost === undefined) return answer;
    lost.happened();
    // What is lost leaves the client waiting.
    return await new Promise<never>(() => {});
  });
  return {
    ...{ url, stop },
    /** Loses questions of a method from now on; resolves once one is lost. */
    lose: (method: string, at: LostAt) =>
      new Promise<void>((happened) => {
        loss = { method, at, happened };
      }),
    /** Lets all through again. */
    open: () => {
      loss = undefined;
    },
  };
}
