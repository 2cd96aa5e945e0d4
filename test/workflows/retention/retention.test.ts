import { randomUUID } from 'node:crypto';
import { monthsBefore, type RetentionResult } from '../../../src/domain/account/retention';
import { buildPosition } from '../../../src/domain/cursor';
import type { DeliveryStatus } from '../../../src/domain/webhook/event';
import { copyEvent } from '../../../src/store/deliveries';
import type { PaymentDocument } from '../../../src/store/payments';
import type { PayoutDocument } from '../../../src/store/payouts';
import type { RecipientDocument } from '../../../src/store/recipients';
import { ensureSchedule, getScheduleId } from '../../../src/temporal/schedules';
import { insertRecipient, storedPayout } from '../../api/payout-setting';
import { commandsIn, everythingStored } from '../../cli/cli';
import { recordEvents } from '../../cli/event-log';
import { patientClient } from '../../cli/resource-setting';
import { saveHistory } from '../../support/histories';
import { call, idealPayment, waitForBank } from '../../support/http';
import { retryUntilDone } from '../../support/insist';
import { mongodbUri } from '../../support/servers';
import { useService } from '../../support/service';

const service = useService();

const DAY_MS = 24 * 60 * 60 * 1_000;
const ago = (months: number) => monthsBefore(new Date(), months);
const rows = <D extends object>(name: string) =>
  service.mongo.db(service.database).collection<D>(name);

const payments = () => rows<PaymentDocument>('payments');

async function run(): Promise<RetentionResult> {
  const { workflow } = service.temporal;
  const handle = await workflow.start<() => Promise<RetentionResult>>('retention', {
    taskQueue: service.queues.lifecycle,
    workflowId: `retention-${randomUUID()}`,
  });
  const result = await handle.result();
  await saveHistory(handle, 'schedule-retention');
  return result;
}

/** A recipient that was made some months ago, and last paid by these payouts. */
async function recipient(months: number, ...payouts: Partial<PayoutDocument>[]) {
  const account = { account_id: 'acct_retention' };
  const id = await insertRecipient(service, account, 'sepa_instant');
  const created_at = ago(months).toISOString();
  await rows<RecipientDocument>('recipients').updateOne(
    { _id: id },
    { $set: { created_at, used_at: created_at } },
  );
  for (const payout of payouts) {
    const document = storedPayout(account, { recipient_id: id, ...payout });
    await rows<PayoutDocument>('payouts').insertOne(document);
  }
  return id;
}

test('recipients are deleted when none has paid them for 13 months, and no earlier', async () => {
  const at = (months: number) => ({ created_at: ago(months).toISOString() });
  const never = await recipient(14);
  const once = await recipient(30, { ...at(14), status: 'completed' });
  const lately = await recipient(30, { ...at(12), status: 'completed' }, { ...at(20) });
  const underWay = await recipient(30, { ...at(14), status: 'sent' });
  const young = await recipient(12);
  const kept = async (id: string) => (await service.stores.recipients.get(id))?.sealed !== null;

  expect(await run()).toMatchObject({ recipients: 2 });
  const [noted] = await service.stores.scheduleRuns.list();
  expect(noted).toEqual({ schedule: 'retention', succeeded_at: expect.stringMatching(/Z$/) });
  expect(await Promise.all([never, once].map(kept))).toEqual([false, false]);
  expect(await Promise.all([lately, underWay, young].map(kept))).toEqual([true, true, true]);
  expect(await service.stores.recipients.get(never)).toMatchObject({
    last4: '3000',
    has: [],
    deleted_at: expect.any(String),
  });

  await rows<PayoutDocument>('payouts').updateMany(
    { recipient_id: underWay },
    { $set: { status: 'completed' } },
  );
  const used_at = ago(14).toISOString();
  await rows<RecipientDocument>('recipients').updateOne({ _id: underWay }, { $set: { used_at } });
  expect(await run()).toMatchObject({ recipients: 1 });
  expect(await run()).toEqual({ recipients: 0, payers: 0, records: 0 });
});

test('payers are redacted by the retention period of their account', async () => {
  const usual = await service.account();
  const short = await service.account();
  await service.stores.accounts.setPayerDataMonths(short.account_id, 2);
  const customer = {
    email: 'retained@example.com',
    first_name: 'Rosalind',
    last_name: null,
    reference: 'c-9',
  };
  const blank = { email: null, first_name: null, last_name: null, reference: 'c-9' };
  const paid = async ({ key }: { key: string }, months: number) => {
    const body = idealPayment({ customer });
    const { id } = (await call(service.url, 'POST', '/v1/payments', { key, body })).body;
    const position = buildPosition(ago(months).getTime(), 7);
    await payments().updateOne({ _id: id }, { $set: { position } });
    const read = () => call(service.url, 'GET', `/v1/payments/${id}`, { key });
    return async () => (await read()).body.customer;
  };
  const old = await paid(usual, 19);
  const young = await paid(usual, 17);
  const short3 = await paid(short, 3);
  const short1 = await paid(short, 1);

  expect(await run()).toEqual({ recipients: 0, payers: 2, records: 0 });
  for (const read of [old, short3]) expect(await read()).toEqual(blank);
  for (const read of [young, short1]) expect(await read()).toEqual(customer);
  const stored = await everythingStored(service.mongo.db(service.database));
  expect(stored).not.toContain(customer.email);
  expect(stored).not.toContain('Rosalind');
  expect(await run()).toMatchObject({ payers: 0 });

  await service.stores.accounts.setPayerDataMonths(usual.account_id, 12);
  expect(await run()).toMatchObject({ payers: 1 });
  expect(await young()).toEqual(blank);
});

/** Makes an event, and a second delivery of it, as old as some months. */
async function oldEvent(account_id: string, months: number, status: DeliveryStatus) {
  const [event] = await recordEvents(service, account_id, ['payment.settled']);
  if (event === undefined) throw new Error('no event');
  const position = buildPosition(ago(months).getTime(), months);
  const delivery = { ...event.delivery, status, endpoint_id: 'we_second' };
  const other = { ...copyEvent(event, delivery), position };
  const changed = { $set: { position, 'delivery.status': status } };
  await rows<{ _id: string }>('events').updateOne({ _id: event._id }, changed);
  await rows<{ _id: string }>('event_deliveries').insertOne(other);
  return [event._id, other._id];
}

test('events and their deliveries are deleted after 13 months, and dismissed callbacks', async () => {
  const { account_id } = await service.account();
  const { stores } = service;
  const old = await oldEvent(account_id, 14, 'delivered');
  const exhausted = await oldEvent(account_id, 15, 'exhausted');
  const pending = await oldEvent(account_id, 16, 'pending');
  const young = await oldEvent(account_id, 12, 'delivered');
  const needed = await oldEvent(account_id, 17, 'delivered');
  await rows<{ _id: string }>('event_deliveries').updateOne(
    { _id: { $in: needed } },
    { $set: { 'delivery.status': 'pending' } },
  );
  const callback = async (dismissed?: number, isParked = true) => {
    const { _id } = await stores.callbacks.insertOnce({
      ...{ connector: 'bank', resource: 'payment', resource_id: randomUUID(), name: 'settled' },
      body: { callback_id: randomUUID(), occurred_at: ago(20).toISOString() },
      received_at: ago(20).toISOString(),
    });
    if (isParked) await stores.callbacks.park(_id, 'no such payment');
    const dismissed_at = dismissed === undefined ? undefined : ago(dismissed).toISOString();
    if (dismissed_at) {
      await rows<{ _id: string }>('bank_callbacks').updateOne({ _id }, { $set: { dismissed_at } });
    }
    return _id;
  };
  const gone = await callback(14);
  const stored = [await callback(12), await callback(), await callback(undefined, false)];

  expect(await run()).toMatchObject({ records: 5 });
  const ids = async (name: string) =>
    (await rows<{ _id: string }>(name).find({}).toArray()).map(({ _id }) => _id);
  const events = [...(await ids('events')), ...(await ids('event_deliveries'))];
  expect(events).toEqual(expect.arrayContaining([...pending, ...young, ...needed]));
  expect(events.filter((id) => [...old, ...exhausted].includes(id))).toEqual([]);
  const callbacks = await ids('bank_callbacks');
  expect(callbacks).toEqual(expect.arrayContaining(stored));
  expect(callbacks).not.toContain(gone);
  expect(await run()).toMatchObject({ records: 0 });
  await rows('events').deleteMany({ account_id });
  await rows('event_deliveries').deleteMany({ account_id });
});

test('one payer is exported, and erased where the payments have ended', async () => {
  const { account_id, key } = await service.account();
  const commands = commandsIn({
    ...{ DATA_DIR: 'none', MONGODB_URI: mongodbUri(), MONGODB_DB: service.database },
    ...{ KEYS_FILE: service.keysFile, KEYS_DIR: service.keysDir },
  });
  const payer = (act: string, ...more: string[]) =>
    commands.json('payer', act, account_id, '--env', 'sandbox', ...more);
  const ana = {
    ...{ email: 'Ana.Erased@example.com', first_name: 'Ana' },
    ...{ last_name: 'Erased', reference: 'payer-42' },
  };
  const bob = { ...ana, email: 'bob@example.com', first_name: 'Bob', reference: 'payer-4' };
  const blank = { email: null, first_name: null, last_name: null, reference: null };
  const pay = async (customer: object, idempotencyKey: string): Promise<string> => {
    const body = idealPayment({ customer });
    const made = await call(service.url, 'POST', '/v1/payments', { key, body, idempotencyKey });
    await waitForBank(service, key, made.body.id);
    return made.body.id;
  };
  const cancel = (id: string) => call(service.url, 'POST', `/v1/payments/${id}/cancel`, { key });
  const customerOf = async (id: string) =>
    (await call(service.url, 'GET', `/v1/payments/${id}`, { key })).body.customer;

  const [ended, open, other] = [await pay(ana, 'k1'), await pay(ana, 'k2'), await pay(bob, 'k3')];
  for (const id of [ended, other]) expect((await cancel(id)).body.status).toBe('cancelled');
  const place = { account_id, livemode: false, payment_id: ended, position: 'x', status: 'failed' };
  const refund = { _id: randomUUID(), ...place, reason: 'Ana Erased complained' };
  await rows<{ _id: string }>('refunds').insertOne(refund);

  const byEmail = ['--email', ana.email.toUpperCase()];
  const exported = await payer('export', ...byEmail);
  expect(exported).toEqual({
    ...{ account_id, environment: 'sandbox', exported_at: expect.stringMatching(/Z$/) },
    payments: [
      {
        payment_id: ended,
        customer: ana,
        payment: expect.objectContaining({ _id: ended, status: 'cancelled', metadata: '{}' }),
        refunds: [refund],
        callbacks: [],
        events: expect.arrayContaining([expect.objectContaining({ type: 'payment.cancelled' })]),
        idempotency: [expect.objectContaining({ key: 'k1', request: null, answer: null })],
      },
      expect.objectContaining({ payment_id: open, customer: ana }),
    ],
    ...{ crypto_payments: [], unreadable: [] },
  });
  expect(JSON.stringify(exported)).not.toMatch(/bob@|token_hash|browser_hash|"sealed"/);
  expect(await payer('export', '--reference', 'payer-42')).toMatchObject({
    payments: [{ payment_id: ended }, { payment_id: open }],
  });

  const left = [{ payment_id: open, reason: 'it is awaiting_customer' }];
  const dryRun = { dry_run: true, erased: [ended], left, unreadable: [] };
  expect(await payer('erase', ...byEmail, '--dry-run')).toMatchObject(dryRun);
  expect(await customerOf(ended)).toEqual(ana);

  const both = await Promise.allSettled([payer('erase', ...byEmail), payer('erase', ...byEmail)]);
  expect(both).toContainEqual(
    expect.objectContaining({ value: expect.objectContaining({ erased: [ended], left }) }),
  );
  expect(await payer('erase', ...byEmail)).toMatchObject({ erased: [], left });
  expect(await Promise.all([ended, open, other].map(customerOf))).toEqual([blank, ana, bob]);
  expect(await pay(ana, 'k1')).toBe(ended);
  expect(await service.stores.refunds.get(refund._id)).toMatchObject({ reason: null });
  const list = { account_id, act: 'payer.erased', limit: 9 } as const;
  expect(await service.stores.auditLog.list(list)).toMatchObject([{ target: ended }]);

  await cancel(open);
  const byReference = ['--reference', 'payer-42'];
  expect(await payer('erase', ...byReference)).toMatchObject({ erased: [open], left: [] });
  expect(await payer('export', ...byReference)).toMatchObject({ payments: [], unreadable: [] });
  const stored = await everythingStored(service.mongo.db(service.database));
  expect(stored).not.toMatch(/payer-42|Ana Erased|Ana\.Erased/i);

  // A payer that no key decrypts may be this one.
  await payments().updateOne({ _id: other }, { $set: { 'customer.sealed': 'e30..e30.e30.e30' } });
  expect(await payer('erase', ...byEmail)).toMatchObject({ erased: [], unreadable: [other] });
  const env = ['payer', 'erase', account_id, '--env', 'sandbox'];
  for (const wrong of [env, [...env, ...byEmail, ...byReference]]) {
    expect(await commands.refusal(...wrong)).toMatchObject({ code: 'invalid_usage' });
  }
  const unknown = ['payer', 'export', 'acct_none', '--env', 'live', ...byEmail];
  expect(await commands.refusal(...unknown)).toMatchObject({ code: 'account_not_found' });
});

test('an unfinished idempotency record lives 30 days; a repeat after that is a new request', async () => {
  const { account_id } = await service.account();
  const { idempotency } = service.stores;
  const now = new Date();
  const open = async (key: string, at: Date) => {
    const use = { account_id, livemode: false, operation: 'createPayment', key };
    const rest = { fingerprint: 'f', resource_id: randomUUID(), request_id: 'r' };
    return await idempotency.reserveKey(
      { ...use, ...rest, request: { refund: { reason: null }, routing: Object() } },
      at,
    );
  };
  const first = await open('month', new Date(now.getTime() - 29 * DAY_MS));
  expect((await open('month', now)).resource_id).toBe(first.resource_id);
  const later = new Date(now.getTime() + 2 * DAY_MS);
  expect((await open('month', later)).resource_id).not.toBe(first.resource_id);
});

test('a worker that starts makes the schedule once, each day, and late on the same day', async () => {
  const temporal = patientClient(service.temporal);
  const queue = `lifecycle-${randomUUID()}`;
  expect(await ensureSchedule(temporal, 'retention', queue)).toBe('made');
  expect(await retryUntilDone(() => ensureSchedule(temporal, 'retention', queue))).toBe('kept');
  const schedule = temporal.schedule.getHandle(getScheduleId('retention', queue));
  const { spec, policies } = await schedule.describe();
  expect(spec.intervals).toMatchObject([{ every: DAY_MS }]);
  expect(policies.catchupWindow).toBe((20 / 24) * DAY_MS);
  // As an earlier release made it.
  await schedule.update(({ action, ...rest }) => ({
    ...rest,
    action: { ...action, workflowExecutionTimeout: DAY_MS },
  }));
  expect(await retryUntilDone(() => ensureSchedule(temporal, 'retention', queue))).toBe('changed');
  await schedule.delete();
});
