import { randomUUID } from 'node:crypto';
import { monthsBefore, type RetentionResult } from '../../../src/domain/account/retention';
import { buildPosition } from '../../../src/domain/cursor';
import type { PaymentDocument } from '../../../src/store/payments';
import type { PayoutDocument } from '../../../src/store/payouts';
import type { RecipientDocument } from '../../../src/store/recipients';
import { ensureSchedule, getScheduleId } from '../../../src/temporal/schedules';
import { insertRecipient, storedPayout } from '../../api/payout-setting';
import { everythingStored } from '../../cli/cli';
import { call, idealPayment } from '../../support/http';
import { retryUntilDone } from '../../support/insist';
import { useService } from '../../support/service';

const service = useService();

const DAY_MS = 24 * 60 * 60 * 1_000;
const ago = (months: number) => monthsBefore(new Date(), months);
const rows = <D extends object>(name: string) =>
  service.mongo.db(service.database).collection<D>(name);

const run = (): Promise<RetentionResult> =>
  service.temporal.workflow.execute('retention', {
    taskQueue: service.queues.lifecycle,
    workflowId: `retention-${randomUUID()}`,
  });

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
  expect(await run()).toEqual({ recipients: 0, payers: 0 });
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
  const payments = rows<PaymentDocument>('payments');
  const paid = async ({ key }: { key: string }, months: number) => {
    const body = idealPayment({ customer });
    const { id } = (await call(service.url, 'POST', '/v1/payments', { key, body })).body;
    const position = buildPosition(ago(months).getTime(), 7);
    await payments.updateOne({ _id: id }, { $set: { position } });
    const read = () => call(service.url, 'GET', `/v1/payments/${id}`, { key });
    return async () => (await read()).body.customer;
  };
  const old = await paid(usual, 19);
  const young = await paid(usual, 17);
  const short3 = await paid(short, 3);
  const short1 = await paid(short, 1);

  expect(await run()).toEqual({ recipients: 0, payers: 2 });
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

test('a worker that starts makes the schedule once, each day', async () => {
  const { temporal } = service;
  const queue = `lifecycle-${randomUUID()}`;
  expect(await ensureSchedule(temporal, 'retention', queue)).toBe('made');
  expect(await retryUntilDone(() => ensureSchedule(temporal, 'retention', queue))).toBe('kept');
  const schedule = temporal.schedule.getHandle(getScheduleId('retention', queue));
  expect((await schedule.describe()).spec.intervals).toMatchObject([{ every: DAY_MS }]);
  await schedule.delete();
});
