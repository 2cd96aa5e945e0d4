import { randomUUID } from 'node:crypto';
import {
  authorizedPayment,
  openRecords,
  openRefund,
  type Records,
  settle,
} from '../support/records';

let records: Records;
beforeAll(async () => {
  records = await openRecords();
});
afterAll(async () => records?.close());

test('200 refunds of one payment at once, each asked for twice, take turns and fit exactly', async () => {
  const facts = await authorizedPayment(records, { amount: 1_500 });
  await settle(records, facts);
  const ids = Array.from({ length: 200 }, () => randomUUID());
  const made = await Promise.all([...ids, ...ids].map((id) => openRefund(records, facts, 10, id)));
  const accepted = made.filter(({ opening }) => opening.outcome === 'accepted');
  expect(new Set(accepted.map(({ refund_id }) => refund_id)).size).toBe(150);
  expect(accepted).toHaveLength(300);
  const payment = await records.stores.payments.get(facts.payment_id);
  expect(payment?.refunded).toBe(1_500);
});
