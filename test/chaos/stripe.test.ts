import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import { type Child, startChild } from '../../stack/child-process';
import { freePort } from '../../stack/ports';
import { useCommands } from '../cli/cli';
import { type Fault, startFakeStripe, type Thing } from '../connectors/stripe/fake';
import { KEY, WEBHOOK_SECRET } from '../connectors/stripe/world';
import { buildAccount, buildPayment } from '../support/factories';
import { useFixture } from '../support/fixture';
import { eventually } from '../support/http';
import { noteForFailure } from '../support/quiet';
import { mongodbUri, temporalAddress } from '../support/servers';
import { useService } from '../support/service';

/** The connector of Stripe as a process that is killed between every two of its steps. */
const prefix = `stripe-${randomUUID().slice(0, 8)}`;
const SANDBOX_CONNECTORS = 'stripe=visa|ideal';
// A product of its own: its payments go to Stripe.
const service = useService({
  alone: true,
  live: { connectors: '', prefix },
  tests: SANDBOX_CONNECTORS,
});
// What Stripe does not let be used yet pays no refund.
const account = useFixture(() => buildAccount(service, { funds: 100_000 }));
const commands = useCommands(service);

const DIES_MS_MAX = 90_000;
/** An attempt that was killed may be followed after a minute, and another one after it. */
const ENDS_MS_MAX = 240_000;

const world = useFixture(
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'stripe-process-'));
    const file = (name: string, content: string): string => {
      const path = join(folder, name);
      writeFileSync(path, content, { mode: 0o600 });
      return path;
    };
    const port = await freePort();
    const webhook = { url: `http://127.0.0.1:${port}/webhooks`, secret: WEBHOOK_SECRET };
    const bank = await startFakeStripe({ key: KEY, webhook });
    const env = {
      ...{ PATH: process.env['PATH'], SANDBOX_CONNECTORS, TASK_QUEUE_PREFIX: prefix },
      ...{ MONGODB_URI: mongodbUri(), MONGODB_DB: service.database },
      ...{ TEMPORAL_ADDRESS: temporalAddress(), CONNECTOR_PORT: String(port) },
      ...{ CONNECTOR_STATE_DIR: join(folder, 'state'), STRIPE_API_URL: bank.url },
      KEYS_DIR: service.keysDir,
      STRIPE_SECRET_KEY_FILE: file('key', KEY),
      STRIPE_WEBHOOK_SECRET_FILE: file('webhook', WEBHOOK_SECRET),
    };
    const logFile = join(folder, 'log');
    let child: Child | undefined;
    return {
      bank,
      /** Starts the process, which dies at a step. */
      start: async (...dieAt: string[]): Promise<Child> => {
        const loads = ['test/support/register.js', 'test/chaos/die-at.ts'];
        child = await startChild({
          ...{ name: 'stripe', command: process.execPath, logFile, ipc: true, graceMs: 30_000 },
          args: [...loads.flatMap((each) => ['--require', resolve(each)]), MAIN],
          env: { ...env, DIE_AT: JSON.stringify(dieAt) },
        });
        return child;
      },
      stop: async () => {
        noteForFailure(readFileSync(logFile, 'utf8').slice(-3_000));
        await child?.stop();
        await bank.stop();
        await service.mongo.db(`${service.database}_stripe`).dropDatabase();
        rmSync(folder, { recursive: true });
      },
    };
  },
  ({ stop }) => stop(),
);
const MAIN = resolve('connectors/stripe/main.ts');

interface Row {
  /** Act of the merchant or the customer while the process runs. */
  story: keyof typeof STORIES;
  at: string;
  /** Arguments of `die-at.ts`; absent: at the request, which goes on after the client has gone. */
  step?: [when: 'before' | 'after', call: string, ...texts: string[]];
  fault?: Fault;
}

const REFUND = 'POST /v1/refunds';
const SESSION = 'POST /v1/checkout/sessions';
const ROWS: Row[] = [
  // First what takes longest.
  { story: 'refund', at: 'a failure that is stored', step: ['after', REFUND], fault: 'stored_500' },
  {
    ...{ story: 'refund', at: 'a failure that is stored, and was none' },
    ...{ step: ['after', REFUND], fault: 'stored_500_after' },
  },
  { story: 'reversal', at: 'amid its request' },
  { story: 'reversal', at: 'its answer', step: ['after', REFUND] },
  {
    ...{ story: 'refund', at: 'its instruction, before it is sent' },
    step: ['after', 'updateOne instructions', '"refund:', '"deadline"'],
  },
  {
    ...{ story: 'refund', at: 'its key, before the request' },
    step: ['after', 'findOneAndUpdate stripe_sent', '"refunded":{'],
  },
  { story: 'refund', at: 'amid its request' },
  { story: 'refund', at: 'its answer, which nobody has stored', step: ['after', REFUND] },
  {
    ...{ story: 'refund', at: 'its object, before the answer is stored' },
    step: ['before', 'updateOne instructions', '"refund:', '"outcome"'],
  },
  {
    ...{ story: 'refund', at: 'its stored answer' },
    step: ['after', 'updateOne instructions', '"refund:', '"outcome"'],
  },
  {
    ...{ story: 'session', at: 'its key, before the request' },
    step: ['after', 'findOneAndUpdate stripe_sent', '"refunded":null'],
  },
  { story: 'session', at: 'amid its request' },
  { story: 'session', at: 'its answer, which nobody has stored', step: ['after', SESSION] },
  {
    ...{ story: 'session', at: 'a failure that is stored, and was none' },
    ...{ step: ['after', SESSION], fault: 'stored_500_after' },
  },
  {
    ...{ story: 'session', at: 'its object, before the answer is stored' },
    step: ['before', 'updateOne instructions', '"session:', '"outcome"'],
  },
  {
    ...{ story: 'session', at: 'its stored answer' },
    step: ['after', 'updateOne instructions', '"session:', '"outcome"'],
  },
  { story: 'payment', at: 'its report', step: ['before', 'insertOne bank_callbacks'] },
  { story: 'payment', at: 'its stored report', step: ['after', 'insertOne bank_callbacks'] },
  { story: 'payment', at: 'the next cursor', step: ['before', 'updateOne cursors'] },
];

const made = { session: new Set<string>(), refund: new Set<string>(), reversal: new Set<string>() };
let paid = '';
const waiting: string[] = [];

const open = async (method: string): Promise<string> =>
  (await account.post('/v1/payments', { ...PAYMENT, method }, { idempotencyKey: randomUUID() }))
    .body.id;
const PAYMENT = {
  ...{ amount: 1_000, currency: 'EUR', country: 'NL', reference: 'order-1001' },
  ...{ success_url: 'https://shop.example/thanks', error_url: 'https://shop.example/sorry' },
};

const STORIES = {
  session: async () => void made.session.add(await open('visa')),
  refund: async () => {
    const { body } = await account.post('/v1/refunds', { payment_id: paid, amount: 100 });
    made.refund.add(body.id);
  },
  /** The customer pays what was cancelled. */
  reversal: async () => {
    const id = waiting.shift() ?? '';
    made.reversal.add(id);
    await world.bank.pay(id);
  },
  payment: async () => {
    const id = waiting.shift() ?? '';
    made.session.add(id);
    await world.bank.pay(id);
  },
};

test('each instruction has one session, charge or refund, wherever the process is killed', async () => {
  const { bank } = world;
  const first = await world.start();
  const payment = { amount: 10_000, method: 'visa' };
  const begun = await Promise.all(
    [{ ...payment }, ...Array(5).fill({ ...payment, amount: 1_000 })].map((fields) =>
      buildPayment(account, fields),
    ),
  );
  const ids: string[] = begun.map(({ id }) => id);
  paid = ids.shift() ?? '';
  waiting.push(...ids);
  await bank.pay(paid);
  await service.becomes('payments', paid, { status: 'settled' });
  for (const id of ids.slice(0, 2)) {
    await account.post(`/v1/payments/${id}/cancel`);
    await service.becomes('payments', id, { status: 'cancelled' });
  }
  await first.stop();

  for (const { story, at, step, fault } of ROWS) {
    const child = await world.start(...(step ?? []));
    const dies = async () => {
      child.kill();
      await child.exited;
    };
    if (step === undefined) bank.holdNext(story === 'session' ? SESSION : REFUND, dies);
    if (fault !== undefined) bank.failNext(fault);
    const [how] = await Promise.all([
      eventually(
        `a death at ${story}: ${at}`,
        async () => child.hasExited() && child.exited,
        DIES_MS_MAX,
      ),
      STORIES[story](),
    ]);
    expect({ story, at, how }).toEqual({ story, at, how: 'was ended by SIGKILL' });
  }
  await world.start();
  const settled = (id: string) => bank.listRefunds(id)[0];
  await Promise.all([
    ...[...made.session].map(async (id) => {
      const isOpen = async () => (await service.stores.payments.get(id))?.status !== 'created';
      await eventually(`the session of ${id}`, isOpen, ENDS_MS_MAX);
      if (bank.findSession(id)['status'] === 'open') await bank.pay(id);
      await untilStored('payments', id, { status: 'settled' });
    }),
    ...[...made.refund, ...[...made.reversal].map((id) => `reversal:${id}`)].map(async (id) => {
      const refund = await eventually(`the refund ${id}`, async () => settled(id), ENDS_MS_MAX);
      await bank.settleRefund(refund);
    }),
    ...[...made.refund].map((id) => untilStored('refunds', id, { status: 'settled' })),
    ...[...made.reversal].map((id) =>
      untilStored('payments', id, { attention: 'late_settlement_reversed' }),
    ),
  ]);
  const all = [...bank.things.values()];
  const count = (fits: (thing: Thing) => boolean) => all.filter(fits).length;
  for (const id of [...made.session, ...made.reversal]) {
    expect([
      count(({ object, client_reference_id }) => object !== 'event' && client_reference_id === id),
      count(({ object, metadata }) => object === 'charge' && metadata.payment_id === id),
    ]).toEqual([1, 1]);
  }
  for (const id of [...made.refund, ...[...made.reversal].map((each) => `reversal:${each}`)]) {
    expect([id, bank.listRefunds(id).length]).toEqual([id, 1]);
  }
  const balance = all
    .filter(({ object }) => object === 'balance_transaction')
    .reduce((sum, { amount }) => sum + Number(amount), 0);
  const { rows } = TrialBalance.parse(await commands.json('ledger', 'trial-balance', ...SANDBOX));
  const sum = rows
    .filter((row) => row.account === 'clearing.stripe')
    .reduce((total, each) => total + Number(each.balance), 0);
  expect(sum + balance).toBe(0);
  expect(balance).toBe(10_000 - made.refund.size * 100 + made.session.size * 1_000);
  await commands.json('ledger', 'verify');
}, 600_000);

const SANDBOX = ['--env', 'sandbox'];
const TrialBalance = z.object({
  rows: z.array(z.object({ account: z.string(), balance: z.unknown() })),
});

type Kind = 'payments' | 'refunds';
const untilStored = (kind: Kind, id: string, values: { status?: string; attention?: string }) =>
  eventually(
    `${kind} ${id} ${JSON.stringify(values)}`,
    async () => {
      const stored = await service.stores[kind].get(id);
      const seen = { status: stored?.status, attention: stored?.attention };
      return Object.entries(values).every(([name, value]) => seen[name as 'status'] === value);
    },
    ENDS_MS_MAX,
  );
