import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { connectMongo } from '../../src/base/mongo';
import { latestCutOff } from '../../src/domain/payout/target2';
import { openSepaBook, shortenId } from '../../src/service/banks/sepa/book';
import { requestCut } from '../../src/service/banks/sepa/files';
import type { PaymentDocument } from '../../src/store/payments';
import { type RunningStack, startStack } from '../chaos/running-stack';
import { CreatedAccount } from '../cli/cli';
import { useFixture } from '../support/fixture';
import { call, eventually, idealPayment } from '../support/http';
import { describeWithBank, startMockBank } from '../support/mock-bank';

const IBAN = 'NL41MOCK0000000001';
/** Files under kills of both sides: `FILES=400` runs as many. */
const FILES = Number(process.env['FILES'] ?? 6);
/** Time for all that waits for the bank, at the end. */
const END_MS = 90_000 + FILES * 2_000;
/** Files between two kills: a hundred kills at most, each at another moment. */
const KILL_EVERY = Math.max(1, Math.floor(FILES / 100));
const WAVE = 2;
/** Payouts that are read at once. */
const AT_ONCE = 50;
/** Times at which a process is killed after a file was requested. */
const KILL_AFTER_MS = [0, 60, 150, 300, 500, 900];
/** Amounts repeat, so that the test funds are enough for any number of files. */
const AMOUNTS = 10;
/** Transfers to us, after each of which the connectors are killed. */
const TRANSFERS = 12;
/** EUR on `main` of a new sandbox account, in minor units. */
const TEST_FUNDS = 10_000_000;
const Balances = z.object({
  data: z.array(
    z.object({ balance_account: z.string(), currency: z.string(), available: z.number() }).loose(),
  ),
});
const Clock = z.looseObject({ state: z.literal('standing'), behind: z.array(z.string()) });
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
  let child: ChildProcess;
  const start = (): void => {
    child = spawn(process.execPath, [main], { env: { ...process.env, ...env }, stdio: 'ignore' });
    child.once('exit', () => {
      if (!isOver) start();
    });
  };
  start();
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
  const { lines, files } = openSepaBook(mongo.db(`${database}_sepa`));
  const deps = { mongo, now: () => new Date(), database, connector: 'sepa' };
  return {
    /** Resolves without an answer when no process runs that could give it. */
    cut: () => requestCut(deps).catch(() => undefined),
    countSent: () => lines.countDocuments({ file_id: { $ne: null }, state: { $ne: 'assigned' } }),
    countFiles: () => files.countDocuments({ state: { $ne: 'open' } }),
    readReference: async (_id: string) => {
      const payments = mongo.db(database).collection<PaymentDocument>('payments');
      return (await payments.findOne({ _id }))?.instructions?.reference;
    },
    countReports: (resource_id: string) =>
      mongo.db(database).collection('bank_callbacks').countDocuments({ resource_id }),
    close: () => mongo.close(),
  };
}

/** Wait of the clock at each stop, of which a busy machine may need more than one. */
const STOP_MS = 20_000;

/** Advances a clock, and again where it did not wait for something at a stop. */
async function advanceUntilNoneBehind(stack: RunningStack, account_id: string): Promise<void> {
  await eventually(
    'the clock to wait for all that is due',
    async () => {
      const began = Date.now();
      const answer = await stack.cli('clock', 'advance', account_id, '--by', 'P60D');
      const { behind } = Clock.parse(answer);
      // It is never behind before its wait is over.
      if (Date.now() - began < STOP_MS) expect(behind).toEqual([]);
      return behind.length === 0;
    },
    END_MS,
  );
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

  const killConnectors = () => {
    second.kill();
    const pid = stack.state()?.sepa?.pid;
    if (pid != null) process.kill(pid, 'SIGKILL');
  };

  test('every transfer settles its payment once through kills of connectors', async () => {
    const created = CreatedAccount.parse(await stack.cli('account', 'create', '--name', 'Shop'));
    const { sandbox_key: key } = created;
    const body = idealPayment({
      ...{ method: 'multibanco', country: 'PT', customer: { email: 'payer@example.com' } },
    });
    let waiting: string[] = [];
    for (let round = 0; round < TRANSFERS; round += 1) {
      const amount = 1_000 + round;
      const request = { key, body: { ...body, amount } };
      const { id } = (await call(stack.url, 'POST', '/v1/payments', request)).body;
      const note = await eventually('its reference', () => desk.readReference(id), END_MS);
      waiting.push(id);
      await bank.credit({ amount, note: `For the flowers of today, ${note}`, wrap: 35 });
      await sleep(KILL_AFTER_MS[round % KILL_AFTER_MS.length] ?? 0);
      killConnectors();
    }
    const payments = waiting;
    await eventually(
      'every payment to be settled',
      async () => {
        const read = (id: string) => call(stack.url, 'GET', `/v1/payments/${id}`, { key });
        const all = await Promise.all(waiting.map(async (id) => (await read(id)).body));
        waiting = all.filter(({ status }) => status !== 'settled').map(({ id }) => id);
        return waiting.length === 0;
      },
      END_MS,
    );
    for (const id of payments) expect(await desk.countReports(id)).toBe(1);
    const sum = payments.reduce((total, _id, round) => total + 1_000 + round, 0);
    const env = ['--env', 'sandbox'];
    const { data } = Balances.parse(await stack.cli('balance', 'show', created.account_id, ...env));
    const main = data.find((row) => row.balance_account === 'main' && row.currency === 'EUR');
    expect(main?.available).toBe(TEST_FUNDS + sum);
  });

  test('pays each payout exactly once through kills of connectors and the bank', async () => {
    await eventually('the connector', async () => stack.state()?.sepa?.pid != null, END_MS);
    const before = (await bank.account('ACME')).balance;
    const created = CreatedAccount.parse(await stack.cli('account', 'create', '--name', 'Payer'));
    const { sandbox_key: key } = created;
    const post = async (path: string, body: object) => {
      const answer = await call(stack.url, 'POST', path, { key, body });
      if (answer.status !== 201) throw new Error(answer.text);
      return answer.body;
    };
    const recipient = await post('/v1/payout-recipients', {
      ...{ type: 'bank_account', first_name: 'Zoë', last_name: 'Weiß', country: 'DE' },
      ...{ iban: 'DE89370400440532013000', address_line1: 'Street 1', city: 'Berlin' },
      postal_code: '10115',
    });
    const money = { method: 'sepa_credit_transfer', currency: 'EUR', recipient_id: recipient.id };
    // Files of their own, which are cut by themselves.
    const METHODS = ['sepa_instant', 'sepa_credit_transfer'];
    const payouts: { id: string; amount: number }[] = [];
    for (let round = 0; round < FILES; round += 1) {
      const base = 100 * (round % AMOUNTS) + 1;
      const amounts = Array.from({ length: WAVE }, (_, index) => base + index);
      payouts.push(
        ...(await Promise.all(
          amounts.map((amount, at) =>
            post('/v1/payouts', { ...money, amount, method: METHODS[at % METHODS.length] }),
          ),
        )),
      );
      const cut = desk.cut();
      const kill = Math.floor(round / KILL_EVERY);
      const isKilled = round % KILL_EVERY === 0;
      if (isKilled) {
        await sleep(KILL_AFTER_MS[kill % KILL_AFTER_MS.length] ?? 0);
        killConnectors();
      }
      const read = bank.scan().catch(() => undefined);
      if (isKilled && kill % 2 === 1) await bank.restart(MORNING);
      await Promise.all([cut, read]);
    }
    const status = async ({ id }: { id: string }) =>
      (await call(stack.url, 'GET', `/v1/payouts/${id}`, { key })).body.status;
    // What is left of an interrupted cut goes into the next file.
    await eventually(
      'every payout in a file',
      async () => {
        await desk.cut();
        return (await desk.countSent()) === payouts.length;
      },
      END_MS,
    );
    expect(await desk.countFiles()).toBeGreaterThan(FILES / 2);
    await bank.scan();
    // Past the statement of the day on which the bank executes what came after Friday's cut-off.
    await bank.advance(7);
    let waiting = payouts;
    await eventually(
      'every payout to be completed',
      async () => {
        await bank.scan();
        const statuses = await Promise.all(waiting.slice(0, AT_ONCE).map(status));
        waiting = waiting.filter((_, index) => statuses[index] !== 'completed');
        return waiting.length === 0;
      },
      END_MS,
    );
    for (const { id } of payouts) expect(await bank.payments(shortenId(id))).toHaveLength(1);
    const sum = payouts.reduce((total, { amount }) => total + amount, 0);
    expect((await bank.account('ACME')).balance).toBe(before - sum);
    await eventually(
      'the books to agree with the bank',
      async () => {
        const of = ['--connector', 'sepa', '--env', 'sandbox'];
        const shown = z
          .object({ closing: z.number().nullable(), closed: z.boolean() })
          .loose()
          .parse(await stack.cli('reconciliation', 'show', ...of));
        return shown.closed && shown.closing === before - sum;
      },
      END_MS,
    );
    // One that waits for the bank does not keep the clock of its account from reaching its target.
    await post('/v1/payouts', { ...money, amount: 1 });
    await advanceUntilNoneBehind(stack, created.account_id);
    await stack.cli('ledger', 'verify');
    const log = readFileSync(join(stack.dataDir, 'logs', 'sepa.log'), 'utf8');
    expect(log).not.toContain('not authorized on');
  });
});
