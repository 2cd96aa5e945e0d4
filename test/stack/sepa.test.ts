import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Document } from 'mongodb';
import { connectMongo } from '../../src/base/mongo';
import { latestCutOff } from '../../src/domain/payout/rails';
import { verifyLedger } from '../../src/ledger-check/verify';
import { openSepaBook, shortenId } from '../../src/service/banks/sepa/book';
import { requestCut } from '../../src/service/banks/sepa/files';
import { reconcileAccounts } from '../../src/service/banks/statements/reconciliation';
import { createStores } from '../../src/store';
import type { PaymentDocument } from '../../src/store/payments';
import { advance, repeatIfBehind } from '../api/clock-setting';
import { type RunningStack, startStack } from '../chaos/running-stack';
import { CreatedAccount } from '../cli/cli';
import { beginPayout } from '../connectors/begin-payout';
import { eventually } from '../support/eventually';
import { useFixture } from '../support/fixture';
import { call, createClient, idealPayment } from '../support/http';
import { describeWithBank, startMockBank } from '../support/mock-bank';

const IBAN = 'NL41MOCK0000000001';
/** Files under kills of both sides: `FILES=400` runs as many. */
const FILES = Number(process.env['FILES'] ?? 6);
/** Time for all that waits for the bank, at the end. */
const END_MS = 90_000 + FILES * 2_000;
/** Files between two kills: a hundred kills at most, each at another moment. */
const KILL_EVERY = Math.max(1, Math.floor(FILES / 100));
/** Times at which a process is killed after a file was requested. */
const KILL_AFTER_MS = [0, 60, 150, 300, 500, 900];
/** Amounts repeat, so that the test funds are enough for any number of files. */
const AMOUNTS = 10;
/** Transfers to us, after each of which the connectors are killed: twice at each moment. */
const TRANSFERS = 2 * KILL_AFTER_MS.length;
/** EUR on `main` of a new sandbox account, in minor units. */
const TEST_FUNDS = 10_000_000;
const until = (what: string, look: () => Promise<boolean>) => eventually(what, look, END_MS);
const sleepFor = (round: number) => sleep(KILL_AFTER_MS[round % KILL_AFTER_MS.length] ?? 0);
const NOON_MS = 12 * 3_600_000;
/**
 * Morning of the latest business day in Frankfurt, where it begins while the day before still lasts
 * by UTC: the bank books today what a file asks for.
 */
const MORNING = `${new Date(latestCutOff(Date.now(), 0) + NOON_MS).toISOString().slice(0, 10)}T09:30`;

jest.setTimeout(180_000 + FILES * 20_000);

/**
 * Runs a second process of the connector, which starts again at once: the launcher waits longer
 * after each kill.
 */
function runSecond(env: NodeJS.ProcessEnv) {
  const main = resolve('dist/connectors/sepa/main.js');
  let isOver = false;
  const start = (): ChildProcess => {
    const started = spawn(process.execPath, [main], {
      ...{ env: { ...process.env, ...env }, stdio: 'ignore' },
    });
    return started.once('exit', () => {
      if (!isOver) child = start();
    });
  };
  let child = start();
  return {
    kill: (): void => void child.kill('SIGKILL'),
    stop: async (): Promise<void> => {
      isOver = true;
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    },
  };
}

/** The connector’s book, and cuts as an operator requests them. */
async function openDesk(stack: RunningStack) {
  const state = stack.state();
  if (state === undefined) throw new Error('The stack is not running.');
  const mongo = await connectMongo(state.mongodb.uri, 'test');
  const database = state.settings.MONGODB_DB;
  const db = mongo.db(database);
  const { lines, files } = openSepaBook(mongo.db(`${database}_sepa`));
  const stores = createStores(db);
  const own = { mongo, stores, now: () => new Date() };
  return {
    /** Resolves without an answer when no process runs that could give it. */
    cut: () => requestCut({ ...own, database, connector: 'sepa' }).catch(() => undefined),
    countSent: () => lines.countDocuments({ file_id: { $ne: null }, state: { $ne: 'assigned' } }),
    countFiles: () => files.countDocuments({ state: { $ne: 'open' } }),
    countLines: () => lines.countDocuments({}),
    count: (of: 'payments' | 'payouts', status: string) =>
      db.collection(of).countDocuments({ status }),
    balances: (account_id: string) => stores.ledger.balances(account_id, false),
    reconcile: async () =>
      (await reconcileAccounts(own, { connector: 'sepa', livemode: false }))[0],
    verify: async () => (await verifyLedger(mongo, database)).differences,
    collection: <T extends Document>(of: string) => db.collection<T>(of),
    readReference: async (_id: string) =>
      (await db.collection<PaymentDocument>('payments').findOne({ _id }))?.instructions?.reference,
    countReports: (resource_id: string) =>
      db.collection('bank_callbacks').countDocuments({ resource_id }),
    close: () => mongo.close(),
  };
}

describeWithBank('npm start with SEPA files', () => {
  const bank = useFixture(
    () => startMockBank(MORNING),
    (opened) => opened.stop(),
  );
  const sepa = {
    SANDBOX_CONNECTORS: 'sepa=sepa_credit_transfer|sepa_instant|multibanco',
    ...{ SEPA_IBAN: IBAN, SEPA_INSTANT: 'yes', SEPA_INSTANT_SECONDS: '1' },
    ...{ SEPA_BIC: 'MOCKNL2A', SEPA_NAME: 'ACME Corporation', SEPA_POLL_SECONDS: '0.2' },
  };
  const folders = () => ({ SEPA_OUT_DIR: bank.drop, SEPA_IN_DIR: bank.pickup });
  const stack = useFixture(
    () => startStack({ env: { ...sepa, ...folders() } }),
    (opened) => opened.destroy(),
  );
  const second = useFixture(
    async () => {
      const { mongodb, temporal, settings } = stack.state() ?? {};
      return runSecond({
        ...{ ...sepa, ...folders(), ...settings, MONGODB_URI: mongodb?.uri },
        TEMPORAL_ADDRESS: temporal?.address,
        // As the docs say: processes of a connector share its state file.
        CONNECTOR_STATE_DIR: join(stack.dataDir, 'connectors'),
      });
    },
    (opened) => opened.stop(),
  );
  const desk = useFixture(
    () => openDesk(stack),
    (opened) => opened.close(),
  );

  const shop = useFixture(async () =>
    CreatedAccount.parse(await stack.cli('account', 'create', '--name', 'Shop')),
  );

  const killConnectors = () => {
    second.kill();
    const pid = stack.state()?.sepa?.pid;
    if (pid != null) process.kill(pid, 'SIGKILL');
  };

  test('every transfer settles its payment once through kills of connectors', async () => {
    const body = idealPayment({
      ...{ method: 'multibanco', country: 'PT', customer: { email: 'payer@example.com' } },
    });
    const payments: string[] = [];
    for (let round = 0; round < TRANSFERS; round += 1) {
      const amount = 1_000 + round;
      const request = { key: shop.sandbox_key, body: { ...body, amount } };
      const { id } = (await call(stack.url, 'POST', '/v1/payments', request)).body;
      const note = await eventually('its reference', () => desk.readReference(id), END_MS);
      payments.push(id);
      await bank.credit({ amount, note: `For the flowers of today, ${note}`, wrap: 35 });
      await sleepFor(round);
      killConnectors();
    }
    const isSettled = async () => (await desk.count('payments', 'settled')) === TRANSFERS;
    await until('every payment to be settled', isSettled);
    for (const id of payments) expect(await desk.countReports(id)).toBe(1);
    const sum = payments.reduce((total, _id, round) => total + 1_000 + round, 0);
    const main = { balance_account: 'main', currency: 'EUR', available: TEST_FUNDS + sum };
    expect(await desk.balances(shop.account_id)).toContainEqual(expect.objectContaining(main));
  });

  test('pays each payout exactly once through kills of connectors and the bank', async () => {
    await until('the connector', async () => stack.state()?.sepa?.pid != null);
    const before = (await bank.account('ACME')).balance;
    const payee = {
      ...{ type: 'bank_account', first_name: 'Zoë', last_name: 'Weiß', country: 'DE' },
      ...{ iban: 'DE89370400440532013000', address_line1: 'Street 1', city: 'Berlin' },
      postal_code: '10115',
    };
    const request = { key: shop.sandbox_key, body: payee };
    const recipient = (await call(stack.url, 'POST', '/v1/payout-recipients', request)).body;
    const money = { currency: 'EUR', recipient_id: recipient.id };
    const pay = (changes: object = {}) =>
      call(stack.url, 'POST', '/v1/payouts', {
        key: shop.sandbox_key,
        body: { ...money, ...changes },
      });
    const begin = async (amount: number, method = 'sepa_credit_transfer') => {
      return { id: await beginPayout(desk, { pay }, { amount, method }), amount };
    };
    const payouts: { id: string; amount: number }[] = [];
    const isAdded = async () => (await desk.countLines()) === payouts.length;
    for (let round = 0; round < FILES; round += 1) {
      const base = 100 * (round % AMOUNTS) + 1;
      // Files of their own, which are cut by themselves.
      payouts.push(...(await Promise.all([begin(base, 'sepa_instant'), begin(base + 1)])));
      await until('all in the book', isAdded);
      const cut = desk.cut();
      const kill = Math.floor(round / KILL_EVERY);
      const isKilled = round % KILL_EVERY === 0;
      if (isKilled) {
        await sleepFor(kill);
        killConnectors();
      }
      const read = bank.scan().catch(() => undefined);
      if (isKilled && kill % 2 === 1) await bank.restart(MORNING);
      await Promise.all([cut, read]);
    }
    // What is left of an interrupted cut goes into the next file.
    await until('every payout in a file', async () => {
      await desk.cut();
      return (await desk.countSent()) === payouts.length;
    });
    expect(await desk.countFiles()).toBeGreaterThan(FILES / 2);
    await bank.scan();
    // Past the statement of the day on which the bank executes what came after Friday's cut-off.
    await bank.advance(7);
    await until('every payout to be completed', async () => {
      await bank.scan();
      return (await desk.count('payouts', 'completed')) === payouts.length;
    });
    for (const { id } of payouts) expect(await bank.payments(shortenId(id))).toHaveLength(1);
    const sum = payouts.reduce((total, { amount }) => total + amount, 0);
    expect((await bank.account('ACME')).balance).toBe(before - sum);
    await until('the books to agree with the bank', async () => {
      const day = await desk.reconcile();
      return day?.closed === true && day.closing === before - sum;
    });
    // One that waits for the bank does not keep the clock of its account from reaching its target.
    payouts.push(await begin(1));
    await until('all in the book', isAdded);
    const client = createClient(stack.url, shop.sandbox_key);
    await repeatIfBehind(() => advance(client, { advance: 'P60D' }))();
    expect(await desk.verify()).toEqual([]);
    const log = readFileSync(join(stack.dataDir, 'logs', 'sepa.log'), 'utf8');
    expect(log).not.toContain('not authorized on');
  });
});
