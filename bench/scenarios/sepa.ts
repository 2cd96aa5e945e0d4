import { mkdirSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { openSepaBook, SEPA_CONNECTOR, sepaDatabase } from '../../src/service/sepa/book';
import { requestCut } from '../../src/service/sepa/files';
import { createStores } from '../../src/store';
import type { PayoutDocument } from '../../src/store/payouts';
import { runCli } from '../measure/cli';
import { inLoops } from '../measure/load';
import { readMemory } from '../measure/process';
import type { Options } from '../options';
import { createApi } from '../product/api';
import { buildRow, type Report } from '../report';
import type { Setting } from '../servers/config';
import { type Stack, withStack } from '../servers/stack';
import { type BankDay, writeCamt } from './sepa-bank';

const IBAN = 'NL41MOCK0000000001';
const METHOD = 'sepa_credit_transfer';
/** Minor units of a payout: the test funds of an account are enough for 100,000. */
const AMOUNT = 10;
const LOOK_MS = 100;
const CUT_MS_MAX = 15 * 60_000;
const MIB = 1_024 * 1_024;

interface Folders {
  out: string;
  in: string;
}

/** Pays N payouts by one file, and a tenth of them before: from the API to the imported statement. */
export async function runSepa(options: Options, setting: Setting): Promise<Report> {
  const folders = { out: join(setting.dir, 'out'), in: join(setting.dir, 'in') };
  mkdirSync(folders.out);
  mkdirSync(folders.in);
  const env = {
    ...setting.env,
    ...{ SEPA_OUT_DIR: folders.out, SEPA_IN_DIR: folders.in, SEPA_IBAN: IBAN },
    ...{ SEPA_NAME: 'Benchmark', SEPA_POLL_SECONDS: '0.2' },
  };
  const sandboxConnectors = `${SEPA_CONNECTOR}=${METHOD}`;
  return await withStack(
    { ...setting, env, sandboxConnectors },
    { parts: 'product' },
    async (stack) => {
      const pay = await openPayer(stack, folders, options, setting);
      const count = options.payments;
      const tenth = await pay(Math.ceil(count / 10));
      const all = await pay(count);
      return {
        columns: ['a tenth', 'all'],
        rows: NAMES.map((name) => buildRow(name, tenth[name], all[name])),
        notes: [
          'connector_mib, worker_mib, import_mib: peaks, of the connector and the worker since their start',
          'create_s until all are submitted; book_s from camt.054 until all are completed',
        ],
      };
    },
  );
}

const NAMES = [
  ...(['payouts', 'create_s', 'cut_s', 'file_mib', 'book_s', 'statement_s', 'import_s'] as const),
  ...(['entries', 'connector_mib', 'worker_mib', 'import_mib'] as const),
];
type Result = Record<(typeof NAMES)[number], number | null>;

async function openPayer(stack: Stack, folders: Folders, options: Options, setting: Setting) {
  const { env, url, mongo, db, pids } = stack;
  const { progress, signal } = setting;
  const created = z.object({ sandbox_key: z.string() });
  const account = await runCli(['account', 'create', '--name', 'Benchmark'], created, env, setting);
  const api = createApi(url, account.output.sandbox_key);
  const recipient = await api.create('/v1/payout-recipients', {
    ...{ type: 'bank_account', first_name: 'Zoë', last_name: 'Weiß', country: 'DE' },
    ...{ iban: 'DE89370400440532013000', address_line1: 'Street 1', city: 'Berlin' },
    postal_code: '10115',
  });
  const recipient_id = z.object({ id: z.string() }).parse(recipient).id;
  const body = { recipient_id, method: METHOD, currency: 'EUR', amount: AMOUNT };
  const book = openSepaBook(mongo.db(sepaDatabase(db.databaseName, SEPA_CONNECTOR)));
  const { ledger } = createStores(db);
  const payouts = db.collection<PayoutDocument>('payouts');
  const entries = () => ledger.collections.entries.countDocuments({ kind: /^payout_/ });
  const until = async (isDone: () => Promise<boolean>) => {
    while (!(await isDone())) await sleep(LOOK_MS, undefined, { signal });
  };
  const timed = async (name: string, work: () => Promise<unknown>) => {
    const began = performance.now();
    await progress.during(name, work);
    return (performance.now() - began) / 1_000;
  };
  let day = 0;
  let paid = 0;

  /** Lets the bank write a file, and waits until the connector has taken it. */
  const deliver = async (message: 'camt.054' | 'camt.053', bankDay: BankDay) => {
    const name = `${message}-${bankDay.day}.xml`;
    writeFileSync(join(folders.in, `.${name}`), writeCamt(message, bankDay));
    renameSync(join(folders.in, `.${name}`), join(folders.in, name));
    await until(async () => (await book.inbound.countDocuments({ name, state: 'done' })) > 0);
  };

  return async (count: number): Promise<Result> => {
    const before = await entries();
    const ids: string[] = [];
    const create = async () => {
      const made = await api.create('/v1/payouts', body);
      ids.push(z.object({ id: z.string() }).parse(made).id);
    };
    const create_s = await timed(`Creating ${count} payouts`, async () => {
      await inLoops({ count, concurrency: options.concurrency, signal }, create);
      await until(async () => (await book.lines.countDocuments({ state: 'open' })) === count);
    });
    const deps = { mongo, now: () => new Date(), database: db.databaseName, connector: 'sepa' };
    let files: string[] = [];
    const cut_s = await timed('Cutting the file', async () => {
      files = await requestCut(deps, CUT_MS_MAX);
    });
    const [file] = await book.files.find({ _id: { $in: files } }).toArray();
    if (file === undefined) throw new Error('The connector has cut no file.');
    const file_mib = statSync(join(folders.out, file.name)).size / MIB;
    day += 1;
    const bankDay = { day, iban: IBAN, ids, amount: AMOUNT, opening: -paid };
    paid += count * AMOUNT;
    const completed = { _id: { $in: ids }, status: 'completed' } as const;
    const book_s = await timed('Completing the payouts', async () => {
      await deliver('camt.054', bankDay);
      await until(async () => (await payouts.countDocuments(completed)) === count);
    });
    const statement_s = await timed('Taking the statement', () => deliver('camt.053', bankDay));
    const data = z.object({ data: z.array(z.object({ refusal: z.null() })).min(1) });
    const imported = await runCli(['sepa', 'import'], data, env, setting);
    return {
      ...{ payouts: count, create_s, cut_s, file_mib, book_s, statement_s },
      ...{ import_s: imported.seconds, import_mib: imported.peak_mib },
      entries: (await entries()) - before,
      connector_mib: readMemory(pids['sepa'] ?? 0, 'peak'),
      worker_mib: readMemory(pids['worker'] ?? 0, 'peak'),
    };
  };
}
