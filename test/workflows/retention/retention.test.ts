import { randomUUID } from 'node:crypto';
import { buildPosition } from '../../../src/domain/cursor';
import type { DeliveryStatus } from '../../../src/domain/events/event';
import { monthsBefore, type RetentionResult } from '../../../src/domain/operators/retention';
import { buildDelivery } from '../../../src/store/deliveries';
import type { PaymentDocument } from '../../../src/store/payments';
import type { PayoutDocument } from '../../../src/store/payouts';
import type { RecipientDocument } from '../../../src/store/recipients';
import { insertRecipient, storedPayout } from '../../api/payout-setting';
import { commandsIn, everythingStored } from '../../cli/cli';
import { recordEvents } from '../../cli/event-log';
import { buildPayment } from '../../support/factories';
import { saveHistory } from '../../support/histories';
import { idealPayment, waitForBank } from '../../support/http';
import { mongodbUri } from '../../support/servers';
import { type Account, useService } from '../../support/service';

const service = useService();

type Row = { _id: string };
const PAYER = { email: null, first_name: null, last_name: null, reference: null };

const ago = (months: number) => monthsBefore(new Date(), months);
const payments = () => service.collection<PaymentDocument>('payments');
const payouts = () => service.collection<PayoutDocument>('payouts');
const recipients = () => service.collection<RecipientDocument>('recipients');
const readCustomer = async (account: Account, id: string) =>
  (await account.get(`/v1/payments/${id}`)).body.customer;

describe('the retention workflow', () => {
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

  /** Inserts a recipient that was created some months ago, and last paid by these payouts. */
  async function insertOld(
    months: number,
    ...paid: [months: number, status?: PayoutDocument['status']][]
  ) {
    const account = { account_id: 'acct_retention' };
    const _id = await insertRecipient(service, account, 'sepa_instant');
    const created_at = ago(months).toISOString();
    await recipients().updateOne({ _id }, { $set: { created_at, used_at: created_at } });
    for (const [payoutMonths, status = 'completed'] of paid) {
      const payout = { recipient_id: _id, created_at: ago(payoutMonths).toISOString(), status };
      await payouts().insertOne(storedPayout(account, payout));
    }
    return _id;
  }

  test('erases recipients that no payout has paid for 13 months, and no earlier', async () => {
    const [never, once] = [await insertOld(14), await insertOld(30, [14])];
    const [lately, inFlight] = [await insertOld(30, [12], [20]), await insertOld(30, [14, 'sent'])];
    const young = await insertOld(12);
    const { recipients: stored, scheduleRuns } = service.stores;
    const isStored = async (id: string) => (await stored.get(id))?.ciphertext !== null;

    expect(await run()).toMatchObject({ recipients: 2 });
    const noted = { schedule: 'retention', succeeded_at: expect.stringMatching(/Z$/) };
    expect(await scheduleRuns.list()).toContainEqual(noted);
    for (const id of [never, once]) expect(await isStored(id)).toBe(false);
    for (const id of [lately, inFlight, young]) expect(await isStored(id)).toBe(true);
    const erased = { last4: '3000', has: [], deleted_at: expect.any(String) };
    expect(await stored.get(never)).toMatchObject(erased);

    await payouts().updateMany({ recipient_id: inFlight }, { $set: { status: 'completed' } });
    const used_at = ago(14).toISOString();
    await recipients().updateOne({ _id: inFlight }, { $set: { used_at } });
    expect(await run()).toMatchObject({ recipients: 1 });
    expect(await run()).toEqual({ recipients: 0, payers: 0, records: 0 });
  });

  test('redacts payers after the retention period of their account', async () => {
    const [usual, short] = [await service.account(), await service.account()];
    const { accounts } = service.stores;
    await accounts.setPayerDataMonths(short.account_id, 2);
    const name = { email: 'retained@example.com', first_name: 'Rosalind', last_name: null };
    const customer = { ...name, reference: 'c-9' };
    const redacted = { ...PAYER, reference: 'c-9' };
    const pay = async (account: Account, months: number) => {
      const { id } = await buildPayment(account, { customer });
      const position = buildPosition(ago(months).getTime(), 7);
      await payments().updateOne({ _id: id }, { $set: { position } });
      return () => readCustomer(account, id);
    };
    const [old, young] = [await pay(usual, 19), await pay(usual, 17)];
    const [shortOld, shortYoung] = [await pay(short, 3), await pay(short, 1)];

    expect(await run()).toEqual({ recipients: 0, payers: 2, records: 0 });
    for (const read of [old, shortOld]) expect(await read()).toEqual(redacted);
    for (const read of [young, shortYoung]) expect(await read()).toEqual(customer);
    expect(await everythingStored(service.db)).not.toMatch(/retained@example\.com|Rosalind/);
    expect(await run()).toMatchObject({ payers: 0 });

    await accounts.setPayerDataMonths(usual.account_id, 12);
    expect(await run()).toMatchObject({ payers: 1 });
    expect(await young()).toEqual(redacted);
  });

  /** Inserts an event and a second delivery of it, both some months old. @returns their ids */
  async function insertOldEvent(account_id: string, months: number, status: DeliveryStatus) {
    const [event] = await recordEvents(service, account_id, ['payment.settled']);
    if (event === undefined) throw new Error('no event');
    const position = buildPosition(ago(months).getTime(), months);
    const rows = ['we_first', 'we_second'].map((endpoint_id) => ({
      ...buildDelivery(event, endpoint_id, status),
      position,
    }));
    await service.collection<Row>('events').updateOne({ _id: event._id }, { $set: { position } });
    await service.collection('deliveries').deleteMany({ event_id: event._id });
    await service.stores.deliveries.insert(rows);
    return [event._id, ...rows.map(({ _id }) => _id)];
  }

  /** Inserts a callback of 20 months ago, which was dismissed some months ago. */
  async function insertOldCallback(dismissedMonths: number | null, isParked = true) {
    const { callbacks } = service.stores;
    const at = ago(20).toISOString();
    const about = { connector: 'bank', resource: 'payment', resource_id: randomUUID() } as const;
    const body = { callback_id: randomUUID(), occurred_at: at };
    const { _id } = await callbacks.insertOnce({
      ...about,
      name: 'settled',
      body,
      received_at: at,
    });
    if (isParked) await callbacks.park(_id, 'no such payment');
    if (dismissedMonths === null) return _id;
    const dismissed_at = ago(dismissedMonths).toISOString();
    const rows = service.collection<Row>('bank_callbacks');
    await rows.updateOne({ _id }, { $set: { dismissed_at } });
    return _id;
  }

  test('deletes events with their deliveries, and dismissed callbacks, after 13 months', async () => {
    const { account_id } = await service.account();
    const old = await insertOldEvent(account_id, 14, 'delivered');
    const exhausted = await insertOldEvent(account_id, 15, 'exhausted');
    const pending = await insertOldEvent(account_id, 16, 'pending');
    const young = await insertOldEvent(account_id, 12, 'delivered');
    const needed = await insertOldEvent(account_id, 17, 'delivered');
    const [neededEvent = '', endedRow = '', openRow = ''] = needed;
    const deliveries = service.collection<Row>('deliveries');
    await deliveries.updateOne({ _id: openRow }, { $set: { status: 'pending' } });
    const dismissed = await insertOldCallback(14);
    const others = [await insertOldCallback(12), await insertOldCallback(null)];
    others.push(await insertOldCallback(null, false));

    expect(await run()).toMatchObject({ records: 8 });
    const readIds = async (name: string) =>
      (await service.collection<Row>(name).find({}).toArray()).map(({ _id }) => _id);
    const left = (
      await Promise.all(['events', 'deliveries', 'bank_callbacks'].map(readIds))
    ).flat();
    const stored = [...pending, ...young, neededEvent, openRow, ...others];
    expect(left).toEqual(expect.arrayContaining(stored));
    const gone = [...old, ...exhausted, endedRow, dismissed];
    expect(left.filter((id) => gone.includes(id))).toEqual([]);
    expect(await run()).toMatchObject({ records: 0 });
    for (const name of ['events', 'deliveries']) {
      await service.collection(name).deleteMany({ account_id });
    }
  });
});

test('one payer is exported, and erased where the payments have ended', async () => {
  const account = await service.account();
  const { account_id, key } = account;
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
  const pay = async (customer: object, idempotencyKey: string): Promise<string> => {
    const request = idealPayment({ customer });
    const { body } = await account.post('/v1/payments', request, { idempotencyKey });
    await waitForBank(service, key, body.id);
    return body.id;
  };
  const cancel = (id: string) => account.post(`/v1/payments/${id}/cancel`);

  const [ended, open, other] = [await pay(ana, 'k1'), await pay(ana, 'k2'), await pay(bob, 'k3')];
  for (const id of [ended, other]) expect((await cancel(id)).body.status).toBe('cancelled');
  const place = { account_id, livemode: false, payment_id: ended, position: 'x', status: 'failed' };
  const refund = { _id: randomUUID(), ...place, reason: 'Ana Erased complained' };
  await service.collection<Row>('refunds').insertOne(refund);

  const byEmail = ['--email', ana.email.toUpperCase()];
  const byReference = ['--reference', 'payer-42'];
  const exported = await payer('export', ...byEmail);
  expect(exported).toEqual({
    ...{ account_id, environment: 'sandbox', exported_at: expect.stringMatching(/Z$/) },
    payments: [
      {
        payment_id: ended,
        customer: ana,
        payment: expect.objectContaining({ _id: ended, status: 'cancelled', metadata: '{}' }),
        refunds: [refund],
        disputes: [],
        callbacks: [],
        events: expect.arrayContaining([expect.objectContaining({ type: 'payment.cancelled' })]),
        idempotency: [expect.objectContaining({ key: 'k1', request: null, answer: null })],
      },
      expect.objectContaining({ payment_id: open, customer: ana }),
    ],
    ...{ crypto_payments: [], unreadable: [] },
  });
  expect(JSON.stringify(exported)).not.toMatch(/bob@|token_hash|browser_hash|"ciphertext"/);
  expect(await payer('export', ...byReference)).toMatchObject({
    payments: [{ payment_id: ended }, { payment_id: open }],
  });

  const left = [{ payment_id: open, reason: 'it is awaiting_customer' }];
  const dryRun = { dry_run: true, erased: [ended], left, unreadable: [] };
  expect(await payer('erase', ...byEmail, '--dry-run')).toMatchObject(dryRun);
  expect(await readCustomer(account, ended)).toEqual(ana);

  const erase = () => payer('erase', ...byEmail);
  expect(await Promise.allSettled([erase(), erase()])).toContainEqual(
    expect.objectContaining({ value: expect.objectContaining({ erased: [ended], left }) }),
  );
  expect(await erase()).toMatchObject({ erased: [], left });
  const customers = await Promise.all([ended, open, other].map((id) => readCustomer(account, id)));
  expect(customers).toEqual([PAYER, ana, bob]);
  expect(await pay(ana, 'k1')).toBe(ended);
  expect(await service.stores.refunds.get(refund._id)).toMatchObject({ reason: null });
  const list = { account_id, act: 'payer.erased', limit: 9 } as const;
  expect(await service.stores.auditLog.list(list)).toMatchObject([{ target: ended }]);

  await cancel(open);
  expect(await payer('erase', ...byReference)).toMatchObject({ erased: [open], left: [] });
  expect(await payer('export', ...byReference)).toMatchObject({ payments: [], unreadable: [] });
  expect(await everythingStored(service.db)).not.toMatch(/payer-42|Ana Erased|Ana\.Erased/i);

  // A payer that no key decrypts may be this one.
  await payments().updateOne(
    { _id: other },
    { $set: { 'customer.ciphertext': 'e30..e30.e30.e30' } },
  );
  expect(await erase()).toMatchObject({ erased: [], unreadable: [other] });
  const both = ['payer', 'erase', account_id, '--env', 'sandbox', ...byEmail, ...byReference];
  expect(await commands.refusal(...both)).toMatchObject({ code: 'invalid_usage' });
});

test('an unfinished idempotency record is valid for 30 days, after which a repeat is new', async () => {
  const { account_id } = await service.account();
  const use = { account_id, livemode: false, operation: 'createPayment', key: 'month' };
  const request = { refund: { reason: null }, routing: Object() };
  const now = Date.now();
  const open = async (days: number) => {
    const rest = { fingerprint: 'f', resource_id: randomUUID(), request_id: 'r', request };
    const at = new Date(now + days * 24 * 60 * 60 * 1_000);
    return (await service.stores.idempotency.reserveKey({ ...use, ...rest }, at)).resource_id;
  };
  const first = await open(-29);
  expect(await open(0)).toBe(first);
  expect(await open(2)).not.toBe(first);
});
