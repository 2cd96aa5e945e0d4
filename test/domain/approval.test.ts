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
  ...{ key: amount, transaction_id: amount, amount, confirmations: 3, required_confirmations: 3 },
  ...{ status: 'held', seen_at: '', late: false, screening: 'passed', ...more },
});
const row = (amount: string, reason: MovementReason) =>
  makeMovement({
    id: `mv_${amount}`,
    amount,
    reason,
    sources: [{ kind: 'block', id: amount, at: '' }],
  });
const WAITING = {
  ...ETH,
  deposits: [
    deposit('5', { screening: 'failed' }),
    ...[deposit('70', { late: true }), deposit('900', { status: 'confirmed' })],
  ],
  movements: [row('5', 'deposit_held'), row('70', 'late_deposit')],
};
const deposits = [deposit('8', { status: 'rejected' })];
const BACK = { ...ETH, deposits, movements: [row('8', 'deposit_to_return')] };
const chargebacks = [800, 300, 0].map((amount, n) => ({ name: `d${n}`, amount }));
const movements = [
  makeMovement({ id: 'mv_1', amount: 1_200 }),
  makeMovement({ id: 'mv_2', amount: 7, applied: 7 }),
  makeMovement({ id: 'mv_3', amount: 9, currency: 'USD' }),
  makeMovement({ id: 'mv_4', amount: 60, applied: 10 }),
];
const HELD = { ...EURO, movements };
const LINES = [5, -1_200, 1_195n].map((amount) => ({ amount }));
const DISPUTED = { ...EURO, amount: 800 };
const PAID = { ...EURO, fee: 25 };

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
  ['dispute', 'dispute_won', DISPUTED, undefined, 800n],
  ['dispute', 'accept', DISPUTED, undefined, 800n],
  ['refund', 'mark_settled', EURO, 1, 1_000n],
  ['refund', 'mark_failed', EURO, undefined, 1_000n],
  ['payout', 'mark_failed', PAID, undefined, 1_025n],
  ['payout', 'mark_returned', PAID, 900, 900n],
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

const SENT = { direction: 'out', amount: `1${'0'.repeat(21)}1`, applied: '1' } as const;
/** More than a number holds. */
const LOST = {
  ...ETH,
  movements: [makeMovement({ id: 'mv_1', ...SENT, currency: 'ETH.ethereum' })],
};

test.each([
  ['payment', 'mark_settled', HELD, { movement: 'mv_4' }, 50n],
  ['payment', 'mark_settled', HELD, { movement: 'mv_4', amount: 70 }, 70n],
  ['payment', 'mark_settled', HELD, { movement: 'mv_2' }, 1_000n],
  ['payment', 'resolve_movement', HELD, { movement: 'mv_4', as: 'merchant' }, 50n],
  ['payment', 'resolve_movement', HELD, { movement: 'mv_4', as: 'merchant', amount: 20 }, 20n],
  ['payment', 'resolve_movement', HELD, { movement: 'mv_2', as: 'merchant' }, 0n],
  ['payment', 'resolve_movement', HELD, { movement: 'mv_4', as: 'bank' }, 50n],
  ['payment', 'resolve_movement', HELD, { movement: 'mv_4', as: 'loss' }, 50n],
  ['payment', 'resolve_movement', HELD, { movement: 'mv_4', as: 'never_happened' }, 50n],
  ['payment', 'resolve_movement', HELD, { movement: 'mv_4', as: 'customer' }, 0n],
  ['payment', 'resolve_movement', HELD, { movement: 'mv_4' }, 0n],
  ['payment', 'resolve_movement', HELD, { movement: 'mv_3', as: 'merchant' }, 9n, 'USD'],
  ['crypto_payment', 'resolve_movement', BACK, { as: 'customer' }, 8n, 'ETH.ethereum'],
  ['crypto_payment', 'resolve_movement', BACK, { as: 'loss' }, 8n, 'ETH.ethereum'],
  ['crypto_payment', 'resolve_movement', BACK, { as: 'never_happened' }, 8n, 'ETH.ethereum'],
  ['crypto_payment', 'resolve_movement', BACK, { as: 'merchant' }, 0n, 'ETH.ethereum'],
  [
    ...(['crypto_settlement', 'resolve_movement', LOST, { movement: 'mv_1', as: 'loss' }] as const),
    ...([10n ** 22n, 'ETH.ethereum'] as const),
  ],
] as const)(
  'the credit of a %s by %s, here of %j by %j, is %p',
  (kind, act, facts, named, ...credit) => {
    const [amount, currency = 'EUR'] = credit;
    expect(computeCredit(kind, act, facts, named)).toMatchObject({ amount, currency });
  },
);

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
