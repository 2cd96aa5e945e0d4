import { randomUUID } from 'node:crypto';
import {
  authorizedPayment,
  fund,
  openPayout,
  openRecords,
  openRefund,
  payoutFacts,
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

test('200 payouts of one balance at once, each asked for twice, never overdraw it and fit exactly', async () => {
  const all = { account_id: `acct_${randomUUID()}`, balance_account: 'ads', amount: 10, fee: 2 };
  await fund(records, payoutFacts(all), 150 * 12 + 11);
  const asked = Array.from({ length: 200 }, () => payoutFacts(all));
  const made = await Promise.all([...asked, ...asked].map((facts) => openPayout(records, facts)));
  const accepted = made.filter(({ opening }) => opening.outcome === 'accepted');
  expect(new Set(accepted.map(({ payout_id }) => payout_id)).size).toBe(150);
  expect(accepted).toHaveLength(300);
  expect(await records.stores.ledger.balances(all.account_id, false)).toEqual([
    { balance_account: 'ads', currency: 'EUR', available: 11, reserved: 150 * 12 },
  ]);
  const refused = made.flatMap(({ opening }) =>
    opening.outcome === 'refused' ? [opening.code] : [],
  );
  expect(new Set(refused)).toEqual(new Set(['insufficient_balance']));
});
