import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { freePort } from '../../stack/ports';
import { useCommands } from '../cli/cli';
import { type Fault, startFakeStripe, type Thing } from '../connectors/stripe/fake';
import { becomesLate } from '../connectors/stripe/product';
import { KEY, WEBHOOK_SECRET } from '../connectors/stripe/world';
import { eventually } from '../support/eventually';
import { buildAccount, buildPayment } from '../support/factories';
import { useFixture } from '../support/fixture';
import { idealPayment } from '../support/http';
import { useService } from '../support/service';
import { ENDS_MS_MAX, useKilledConnector } from './killed-connector';

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

const world = useKilledConnector(service, {
  ...{ process: 'stripe', name: 'stripe', prefix, serves: SANDBOX_CONNECTORS },
  open: async (file) => {
    const port = await freePort();
    const webhook = { url: `http://127.0.0.1:${port}/webhooks`, secret: WEBHOOK_SECRET };
    const bank = await startFakeStripe({ key: KEY, webhook });
    const env = {
      ...{ CONNECTOR_PORT: String(port), STRIPE_API_URL: bank.url },
      STRIPE_SECRET_KEY_FILE: file('key', KEY),
      STRIPE_WEBHOOK_SECRET_FILE: file('webhook', WEBHOOK_SECRET),
    };
    return { bank, env };
  },
});

interface Row {
  /** Act of the merchant or the customer while the process runs. */
  story: keyof typeof STORIES;
  at: string;
  /** Arguments of `die-at.ts`; absent: at the request, which goes on after the client has gone. */
  step?: string[];
  fault?: Fault;
}

const REFUND = 'POST /v1/refunds';
const SESSION = 'POST /v1/checkout/sessions';
/** Steps of an instruction, from its key to its stored answer. */
const listSteps = (story: 'refund' | 'session', request: string, refunded: string): Row[] => {
  const record = ['updateOne instructions', `"${story}:`];
  const key = ['findOneAndUpdate stripe_sent', `"refunded":${refunded}`];
  return [
    { story, at: 'its key, before the request', step: ['after', ...key] },
    { story, at: 'amid its request' },
    { story, at: 'its answer, which nobody has stored', step: ['after', request] },
    { story, at: 'its object, before it is stored', step: ['before', ...record, '"outcome"'] },
    { story, at: 'its stored answer', step: ['after', ...record, '"outcome"'] },
  ];
};
const LOST = 'a failure that is stored, and was none';
const SENT = ['updateOne instructions', '"refund:', '"deadline"'];
const ROWS: Row[] = [
  // First what takes longest.
  { story: 'refund', at: 'a failure that is stored', step: ['after', REFUND], fault: 'stored_500' },
  { story: 'refund', at: LOST, step: ['after', REFUND], fault: 'stored_500_after' },
  { story: 'reversal', at: 'amid its request' },
  { story: 'reversal', at: 'its answer', step: ['after', REFUND] },
  { story: 'refund', at: 'its instruction, before it is sent', step: ['after', ...SENT] },
  ...listSteps('refund', REFUND, '{'),
  ...listSteps('session', SESSION, 'null'),
  { story: 'session', at: LOST, step: ['after', SESSION], fault: 'stored_500_after' },
  { story: 'payment', at: 'its report', step: ['before', 'insertOne bank_callbacks'] },
  { story: 'payment', at: 'its stored report', step: ['after', 'insertOne bank_callbacks'] },
  { story: 'payment', at: 'the next cursor', step: ['before', 'updateOne cursors'] },
];

const made = { session: new Set<string>(), refund: new Set<string>(), reversal: new Set<string>() };
let paid = '';
const waiting: string[] = [];

const open = async (): Promise<string> => {
  const body = idealPayment({ amount: 1_000, method: 'visa' });
  return (await account.post('/v1/payments', body, { idempotencyKey: randomUUID() })).body.id;
};

const STORIES = {
  session: async () => void made.session.add(await open()),
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
    await world.killAt({
      at: `${story}: ${at}`,
      step,
      hold: (dies) => bank.holdNext(story === 'session' ? SESSION : REFUND, dies),
      act: async () => {
        if (fault !== undefined) bank.failNext(fault);
        await STORIES[story]();
      },
    });
  }
  await world.start();
  const settled = (id: string) => bank.listRefunds(id)[0];
  await Promise.all([
    ...[...made.session].map(async (id) => {
      const isOpen = async () => (await service.stores.payments.get(id))?.status !== 'created';
      await eventually(`the session of ${id}`, isOpen, ENDS_MS_MAX);
      if (bank.findSession(id)['status'] === 'open') await bank.pay(id);
      await becomesLate(service, 'payments', id, { status: 'settled' });
    }),
    ...[...made.refund, ...[...made.reversal].map((id) => `reversal:${id}`)].map(async (id) => {
      const refund = await eventually(`the refund ${id}`, async () => settled(id), ENDS_MS_MAX);
      await bank.settleRefund(refund);
    }),
    ...[...made.refund].map((id) => becomesLate(service, 'refunds', id, { status: 'settled' })),
    ...[...made.reversal].map((id) =>
      becomesLate(service, 'payments', id, { attention: 'late_settlement_reversed' }),
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
