import type { Deposit } from '../../src/domain/crypto/deposit';
import { findNewReasons, getDepositAttention } from '../../src/domain/crypto/deposit-attention';
import type { CryptoPaymentAttention } from '../../src/domain/crypto/payment';

const DEPOSIT: Deposit = {
  transaction_id: 'tx',
  amount: '1',
  confirmations: 3,
  required_confirmations: 3,
  seen_at: '2026-11-22T10:00:00.000Z',
  screening: 'passed',
  status: 'confirmed',
  late: false,
  undone: false,
};
const UNDONE: Deposit = { ...DEPOSIT, undone: true };
const HELD: Deposit = { ...DEPOSIT, status: 'held', screening: 'failed' };
const LATE: Deposit = { ...DEPOSIT, status: 'held', late: true };

test.each<[Deposit[], CryptoPaymentAttention[], CryptoPaymentAttention | null]>([
  [[UNDONE, HELD, LATE], [], 'deposit_undone'],
  [[UNDONE, HELD, LATE], ['deposit_undone'], 'deposit_held'],
  [[UNDONE, HELD, LATE], ['deposit_undone', 'deposit_held'], 'late_deposit'],
  [[UNDONE, HELD, LATE], ['deposit_undone', 'deposit_held', 'late_deposit'], 'underpaid'],
  [[LATE], ['late_deposit', 'underpaid'], null],
  [[DEPOSIT], [], 'underpaid'],
])('%#: the first reason that is not acknowledged is shown', (deposits, acknowledged, shown) => {
  const payment = { status: 'underpaid', deposits } as const;
  expect(getDepositAttention(payment, false, new Set(acknowledged))).toBe(shown);
});

test('a reason is new when it applies to one more deposit', () => {
  expect(findNewReasons([LATE], [{ ...LATE, confirmations: 4 }])).toEqual([]);
  expect(findNewReasons([LATE], [LATE, { ...LATE, transaction_id: 'second' }])).toEqual([
    'late_deposit',
  ]);
  expect(findNewReasons([DEPOSIT, LATE], [UNDONE, LATE])).toEqual(['deposit_undone']);
});
