import {
  BALANCE_ACTS,
  CREDITS,
  computeCredit,
  DEFAULT_LIMITS,
  isAboveLimit,
  mayCredit,
  parseApprovalLimits,
} from '../../src/domain/approval';
import type { CallbackResource } from '../../src/domain/callback/callback';
import type { Deposit } from '../../src/domain/crypto/deposit';
import type { Dispute } from '../../src/domain/payment/dispute';
import type { Receipt } from '../../src/domain/payment/receipt';
import { KINDS, RESOURCES } from '../../src/domain/resources';

/** Acts by which an operator credits a merchant, apart from the product's own table. @see docs/operators.md#approvals */
const CREDITING: Record<CallbackResource, string[]> = {
  payment: ['dispute_won', 'mark_settled'],
  refund: ['mark_failed', 'mark_settled'],
  payout: ['mark_failed', 'mark_returned'],
  crypto_payment: ['accept', 'confirm', 'credit_late', 'release', 'write_off'],
  crypto_settlement: ['mark_failed'],
};

test.each(KINDS)('each act on a %s is listed as crediting a merchant or not', (kind) => {
  const { acts } = RESOURCES[kind];
  expect(Object.keys(CREDITS[kind]).sort()).toEqual([...acts].sort());
  expect(acts.filter((act) => mayCredit(kind, act)).sort()).toEqual(CREDITING[kind]);
  expect(BALANCE_ACTS).toEqual(['fund', 'adjust', 'reverse', 'resolve']);
});

const EURO = { currency: 'EUR', amount: 1_000 };
const ETH = { ...EURO, asset: 'ETH', network: 'ethereum' };
const receipt = (amount: number, more: Partial<Receipt> = {}): Receipt => ({
  id: `${amount}`,
  bank_reference: null,
  callback_id: null,
  amount,
  currency: 'EUR',
  value_date: null,
  received_at: '',
  reason: 'amount_differs',
  state: 'suspense',
  ...more,
});
const deposit = (amount: string, more: Partial<Deposit>): Deposit => ({
  transaction_id: amount,
  amount,
  confirmations: 3,
  required_confirmations: 3,
  status: 'held',
  seen_at: '',
  late: false,
  screening: 'passed',
  reorged: false,
  ...more,
});
const deposits = [
  deposit('5', { screening: 'failed' }),
  deposit('70', { late: true }),
  deposit('900', { status: 'confirmed' }),
];
const disputes: Partial<Dispute>[] = [
  { id: 'd1', state: 'opened', amount: 800 },
  { id: 'd2', state: 'lost', amount: 300 },
  { id: 'd3', state: 'won', amount: 900 },
];
const held = [receipt(1_200), receipt(7, { state: 'credited' }), receipt(9, { currency: 'USD' })];

test.each<[CallbackResource, string, object, number | undefined, bigint]>([
  ['payment', 'mark_settled', EURO, undefined, 1_000n],
  ['payment', 'mark_settled', EURO, 400, 400n],
  ['payment', 'mark_settled', { ...EURO, receipts: held }, undefined, 1_200n],
  ['payment', 'mark_settled', { ...EURO, receipts: held }, 1, 1_200n],
  ['payment', 'mark_settled', { ...EURO, receipts: held }, 5_000, 5_000n],
  ['payment', 'mark_failed', EURO, undefined, 0n],
  ['payment', 'dispute_won', { ...EURO, disputes }, undefined, 800n],
  ['refund', 'mark_settled', EURO, 1, 1_000n],
  ['refund', 'mark_failed', EURO, undefined, 1_000n],
  ['payout', 'mark_failed', { ...EURO, fee: 25 }, undefined, 1_025n],
  ['payout', 'mark_returned', { ...EURO, fee: 25 }, 900, 900n],
  ['payout', 'mark_completed', EURO, undefined, 0n],
  ['crypto_payment', 'release', { ...ETH, deposits }, undefined, 5n],
  ['crypto_payment', 'credit_late', { ...ETH, deposits }, undefined, 70n],
  ['crypto_payment', 'accept', { ...ETH, deposits }, undefined, 0n],
  ['crypto_settlement', 'mark_failed', { ...ETH, amount: '10', fee: '1' }, undefined, 11n],
])('the credit of a %s by %s of %j with the amount %p is %p', (kind, act, facts, named, amount) => {
  const currency = 'asset' in facts ? 'ETH.ethereum' : 'EUR';
  const credited = computeCredit(kind, act, { ...EURO, ...facts }, { amount: named });
  expect(credited).toEqual({ amount, currency });
});

test.each([
  ['100000', 'KWD', 100_000n, false],
  ['100000', 'KWD', 100_001n, true],
  ['EUR=5,JPY=7', 'JPY', 7n, false],
  ['EUR=5, JPY=7', 'JPY', 8n, true],
  ['EUR=5', 'USD', 1n, true],
  ['EUR=5', 'USD', 0n, false],
  ['99999999999', 'ETH.ethereum', 1n, true],
])('with %s, %s %p is above the limit: %p', (text, currency, amount, isAbove) => {
  const limits = parseApprovalLimits(text) ?? DEFAULT_LIMITS;
  expect(isAboveLimit(limits, { currency, amount })).toBe(isAbove);
});

test.each(['', 'EUR', 'EUR=', 'EUR=-1', 'EUR=1.5', 'XXX=5', 'eur=5', 'EUR=1,EUR=2', '-1', '1e3'])(
  '%j is no approval limit',
  (text) => expect(parseApprovalLimits(text)).toBeUndefined(),
);
