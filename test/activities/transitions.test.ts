import { randomBytes, randomUUID } from 'node:crypto';
import { MongoServerError } from 'mongodb';
import { createPaymentActivities } from '../../activities/payments';
import { openWithRetry } from '../../activities/shared/opening';
import type { SessionAnswer } from '../../connectors/contract/activities';
import { createLogger } from '../../src/base/log';
import type { PaymentAttention, PaymentStatus } from '../../src/domain/payment/payment';
import { webhookWorkflowId } from '../../src/domain/webhook/event';
import { retryTransient } from '../support/eventually';
import { readPayloads } from '../support/histories';
import { recordKey, useRecords } from '../support/records';

/**
 * A workflow task that is lost takes the reports of all its writes with it, so each write may be
 * requested again after later ones were made.
 */
const records = useRecords();

const SESSION: SessionAnswer = {
  outcome: 'opened',
  bank_reference: 'b',
  session_url: 'https://b.example',
};

/** A payment whose key is reserved, and the activities that a workflow calls about it. */
async function reservePayment() {
  const payment_id = randomUUID();
  const owner = { account_id: `acct_${payment_id}`, livemode: false, request_id: 'req-1' };
  const facts = {
    ...{ payment_id, ...owner, amount: 1_050, currency: 'EUR', method: 'ideal', country: 'NL' },
    ...{ connector: 'bank', settlement_due_seconds: 86_400 },
  };
  const routing = { ...facts, expires_in_seconds: 1_800 };
  const customer = { reference: null, ciphertext: null };
  const urls = { success_url: 'https://s.example', error_url: 'https://e.example' };
  const stored = { reference: null, customer, metadata: '{}', ...urls };
  await recordKey(records.stores, 'createPayment', payment_id, owner, { stored, routing });
  const created_at = new Date().toISOString();
  const times = { created_at, expires_at: created_at };
  const open = (session: SessionAnswer | null = SESSION) => {
    const input = { ...facts, ...times, session, return_url: 'https://pay.example/return' };
    return retryTransient(() => records.payments.openPayment(input));
  };
  const buildTransition = (
    { status, version }: { status: PaymentStatus; version: number },
    to: PaymentStatus[],
    attention: PaymentAttention | null = null,
  ) => ({
    ...{ resource_id: payment_id, ...owner, to, change: {}, attention },
    from: { status, version, transition: version },
    at: new Date().toISOString(),
  });
  return {
    ...{ ...owner, payment_id, open, buildTransition },
    advance: (
      status: PaymentStatus,
      version: number,
      to: PaymentStatus[],
      attention?: PaymentAttention,
    ) => {
      const input = buildTransition({ status, version }, to, attention);
      return retryTransient(() => records.payments.recordPaymentMove(input));
    },
    setAttention: (attention: PaymentAttention, attention_at: number, version = 2) =>
      records.payments.recordPaymentAttention({
        ...{ resource_id: payment_id, request_id: 'req-1', version, transition: 2 },
        ...{ attention, attention_at, audit: null },
      }),
    read: () => records.stores.payments.get(payment_id),
    listEvents: async () => {
      const filter = { ...owner, resource_id: payment_id, limit: 10 };
      return (await records.stores.events.list(filter)).map(({ type }) => type).reverse();
    },
  };
}

/** A payment that waits for its customer, at version 2. */
async function openPayment() {
  const payment = await reservePayment();
  const opened = await payment.open();
  return { ...payment, opened };
}

describe('opening a payment again', () => {
  test('answers by the record, whatever has happened since and the bank answers this time', async () => {
    const slow = await reservePayment();
    const created = await slow.open(null);
    expect(created).toMatchObject({ status: 'created', version: 1 });
    expect(await slow.open()).toEqual(created);
    const { open, opened, advance, payment_id } = await openPayment();
    expect(await open(null)).toEqual(opened);
    expect(await open({ outcome: 'declined', code: 'no', message: 'No.' })).toEqual(opened);
    await advance('awaiting_customer', 2, ['authorized']);
    expect(await open()).toEqual(opened);
    // Without its idempotency record, the payment answers as it is now.
    await records.db.collection('idempotency_records').deleteOne({ resource_id: payment_id });
    const counts = { version: 3, transition: 3 };
    const state = { status: 'authorized', ...counts, verification: 'checked' };
    expect(await open(null)).toEqual(state);
  });

  const duplicate = 'E11000 duplicate key error index: position';
  test.each([
    ['twice when another process chose the same key', 11_000, duplicate, 3, 'open'],
    ['no more than twice, since there is no pause between', 11_000, duplicate, 3, duplicate],
    ['never after another error', 1, 'the database is away', 1, 'the database is away'],
  ])('retries %s', async (_rule, code, message, tries, outcome) => {
    let calls = 0;
    const opened = openWithRetry(async () => {
      calls += 1;
      if (outcome === 'open' && calls === tries) return 'open';
      throw new MongoServerError({ code, message });
    });
    expect(await opened.catch((error: Error) => error.message)).toBe(outcome);
    expect(calls).toBe(tries);
  });
});

describe('a transition', () => {
  type Step = [from: PaymentStatus, version: number, to: PaymentStatus[]];
  const AUTHORIZE: Step = ['awaiting_customer', 2, ['authorized']];
  const SETTLE: Step = ['authorized', 3, ['settled']];
  const STATUSES = ['awaiting_customer', 'authorized', 'settled'];
  const AUTHORIZED = { status: 'authorized', version: 3, transition: 3 };
  const moved = [expect.objectContaining({ direction: 'in', amount: 1_050, reason: null })];
  const SETTLED = { status: 'settled', version: 4, transition: 4, moved };

  test.each<[string, Step[], Step, object | string, number]>([
    ['that was made answers the same again', [AUTHORIZE, SETTLE], SETTLE, SETTLED, 4],
    ['before later ones answers the same again', [AUTHORIZE, SETTLE], AUTHORIZE, AUTHORIZED, 4],
    [
      'of several steps completes a record that has made the first',
      [AUTHORIZE],
      ['awaiting_customer', 2, ['authorized', 'settled']],
      SETTLED,
      4,
    ],
    [
      'answers with the stale state of a record on another path',
      [AUTHORIZE],
      ['awaiting_customer', 2, ['cancelled']],
      { ...AUTHORIZED, stale: { attention: null } },
      3,
    ],
    ['that begins later is refused', [], SETTLE, 'is not at version 3', 2],
    [
      'that is in no table is refused',
      [],
      ['awaiting_customer', 2, ['settled']],
      'There is no transition from awaiting_customer to settled.',
      2,
    ],
  ])('%s', async (_title, before, step, result, version) => {
    const { advance, listEvents, read } = await openPayment();
    for (const each of before) await advance(...each);
    const advanced = advance(...step);
    if (typeof result === 'string') await expect(advanced).rejects.toThrow(result);
    else expect(await advanced).toEqual(result);
    const statuses = STATUSES.slice(0, version - 1);
    expect(await listEvents()).toEqual(statuses.map((status) => `payment.${status}`));
    expect(await read()).toMatchObject({ status: statuses.at(-1), version });
  });

  test('that many request at once is made once', async () => {
    const { open, advance, listEvents } = await reservePayment();
    await Promise.all(Array.from({ length: 8 }, () => open()));
    const results = await Promise.all(
      Array.from({ length: 8 }, () => advance('awaiting_customer', 2, ['authorized', 'settled'])),
    );
    expect(new Set(results.map(({ version }) => version))).toEqual(new Set([4]));
    expect(await listEvents()).toHaveLength(3);
  });

  test('loses no delivery when the worker is killed between its event and the deliveries', async () => {
    const payment = await openPayment();
    const { payment_id: resource_id, account_id, livemode } = payment;
    const { mongo, stores, temporal } = records;
    const endpoint_id = `we_${resource_id}`;
    const at = '2026-03-01T12:00:00.000Z';
    await stores.endpoints.insert({
      ...{ account_id, livemode, endpoint_id, slot: 0, position: at, secrets: [] },
      ...{ url: 'https://shop.example/', description: null, created_at: at, updated_at: at },
    });
    const killed = () => Promise.reject(new Error('killed'));
    const dying = createPaymentActivities({
      ...{ mongo, stores, log: createLogger('test', 'silent'), webhookQueue: 'unused' },
      temporal: Object.assign(Object.create(temporal), { workflow: { start: killed } }),
      payTokenKey: randomBytes(32),
    });
    const from = { status: 'awaiting_customer', version: 2 } as const;
    const transition = payment.buildTransition(from, ['authorized']);
    const recording = retryTransient(() => dying.recordPaymentMove(transition));
    await expect(recording).rejects.toThrow('killed');
    const [event] = await stores.events.list({ account_id, livemode, resource_id, limit: 1 });
    const id = event?._id ?? '';
    const pending = await stores.deliveries.pending(resource_id, account_id, livemode);
    expect(pending).toMatchObject([{ event_id: id, endpoint_id }]);
    await retryTransient(() => records.payments.recordPaymentMove(transition));
    const handle = temporal.workflow.getHandle(webhookWorkflowId(id));
    expect((await handle.describe()).status.name).toBe('RUNNING');
    const { input } = await readPayloads(temporal, webhookWorkflowId(id));
    expect(input.endpoints).toEqual([{ endpoint_id, run: 0 }]);
    await handle.terminate('end of test');
  });
});

describe('an attention reason', () => {
  const STALE = { status: 'authorized', version: 3, transition: 3, stale: { attention: null } };

  test('counts in the version, and is not replaced by an older one', async () => {
    const { setAttention, read, payment_id } = await openPayment();
    expect(await setAttention('late_money_pending', 10)).toEqual({ version: 3 });
    expect(await setAttention('late_settlement_reversed', 20, 3)).toEqual({ version: 4 });
    // An abandoned attempt arrives late.
    expect(await setAttention('late_money_pending', 10, 4)).toEqual({ version: 4 });
    expect(await read()).toMatchObject({ attention: 'late_settlement_reversed', version: 4 });
    const load = { resource_id: payment_id, request_id: 'req-2' };
    expect(await records.payments.loadPayment(load)).toMatchObject({
      attention_at: 20,
      version: 4,
    });
  });

  test('whose answer was lost has its version, unless more has been written since', async () => {
    const { advance, setAttention, read } = await openPayment();
    await setAttention('malformed_callback', 10);
    expect(await setAttention('malformed_callback', 11)).toEqual({ version: 3 });
    await setAttention('message_given_up', 20, 3);
    await setAttention('malformed_callback', 30, 4);
    expect(await setAttention('malformed_callback', 31)).toEqual({ version: 2 });
    expect(await advance('awaiting_customer', 2, ['authorized'])).toMatchObject({
      ...{ status: 'awaiting_customer', version: 5, stale: { attention: 'malformed_callback' } },
    });
    expect((await read())?.version).toBe(5);
  });

  test('of an earlier version is not written, and answered with the stored state', async () => {
    const { advance, setAttention, read } = await openPayment();
    await advance('awaiting_customer', 2, ['authorized']);
    expect(await setAttention('amount_differs', 10)).toEqual(STALE);
    expect((await read())?.attention).toBeNull();
    await expect(setAttention('amount_differs', 10, 4)).rejects.toThrow('is not at version 4');
    expect((await read())?.attention).toBe('record_behind');
  });

  test('is cleared once by an act of an operator, which answers with a later state', async () => {
    const { advance, setAttention, read, payment_id } = await openPayment();
    const act = (id: string, version: number) =>
      records.payments.recordPaymentAttention({
        ...{ resource_id: payment_id, request_id: 'req-1', version, transition: 2 },
        ...{ attention: null, attention_at: 50 },
        audit: { id, who: 'ada', what: 'snooze', why: 'a call', at: new Date().toISOString() },
      });
    await setAttention('malformed_callback', 40);
    expect(await act('one', 3)).toEqual({ version: 4 });
    expect(await act('one', 3)).toEqual({ version: 4 });
    expect(await setAttention('settlement_overdue', 35, 4)).toEqual({ version: 4 });
    expect(await read()).toMatchObject({ attention: null, version: 4 });
    await expect(act('two', 5)).rejects.toThrow('is not at version 5');
    await advance('awaiting_customer', 4, ['authorized']);
    expect(await act('three', 4)).toMatchObject({ status: 'authorized', version: 5, stale: {} });
    expect((await read())?.audit).toHaveLength(1);
  });
});
