import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { exitAfter } from '../../src/base/process';
import { parseEnvironment } from '../../src/config';
import { createTestTools } from '../kit';
import { callStripe, type StripeTools } from './api';
import type { Book, Sent } from './book';
import { createEventReader } from './events';
import { readFacts } from './facts';
import { lookUpRefund, sendRefund } from './refunds';
import { closeSession, openSession } from './sessions';
import { assertKeyMode, settings } from './settings';

const AMOUNT = 1_000;
const TRIES = 30;

type Step = (name: string, isRight: boolean, seen: string) => void;

/**
 * Runs what the connector does against the test mode of a real Stripe account, which the tests of
 * this repository cannot.
 * @see docs/stripe.md#rehearse-it
 */
export async function rehearse(tools: StripeTools, step: Step, waitMs = 2_000): Promise<void> {
  const payment = {
    ...{ payment_id: randomUUID(), amount: AMOUNT, currency: 'EUR', method: 'visa' },
    ...{ country: null, livemode: false, return_url: 'https://example.com/return' },
    expires_at: new Date(tools.now().getTime() + 1_800_000).toISOString(),
  };
  const [first, second] = [await openSession(payment, tools), await openSession(payment, tools)];
  const page = first.outcome === 'opened' ? String(first.session_url) : first.outcome;
  step('openSession', first.outcome === 'opened', page);
  const isSame = JSON.stringify(first) === JSON.stringify(second);
  step('openSession again', isSame, isSame ? 'the same session' : 'another one');
  const reference = first.outcome === 'opened' ? first.bank_reference : null;
  const { outcome } = await closeSession({ ...payment, bank_reference: reference }, tools);
  step('closeSession', outcome === 'closed', outcome);
  const charge = await payByCard(tools);
  const booked = await waitFor(waitMs, async () => {
    const { reports } = await readFacts({ object: 'charge', id: charge }, tools);
    return reports[0]?.callback.bank_reference;
  });
  step('settled', booked !== undefined, `${charge} is booked as ${booked}`);
  if (booked === undefined) return;
  const refund_id = randomUUID();
  const refund = {
    ...{ refund_id, version: 1, payment_id: payment.payment_id, payment_bank_reference: booked },
    ...{ amount: AMOUNT, currency: 'EUR', method: 'visa', livemode: false },
  };
  const answers = [await sendRefund(refund, tools), await sendRefund(refund, tools)];
  const found = await lookUpRefund({ refund_id }, tools);
  const ids = new Set([...answers, found].map((answer) => JSON.stringify(answer)));
  step('sendRefund twice, lookUpRefund', ids.size === 1, [...ids].join(' and '));
  const listed = await waitFor(waitMs, async () => {
    const at = Math.floor(tools.now().getTime() / 1_000);
    const cursor = JSON.stringify({ at, read_at: at, reads: 0 });
    const { reports } = await createEventReader()(cursor, tools);
    return reports.find(({ resource_id }) => resource_id === refund_id)?.name;
  });
  step('refund in the list of events', listed === 'settled', String(listed));
}

const Paid = z.object({ latest_charge: z.string() });

/** Pays with a card of Stripe's test mode, as nobody does on the page. */
async function payByCard(tools: StripeTools): Promise<string> {
  const params = {
    ...{ amount: AMOUNT, currency: 'eur', confirm: 'true', payment_method: 'pm_card_visa' },
    automatic_payment_methods: { enabled: 'true', allow_redirects: 'never' },
    metadata: { payment_id: randomUUID(), method: 'visa' },
  };
  const request = { path: 'payment_intents', params, post: true, key: randomUUID() };
  const { object, problem } = await callStripe(tools, request, Paid);
  if (object !== undefined) return object.latest_charge;
  throw new Error(`Stripe refused the payment: ${problem.code ?? problem.type}.`);
}

async function waitFor<T>(waitMs: number, read: () => Promise<T | undefined>) {
  for (let tried = 0; tried < TRIES; tried += 1) {
    const value = await read();
    if (value !== undefined) return value;
    await sleep(waitMs);
  }
  return undefined;
}

/** Book that ends with the process. */
export function createMemoryBook(now: () => Date): Book {
  const records = new Map<string, Sent>();
  return {
    ensureIndexes: async () => '',
    get: async (_id) => records.get(_id) ?? null,
    begin: async (_id, refunded) => {
      const first = { _id, key: _id, begun_at: now(), tried_at: now(), refunded, object: null };
      records.set(_id, { ...(records.get(_id) ?? first), tried_at: now() });
      return records.get(_id) ?? first;
    },
    note: async (_id, change) => {
      const record = records.get(_id);
      if (record !== undefined) records.set(_id, { ...record, ...change });
    },
  };
}

async function main(): Promise<void> {
  const { STRIPE_WEBHOOK_SECRET_FILE: _none, ...needed } = settings;
  const own = {
    ...parseEnvironment(z.object(needed), process.env),
    STRIPE_WEBHOOK_SECRET_FILE: '',
  };
  assertKeyMode(own.STRIPE_SECRET_KEY_FILE, 'sandbox');
  const now = () => new Date();
  const parts = { book: createMemoryBook(now), livemode: false, pause: { until: 0 } };
  const wrong: string[] = [];
  await rehearse({ ...createTestTools<typeof settings>(own), ...parts }, (name, isRight, seen) => {
    console.log(`${isRight ? 'ok    ' : 'WRONG '} ${name}: ${seen}`);
    if (!isRight) wrong.push(name);
  });
  if (wrong.length > 0) throw new Error(`Not as expected: ${wrong.join(', ')}.`);
}

if (require.main === module) exitAfter(main());
