import type { Receipt } from '../../../src/domain/payment/receipt';
import {
  buildDispute,
  buildDisputeWon,
  buildLateRefund,
  buildPayoutEntries,
  buildReceiptEntry,
  buildRefundEntry,
  buildReturnHeld,
  buildSentAgain,
  buildSettlement,
} from '../../../src/ledger/resource-entries';
import { buildBankMovement } from '../../../src/ledger/uncleared';

const time = { at: '2026-03-04T05:06:07.089Z' };
const resource = {
  ...{ _id: 'r1', account_id: 'acct_1', livemode: true, currency: 'EUR', connector: 'acme' },
  ...{ amount: 1_000, fee: 0, balance_account: 'main', created_at: time.at },
  bank_reference: 'own',
};
const sent = { id: 'again', amount: 1_000, currency: 'EUR' };
const heldReturn = { id: 'again', amount: 900, currency: 'EUR', is_return: true };
const report = { ...time, bank_reference: 'again' };
const receipt: Receipt = {
  ...{ id: 'late', bank_reference: 'late', callback_id: null, amount: 1_000, currency: 'USD' },
  ...{ value_date: null, received_at: time.at },
  reason: 'late',
  state: 'suspense',
};
const payout = (from: 'submitted' | 'sent', to: 'sent' | 'failed' | 'returned') => {
  const [entry] = buildPayoutEntries(resource, { ...time, from: { status: from }, to: [to] });
  if (entry === undefined) throw new Error('No entry.');
  return entry;
};

test.each([
  ['a settlement', buildSettlement(resource, 0, time), 'own', 1_000],
  ['the rest of a settlement', buildSettlement(resource, 300, time), 'own', 700],
  ['late funds', buildReceiptEntry('held', resource, receipt, time), 'late', 1_000],
  ['their return', buildReceiptEntry('returned', resource, receipt, time), undefined, -1_000],
  [
    'a chargeback',
    buildDispute(resource, { kind: 'clawed_back', held: 0, owed: 1_000, fee: 0 }, time),
    ...[undefined, -1_000],
  ],
  [
    'a dispute with its fee',
    buildDispute(resource, { kind: 'dispute_opened', held: 1_000, owed: 15, fee: 15 }, report),
    ...['again', -1_015],
  ],
  ['a dispute that is won', buildDisputeWon(resource, { id: 'D', won: 900 }, report), 'again', 900],
  ['a refund', buildRefundEntry('refund_settled', resource, time), 'own', -1_000],
  [
    'a late refund',
    buildLateRefund(resource, { held: 0, owed: 1_000 }, report),
    ...['again', -1_000],
  ],
  [
    'money sent again',
    buildSentAgain('payout_sent_again', resource, sent, report),
    'again',
    -1_000,
  ],
  ['a return in suspense', buildReturnHeld(resource, heldReturn, report), 'again', 900],
  ['a payout', payout('submitted', 'sent'), 'own', -1_000],
  ['a payout that fails', payout('sent', 'failed'), 'own', 1_000],
  ['a payout that returns', payout('sent', 'returned'), 'own', 1_000],
] as const)('%s bears the name that the bank gave it', (_what, entry, bank_reference, amount) => {
  const movement = buildBankMovement(entry);
  expect(movement).toMatchObject({ uncleared: 'acme', bank_day: '2026-03-04' });
  expect(movement?.bank_reference).toBe(bank_reference);
  expect(Number(movement?.bank_amount)).toBe(amount);
});

test.each([
  ['an accepted refund', buildRefundEntry('refund_accepted', resource, time)],
  ['a released payout', payout('submitted', 'failed')],
  ['a settlement that is in suspense already', buildSettlement(resource, 1_000, time)],
])('%s moves nothing at the bank', (_what, entry) => {
  expect(buildBankMovement(entry)).toBeUndefined();
});
