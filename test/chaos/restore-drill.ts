import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Db } from 'mongodb';
import { startFakeBank } from '../../connectors/example/fake-bank';
import { connectMongo } from '../../src/base/mongo';
import { createMovementStore, sandboxBankDatabase } from '../../src/service/banks/sandbox';
import { type Child, startChild } from '../../stack/child-process';
import { freePort } from '../../stack/ports';
import { runApproved } from '../cli/cli';
import { type Dump, dumpDatabase, restoreDatabase } from '../support/dump';
import { eventually } from '../support/eventually';
import { createPatientClient, type PatientClient } from './patient-client';
import { openMerchant, RECIPIENT } from './race';
import { CHAIN_ENV, openChain, SAME, type WithDb } from './restore-chain';
import { RECOVERY_MS_MAX, type StackOptions, startStack } from './running-stack';

const SECRET = 'secret-of-the-example-bank';
/** Methods of payouts by their banks; the chain has settlements. */
const BANKS = { example: 'sepa_credit_transfer', sandbox: 'sepa_instant' } as const;
export type BankName = keyof typeof BANKS | 'evm';
export const BANK_NAMES: readonly BankName[] = ['example', 'sandbox', 'evm'];
const ROUTES = { SANDBOX_CONNECTORS: `example=${BANKS.example}`, ...CHAIN_ENV };
const ENDING_MS = 1_000;

/** Opens an installation, its banks, which no restore puts back, and its merchant. */
export async function openDrill() {
  const CONNECTOR_PORT = String(await freePort());
  const fake = await startFakeBank(SECRET, { webhookUrl: `http://127.0.0.1:${CONNECTOR_PORT}` });
  const folder = mkdtempSync(join(tmpdir(), 'restores-'));
  const secretFile = join(folder, 'secret');
  writeFileSync(secretFile, SECRET, { mode: 0o600 });
  const over = new AbortController();
  let stack = await startStack({ autoplay: 'on', env: ROUTES });
  const { cli } = stack;
  const merchant = await openMerchant(stack, 'Restores', over.signal);
  let { client }: { client: PatientClient } = merchant;
  const { body } = await client.post('/v1/payout-recipients', RECIPIENT, 'recipient');
  await cli('account', 'update', merchant.account, '--crypto', 'on');
  let live = createPatientClient(stack, merchant.opened.live_key, over.signal);
  const { key: OPERATOR_KEY } = await cli('operator', 'create', 'ada', '--role', 'approver');
  const options: StackOptions = { autoplay: 'on', env: { ...ROUTES, OPERATOR_KEY } };
  /** Banks by what was sent to them. */
  const made = new Map<string, BankName>();
  let example: Child | undefined;
  let starts = 0;

  /** Variables of connectors. */
  const readServers = () => {
    const { settings, mongodb, temporal } = stack.readState();
    const servers = { MONGODB_URI: mongodb.uri, TEMPORAL_ADDRESS: temporal.address };
    return { DATA_DIR: stack.dataDir, ...settings, ...servers };
  };
  const startExample = async (): Promise<void> => {
    starts += 1;
    const bank = { EXAMPLE_API_URL: fake.url, EXAMPLE_KEY_FILE: secretFile, CONNECTOR_PORT };
    example = await startChild({
      ...{ name: 'example', command: process.execPath, ipc: true, graceMs: 15_000 },
      args: [resolve('dist/connectors/example/main.js')],
      logFile: join(folder, `example-${starts}.log`),
      env: { PATH: process.env['PATH'], ...readServers(), ...bank },
    });
  };
  const killConnectors = async (): Promise<void> => {
    example?.kill();
    await Promise.all([example?.exited, chain.kill()]);
  };
  /** Reads and writes MongoDB past the service. @param pick chooses a database by the service's */
  const withDb: WithDb = async (pick, work) => {
    const { mongodb, settings } = stack.readState();
    const mongo = await connectMongo(mongodb.uri, 'restores-test');
    return await work(mongo.db(pick(settings.MONGODB_DB))).finally(() => mongo.close());
  };
  const withBank = <T>(work: (db: Db) => Promise<T>) => withDb(sandboxBankDatabase, work);
  const chain = await openChain(stack, withDb);
  await startExample();
  await chain.start(readServers());
  await chain.fund(live, merchant.account);
  const payOut = (method: string) => {
    const money = { recipient_id: body.id, amount: 1_000, currency: 'EUR', method };
    return client.post('/v1/payouts', money, `payout-${Math.random()}`);
  };
  return {
    stack: () => stack,
    pay: async (name: BankName): Promise<string> => {
      const paid = await (name === 'evm' ? chain.settle(live) : payOut(BANKS[name]));
      if (paid.status !== 201) throw new Error(paid.text);
      made.set(paid.body.id, name);
      return String(paid.body.id);
    },
    read: async (id: string) =>
      made.get(id) === 'evm'
        ? (await live.get(`/v1/crypto/settlements/${id}`)).body
        : (await client.get(`/v1/payouts/${id}`)).body,
    /** Marks as completed what a bank has executed. */
    complete: (id: string) => {
      const by = ['--operator', 'ada', '--reason', 'Ticket 1: on the statement'];
      const noun = made.get(id) === 'evm' ? 'crypto-settlement' : 'payout';
      return stack.cli(noun, 'act', id, 'mark_completed', ...by);
    },
    release: (name: BankName) => {
      const env = name === 'evm' ? 'live' : 'sandbox';
      const about = ['--env', env, '--after-restore', '--reason', 'Ticket 1: compared'];
      if (env === 'sandbox') return stack.cli('connector', 'release', name, ...about);
      const place = { env: { ...ROUTES, DATA_DIR: stack.dataDir } };
      return runApproved(place, 'connector', 'release', name, ...about);
    },
    /** Counts what each bank has executed of a payout or settlement, by its own store. */
    countExecuted: async (ids: readonly string[]): Promise<number[]> => {
      const sent = await withBank((db) => {
        const { collection } = createMovementStore(db, () => new Date());
        return collection.find({ amount: { $lt: 0 } }).toArray();
      });
      const onChain = await chain.countSent(ids);
      return ids.map((id, at) => {
        const atSandbox = sent.filter(({ resource_id }) => resource_id === id).length;
        const atExample = fake.posted.filter(({ reference }) => reference === id).length;
        return atSandbox + atExample + (onChain[at] ?? 0);
      });
    },
    /** Ends at the example's bank, and on the chain, what was executed. */
    finish: async (): Promise<void> => {
      await chain.mine();
      for (const { reference, state } of fake.transfers.values()) {
        if (state !== 'queued') continue;
        fake.change(reference, 'sent');
        fake.change(reference, 'arrived');
      }
    },
    /** Reads why a connector is stopped, as it reports. */
    readStop: (name: BankName) =>
      withDb(SAME, async (db) => {
        type Report = { _id: string; stopped?: unknown };
        const reports = db.collection<Report>('connector_capabilities');
        return (await reports.findOne({ _id: name }))?.stopped ?? null;
      }),
    /** Kills connectors and worker, which start again. */
    kill: async (): Promise<void> => {
      const isBack = [stack.kill('worker'), stack.kill('sandbox_bank')];
      await killConnectors();
      await Promise.all([startExample(), chain.start(readServers())]);
      for (const each of isBack) await eventually('a new process', each, RECOVERY_MS_MAX);
    },
    /** Lets nothing more reach the banks, and ends the installation. @param pay while it is so */
    stop: async (pay: () => Promise<void>): Promise<Dump> => {
      const { sandbox_bank } = stack.readState();
      await killConnectors();
      if (sandbox_bank.pid !== null) process.kill(sandbox_bank.pid, 'SIGSTOP');
      await pay();
      const bank = await withBank(dumpDatabase);
      const stopped = stack.stop();
      // Once it ends, it starts no other.
      await sleep(ENDING_MS);
      if (sandbox_bank.pid !== null) process.kill(sandbox_bank.pid, 'SIGKILL');
      expect(await stopped).toBe(0);
      return bank;
    },
    copy: (name: string, to: 'backup' | 'data'): void => {
      const [backup, data] = [join(folder, name), join(stack.dataDir, name)];
      const [from, target] = to === 'backup' ? [data, backup] : [backup, data];
      rmSync(target, { recursive: true, force: true });
      cpSync(from, target, { recursive: true });
    },
    /** Starts it over its folder. @param bank what the sandbox bank has really done */
    start: async (more: Partial<StackOptions> = {}, bank?: Dump): Promise<void> => {
      stack = await startStack({ ...options, dataDir: stack.dataDir, ...more });
      client = createPatientClient(stack, merchant.opened.sandbox_key, over.signal);
      live = createPatientClient(stack, merchant.opened.live_key, over.signal);
      if (bank !== undefined) await withBank((db) => keepBank(db, bank));
      await startExample();
      await (bank === undefined ? chain.start(readServers()) : chain.startOlder(readServers()));
    },
    close: async () => {
      over.abort();
      await killConnectors();
      await chain.destroy();
      await stack.destroy();
      await fake.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Gives the sandbox bank all that it has done, but for what is its connector's. */
async function keepBank(db: Db, bank: Dump): Promise<void> {
  const counts = await db.collection('send_counts').find().toArray();
  await restoreDatabase(db, new Map([...bank, ['send_counts', counts]]));
}
