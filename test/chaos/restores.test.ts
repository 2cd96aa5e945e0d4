import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Db } from 'mongodb';
import { startFakeBank } from '../../connectors/example/fake-bank';
import { connectMongo } from '../../src/base/mongo';
import {
  createMovementStore,
  sandboxBankDatabase,
} from '../../src/service/banks/sandbox-bank/movements';
import { type Child, startChild } from '../../stack/child-process';
import { freePort } from '../../stack/ports';
import { type Dump, dumpDatabase, restoreDatabase } from '../support/dump';
import { useFixture } from '../support/fixture';
import { eventually } from '../support/http';
import { createPatientClient, type PatientClient } from './patient-client';
import { findDifferences, openMerchant, RECIPIENT } from './race';
import { RECOVERY_MS_MAX, type RunningStack, type StackOptions, startStack } from './running-stack';

/**
 * Puts MongoDB and Temporal back, together and each alone, as docs/operations.md says, under payouts
 * and kills. The banks are not put back: none may execute an instruction twice. `RESTORES=all` runs it.
 */
const AT_ONCE = 3;
/** Instructions that were not sent are repeated after up to two minutes. */
const DONE_MS_MAX = 180_000;
/** Longer than the pause between two attempts of an instruction. */
const QUIET_MS = 3_000;

interface Case {
  what: string;
  folders: ('mongodb' | 'temporal')[];
  /** Runs what the start waits for. */
  whileStarting?: StackOptions['whileStarting'];
  /** Runs what the docs say once it has started. */
  repair?: (stack: RunningStack, since: string) => Promise<unknown>;
}

const CASES: readonly Case[] = [
  { what: 'both stores', folders: ['mongodb', 'temporal'] },
  {
    what: 'MongoDB alone',
    folders: ['mongodb'],
    whileStarting: (cli) =>
      eventually(
        'the stores to agree',
        () =>
          cli('reconcile', '--apply').then(
            () => true,
            () => false,
          ),
        DONE_MS_MAX,
      ),
  },
  {
    what: 'Temporal alone',
    folders: ['temporal'],
    repair: async ({ cli }, since) => {
      await cli('callback', 'deliver', '--again', '--since', since);
      await cli('orphan', 'restart');
    },
  },
];

const drill = useFixture(openDrill, (opened) => opened.close());
const payEach = async (count: number): Promise<string[]> =>
  await Promise.all(
    BANK_NAMES.flatMap((name) => Array.from({ length: count }, () => drill.pay(name))),
  );

/** Waits until each is executed, and completed. */
async function untilCompleted(ids: readonly string[]): Promise<void> {
  let statuses: string[] = [];
  const isCompleted = async () => {
    drill.finish();
    statuses = await Promise.all(ids.map(async (id) => String((await drill.read(id)).status)));
    return statuses.every((status) => status === 'completed');
  };
  await eventually('payouts to be completed', isCompleted, DONE_MS_MAX).catch(() => undefined);
  expect(statuses).toEqual(ids.map(() => 'completed'));
}

/** Pays while processes are killed, until the banks have executed all of it. */
async function payUnderKills(): Promise<string[]> {
  const [ids] = await Promise.all([payEach(AT_ONCE), drill.kill()]);
  await untilCompleted(ids);
  return ids;
}

const before: string[] = [];
const unsent: string[] = [];
let backedUpAt = '';

beforeAll(async () => {
  before.push(...(await payUnderKills()));
  await drill.stop(async () => void unsent.push(...(await payEach(1))));
  for (const name of ['mongodb', 'temporal']) drill.copy(name, 'backup');
  backedUpAt = new Date().toISOString();
  await drill.start();
  await untilCompleted(unsent);
}, 600_000);

test.each(CASES)(
  'no bank executes a payout twice where $what is put back',
  async (each) => {
    const since = await payUnderKills();
    const late: string[] = [];
    const bank = await drill.stop(async () => void late.push(...(await payEach(1))));
    for (const name of each.folders) drill.copy(name, 'data');
    const isMongo = each.folders.includes('mongodb');
    await drill.start(
      each.whileStarting === undefined ? {} : { whileStarting: each.whileStarting },
      isMongo ? bank : undefined,
    );
    await each.repair?.(drill.stack(), backedUpAt);
    const meanwhile = await payEach(1);
    if (isMongo) await expectNothingSent([...late, ...meanwhile]);
    const known = await endExecuted([...before, ...unsent, ...since, ...late]);
    if (isMongo) for (const name of BANK_NAMES) await release(name);
    await untilCompleted([...known, ...meanwhile]);
    const all = [...before, ...unsent, ...since, ...meanwhile];
    expect(await drill.countExecuted(all)).toEqual(all.map(() => 1));
    expect(Math.max(...(await drill.countExecuted(late)))).toBeLessThanOrEqual(1);
    expect(await findDifferences(drill.stack())).toEqual([]);
  },
  300_000,
);

/** Expects that connectors say why they are stopped, and send nothing. */
async function expectNothingSent(ids: readonly string[]): Promise<void> {
  for (const name of BANK_NAMES) {
    const isStopped = async () => (await drill.readStop(name)) !== null;
    await eventually(`a stop of ${name}`, isStopped, DONE_MS_MAX);
  }
  await new Promise((done) => setTimeout(done, QUIET_MS));
  expect(await drill.countExecuted(ids)).toEqual(ids.map(() => 0));
}

/** Marks as completed what the service has as unsent and a bank has executed. @returns what it has */
async function endExecuted(ids: readonly string[]): Promise<string[]> {
  const executed = await drill.countExecuted(ids);
  const known: string[] = [];
  for (const [at, id] of ids.entries()) {
    const { status } = await drill.read(id);
    if (status === undefined) continue;
    known.push(id);
    if (!['created', 'submitted'].includes(status) || executed[at] === 0) continue;
    const by = ['--operator', 'ada', '--reason', 'Ticket 1: on the statement'];
    await drill.stack().cli('payout', 'act', id, 'mark_completed', ...by);
  }
  return known;
}

async function release(name: BankName): Promise<void> {
  const about = ['--env', 'sandbox', '--after-restore', '--reason', 'Ticket 1: compared'];
  await drill.stack().cli('connector', 'release', name, ...about);
}

const SECRET = 'secret-of-the-example-bank';
/** Methods by their banks. */
const BANKS = { example: 'sepa_credit_transfer', sandbox: 'sepa_instant' } as const;
type BankName = keyof typeof BANKS;
const BANK_NAMES: readonly BankName[] = ['example', 'sandbox'];
const ROUTES = `example=${BANKS.example}`;
const ENDING_MS = 1_000;

/** Opens an installation, its banks, which no restore puts back, and its merchant. */
async function openDrill() {
  const CONNECTOR_PORT = String(await freePort());
  const fake = await startFakeBank(SECRET, { webhookUrl: `http://127.0.0.1:${CONNECTOR_PORT}` });
  const folder = mkdtempSync(join(tmpdir(), 'restores-'));
  const secretFile = join(folder, 'secret');
  writeFileSync(secretFile, SECRET, { mode: 0o600 });
  const over = new AbortController();
  const options: StackOptions = { autoplay: 'on', env: { SANDBOX_CONNECTORS: ROUTES } };
  let stack = await startStack(options);
  const merchant = await openMerchant(stack, 'Restores', over.signal);
  let { client }: { client: PatientClient } = merchant;
  const { body } = await client.post('/v1/payout-recipients', RECIPIENT, 'recipient');
  let example: Child | undefined;
  let starts = 0;

  const readState = () => {
    const state = stack.state();
    if (state === undefined) throw new Error('The stack does not run.');
    return state;
  };
  const startExample = async (): Promise<void> => {
    const { settings, mongodb, temporal } = readState();
    starts += 1;
    const servers = { MONGODB_URI: mongodb.uri, TEMPORAL_ADDRESS: temporal.address };
    const bank = { EXAMPLE_API_URL: fake.url, EXAMPLE_KEY_FILE: secretFile, CONNECTOR_PORT };
    example = await startChild({
      ...{ name: 'example', command: process.execPath, ipc: true, graceMs: 15_000 },
      args: [resolve('dist/connectors/example/main.js')],
      logFile: join(folder, `example-${starts}.log`),
      env: { PATH: process.env['PATH'], DATA_DIR: stack.dataDir, ...settings, ...servers, ...bank },
    });
  };
  const killExample = async (): Promise<void> => {
    example?.kill();
    await example?.exited;
  };
  /** Reads and writes MongoDB past the service. @param pick chooses a database by the service's */
  const withDb = async <T>(
    pick: (name: string) => string,
    work: (db: Db) => Promise<T>,
  ): Promise<T> => {
    const { mongodb, settings } = readState();
    const mongo = await connectMongo(mongodb.uri, 'restores-test');
    try {
      return await work(mongo.db(pick(settings.MONGODB_DB)));
    } finally {
      await mongo.close();
    }
  };
  const withBank = <T>(work: (db: Db) => Promise<T>) => withDb(sandboxBankDatabase, work);
  await startExample();
  return {
    stack: () => stack,
    pay: async (name: BankName): Promise<string> => {
      const money = { recipient_id: body.id, amount: 1_000, currency: 'EUR', method: BANKS[name] };
      const paid = await client.post('/v1/payouts', money, `payout-${Math.random()}`);
      if (paid.status !== 201) throw new Error(paid.text);
      return String(paid.body.id);
    },
    read: async (id: string) => (await client.get(`/v1/payouts/${id}`)).body,
    /** Counts what each bank has executed of a payout, by its own store. */
    countExecuted: async (ids: readonly string[]): Promise<number[]> => {
      const sent = await withBank((db) =>
        createMovementStore(db, () => new Date())
          .collection.find({ amount: { $lt: 0 } })
          .toArray(),
      );
      return ids.map((id) => {
        const atSandbox = sent.filter(({ resource_id }) => resource_id === id).length;
        const atExample = fake.posted.filter(({ reference }) => reference === id).length;
        return atSandbox + atExample;
      });
    },
    /** Ends at the example's bank what it has executed. */
    finish: (): void => {
      for (const { reference, state } of fake.transfers.values()) {
        if (state !== 'queued') continue;
        fake.change(reference, 'sent');
        fake.change(reference, 'arrived');
      }
    },
    /** Reads why a connector is stopped, as it reports. */
    readStop: (name: BankName) =>
      withDb(
        (database) => database,
        async (db) => {
          const reports = db.collection<{ _id: string; stopped?: unknown }>(
            'connector_capabilities',
          );
          return (await reports.findOne({ _id: name }))?.stopped ?? null;
        },
      ),
    /** Kills connectors and worker, which start again. */
    kill: async (): Promise<void> => {
      const isBack = [stack.kill('worker'), stack.kill('sandbox_bank')];
      await killExample();
      await startExample();
      for (const each of isBack) await eventually('a new process', each, RECOVERY_MS_MAX);
    },
    /** Lets nothing more reach the banks, and ends the installation. @param pay while it is so */
    stop: async (pay: () => Promise<void>): Promise<Dump> => {
      const { sandbox_bank } = readState();
      await killExample();
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
      if (bank !== undefined) await withBank((db) => keepBank(db, bank));
      await startExample();
    },
    close: async () => {
      over.abort();
      await killExample();
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
