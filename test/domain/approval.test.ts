import type { CallbackResource } from '../../src/domain/banks/callback';
import type { MovementReason } from '../../src/domain/banks/movement';
import type { Deposit } from '../../src/domain/crypto/deposit';
import {
  CREDITS,
  type CreditingKind,
  computeCredit,
  listScopes,
  mayCredit,
  parseCurrencyLimits,
  readApprovalLimits,
} from '../../src/domain/operators/approval';
import { KINDS, RESOURCES } from '../../src/domain/resources';
import { makeMovement } from '../support/movements';

/** Acts by which an operator credits a merchant or writes off, apart from the product's own table. @see docs/operators.md#approvals */
const CREDITING: Record<CallbackResource, string[]> = {
  payment: ['dispute_won', 'mark_settled', 'resolve_movement'],
  refund: ['mark_failed', 'mark_settled', 'resolve_movement'],
  payout: ['mark_failed', 'mark_returned', 'resolve_movement'],
  dispute: ['accept', 'dispute_won'],
  crypto_payment: ['accept', 'confirm', 'credit_late', 'release', 'resolve_movement'],
  crypto_settlement: ['mark_failed', 'resolve_movement'],
};

test.each(KINDS)('each act on a %s is listed as crediting a merchant or not', (kind) => {
  const { acts } = RESOURCES[kind];
  expect(Object.keys(CREDITS[kind]).sort()).toEqual([...acts].sort());
  expect(acts.filter((act) => mayCredit(kind, act)).sort()).toEqual(CREDITING[kind]);
});

test('acts on balances credit, and a match of a statement line may book a charge', () => {
  const list = (kind: CreditingKind) =>
    Object.keys(CREDITS[kind]).filter((act) => mayCredit(kind, act));
  expect(list('balance')).toEqual(['fund', 'adjust', 'reverse']);
  expect(list('statement')).toEqual(['match', 'clear']);
});

const EURO = { account_id: 'acct_1', currency: 'EUR', amount: 1_000 };
const ETH = { ...EURO, asset: 'ETH', network: 'ethereum' };
const deposit = (amount: string, more: Partial<Deposit>): Deposit => ({
  key: amount,
  transaction_id: amount,
  amount,
  confirmations: 3,
  required_confirmations: 3,
  status: 'held',
  seen_at: '',
  late: false,
  screening: 'passed',
  ...more,
});
const row = (key: string, reason: MovementReason) =>
  makeMovement({
    id: `mv_${key}`,
    amount: key,
    reason,
    sources: [{ kind: 'block', id: key, at: '' }],
  });
const deposits = [
  deposit('5', { screening: 'failed' }),
  deposit('70', { late: true }),
  deposit('900', { status: 'confirmed' }),
];
const WAITING = {
  ...ETH,
  deposits,
  movements: [row('5', 'deposit_held'), row('70', 'late_deposit')],
};
const BACK = {
  ...ETH,
  deposits: [deposit('8', { status: 'rejected' })],
  movements: [row('8', 'deposit_to_return')],
};
const chargebacks = [
  { name: 'd1', amount: 800 },
  { name: 'd2', amount: 300 },
  { name: 'd3', amount: 0 },
];
const movements = [
  makeMovement({ id: 'mv_1', amount: 1_200 }),
  makeMovement({ id: 'mv_2', amount: 7, applied: 7 }),
  makeMovement({ id: 'mv_3', amount: 9, currency: 'USD' }),
  makeMovement({ id: 'mv_4', amount: 60, applied: 10 }),
];
const HELD = { ...EURO, movements };

const LINES = [{ amount: 5 }, { amount: -1_200 }, { amount: 1_195n }];

test.each<[CreditingKind, string, object, number | undefined, bigint]>([
  ['balance', 'fund', EURO, undefined, 1_000n],
  ['balance', 'adjust', { ...EURO, amount: '-1000' }, undefined, 1_000n],
  ['balance', 'reverse', { ...EURO, lines: LINES }, undefined, 1_200n],
  ['statement', 'match', { ...EURO, amount: -30 }, undefined, 30n],
  ['statement', 'unmatch', EURO, undefined, 0n],
  ['payment', 'mark_settled', EURO, undefined, 1_000n],
  ['payment', 'mark_settled', EURO, 400, 400n],
  ['payment', 'mark_settled', HELD, undefined, 1_250n],
  ['payment', 'mark_settled', HELD, 1, 1_250n],
  ['payment', 'mark_settled', HELD, 5_000, 5_000n],
  ['payment', 'mark_failed', EURO, undefined, 0n],
  ['payment', 'dispute_won', { ...EURO, chargebacks }, undefined, 800n],
  ['dispute', 'dispute_won', { ...EURO, amount: 800 }, undefined, 800n],
  ['dispute', 'accept', { ...EURO, amount: 800 }, undefined, 800n],
  ['refund', 'mark_settled', EURO, 1, 1_000n],
  ['refund', 'mark_failed', EURO, undefined, 1_000n],
  ['payout', 'mark_failed', { ...EURO, fee: 25 }, undefined, 1_025n],
  ['payout', 'mark_returned', { ...EURO, fee: 25 }, 900, 900n],
  ['payout', 'mark_completed', EURO, undefined, 0n],
  ['crypto_payment', 'release', WAITING, undefined, 5n],
  ['crypto_payment', 'credit_late', WAITING, undefined, 70n],
  ['crypto_payment', 'accept', WAITING, undefined, 0n],
  ['crypto_settlement', 'mark_failed', { ...ETH, amount: '10', fee: '1' }, undefined, 11n],
])('the credit of a %s by %s of %j with the amount %p is %p', (kind, act, facts, named, amount) => {
  const currency = 'asset' in facts ? 'ETH.ethereum' : 'EUR';
  const credited = computeCredit(kind, act, { ...EURO, ...facts }, { amount: named });
  expect(credited).toEqual({ account_id: 'acct_1', amount, currency });
});

test.each([
  ['mark_settled', { movement: 'mv_4' }, 50n],
  ['mark_settled', { movement: 'mv_4', amount: 70 }, 70n],
  ['mark_settled', { movement: 'mv_2' }, 1_000n],
  ['resolve_movement', { movement: 'mv_4', as: 'merchant' }, 50n],
  ['resolve_movement', { movement: 'mv_4', as: 'merchant', amount: 20 }, 20n],
  ['resolve_movement', { movement: 'mv_2', as: 'merchant' }, 0n],
  ['resolve_movement', { movement: 'mv_4', as: 'bank' }, 50n],
  ['resolve_movement', { movement: 'mv_4', as: 'loss' }, 50n],
  ['resolve_movement', { movement: 'mv_4', as: 'never_happened' }, 50n],
  ['resolve_movement', { movement: 'mv_4', as: 'customer' }, 0n],
  ['resolve_movement', { movement: 'mv_4' }, 0n],
  ['resolve_movement', { movement: 'mv_3', as: 'merchant' }, 9n, 'USD'],
] as const)('the credit of a payment by %s of %j is %p', (act, named, amount, ...[currency]) => {
  const credit = { amount, currency: currency ?? 'EUR' };
  expect(computeCredit('payment', act, HELD, named)).toMatchObject(credit);
});

test.each([
  ['customer', 8n],
  ['loss', 8n],
  ['never_happened', 8n],
  ['merchant', 0n],
] as const)('a deposit in suspense that is resolved as %s counts %p', (as, amount) => {
  const credited = computeCredit('crypto_payment', 'resolve_movement', BACK, { as });
  expect(credited).toMatchObject({ amount, currency: 'ETH.ethereum' });
});

test('an operator who decides what was sent of an asset needs another one, to the last unit', () => {
  const amount = '10000000000000000000001';
  const held = { direction: 'out', amount, applied: '1', currency: 'ETH.ethereum' } as const;
  const facts = { ...ETH, amount, movements: [makeMovement({ id: 'mv_1', ...held })] };
  const named = { movement: 'mv_1', as: 'loss' } as const;
  const credited = computeCredit('crypto_settlement', 'resolve_movement', facts, named);
  expect(credited).toMatchObject({ amount: BigInt(amount) - 1n, currency: 'ETH.ethereum' });
});

const OWNERS = { operator: ' Mia', account_id: 'acct_1' };

test.each([
  [{}, 'EUR', 100_000, 1_000_000],
  [{}, 'KWD', 0, 0],
  [{ limit: '100000' }, 'KWD', 100_000, 1_000_000],
  [{ limit: 'EUR=5, JPY=7' }, 'JPY', 7, 70],
  [{ limit: 'EUR=5' }, 'USD', 0, 0],
  [{ limit: 'EUR=5', day: 'EUR=8' }, 'EUR', 5, 8],
  [{ limit: 'EUR=5', day: '9' }, 'USD', 0, 9],
  [{ limit: '999999999999' }, 'ETH.ethereum', 0, 0],
])('with %j, the limits of %s are %i and %i', (texts, currency, each, all) => {
  expect(listScopes(OWNERS, currency, [readApprovalLimits(texts)])).toEqual([
    { id: `operator:mia ${currency}`, limit: each },
    { id: `account:acct_1 ${currency}`, limit: each },
    { id: `all ${currency}`, limit: all },
  ]);
});

test('of several limits, the least counts', () => {
  const read = (limit: string, day: string) => readApprovalLimits({ limit, day });
  const found = listScopes({ operator: 'bo' }, 'EUR', [read('5', '90'), read('7', '80')]);
  const own = { id: 'operator:bo EUR', limit: 5 };
  expect(found).toEqual([own, { id: 'all EUR', limit: 80 }]);
});

test.each(['', 'EUR', 'EUR=', 'EUR=-1', 'EUR=1.5', 'XXX=5', 'eur=5', 'EUR=1,EUR=2', '-1', '1e3'])(
  '%j is no approval limit',
  (text) => expect(parseCurrencyLimits(text)).toBeUndefined(),
);
