import type { Receipt } from '../../../src/domain/payment/receipt';
import * as entries from '../../../src/ledger/resource-entries';
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
const chargeback = { kind: 'clawed_back', held: 0, owed: 1_000, fee: 0 } as const;
const dispute = { kind: 'dispute_opened', held: 1_000, owed: 15, fee: 15 } as const;
const lateRefund = { held: 0, owed: 1_000 };

const { buildReceiptEntry, buildRefundEntry, buildSettlement, buildDispute } = entries;
const buildPayout = (from: 'submitted' | 'sent', to: 'sent' | 'failed' | 'returned') => {
  const change = { ...time, from: { status: from }, to: [to] };
  const [entry] = entries.buildPayoutEntries(resource, change);
  if (entry === undefined) throw new Error('No entry.');
  return entry;
};

test.each([
  ['a settlement', buildSettlement(resource, 0, time), 'own', 1_000],
  ['the rest of a settlement', buildSettlement(resource, 300, time), 'own', 700],
  ['late funds', buildReceiptEntry('held', resource, receipt, time), 'late', 1_000],
  ['their return', buildReceiptEntry('returned', resource, receipt, time), undefined, -1_000],
  ['a chargeback', buildDispute(resource, chargeback, time), undefined, -1_000],
  ['a dispute with its fee', buildDispute(resource, dispute, report), 'again', -1_015],
  [
    'a dispute that is won',
    entries.buildDisputeWon(resource, { id: 'D', won: 900 }, report),
    'again',
    900,
  ],
  ['a refund', buildRefundEntry('refund_settled', resource, time), 'own', -1_000],
  ['a late refund', entries.buildLateRefund(resource, lateRefund, report), 'again', -1_000],
  [
    'a payout that is sent again',
    entries.buildSentAgain('payout_sent_again', resource, sent, report),
    'again',
    -1_000,
  ],
  ['a return in suspense', entries.buildReturnHeld(resource, heldReturn, report), 'again', 900],
  ['a payout', buildPayout('submitted', 'sent'), 'own', -1_000],
  ['a payout that fails', buildPayout('sent', 'failed'), 'own', 1_000],
  ['a payout that returns', buildPayout('sent', 'returned'), 'own', 1_000],
] as const)(
  '%s has the reference and amount of its movement at the bank',
  (_, entry, bank_reference, amount) => {
    const movement = buildBankMovement(entry);
    expect(movement).toMatchObject({ uncleared: 'acme', bank_day: '2026-03-04' });
    expect(movement?.bank_reference).toBe(bank_reference);
    expect(Number(movement?.bank_amount)).toBe(amount);
  },
);

test.each([
  ['an accepted refund', buildRefundEntry('refund_accepted', resource, time)],
  ['a released payout', buildPayout('submitted', 'failed')],
  ['a settlement that is in suspense already', buildSettlement(resource, 1_000, time)],
])('%s has no movement at the bank', (_, entry) => {
  expect(buildBankMovement(entry)).toBeUndefined();
});
