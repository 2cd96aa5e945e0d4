import { type SimulatedDeposit, simulateReport } from '../../src/domain/crypto/simulation';

const fresh = { transaction_id: '0xfresh', now: '2026-01-01T00:00:10.000Z' };
const seen = { transaction_id: '0xseen', amount: '40', seen_at: '2026-01-01T00:00:05.000Z' };
const payment = {
  amount_due: '101',
  amount_received: '0',
  required_confirmations: 3,
  deposits: [seen],
};

const report = (wish: SimulatedDeposit, change = {}) =>
  simulateReport({ ...payment, ...change }, wish, fresh);

it.each([
  ['the amount alone', { amount: '7' }, '7', 'passed'],
  ['received', { event: 'received' }, '101', 'passed'],
  ['underpaid', { event: 'underpaid' }, '50', 'passed'],
  ['held', { event: 'held' }, '101', 'failed'],
  ['held of an amount', { event: 'held', amount: '7' }, '7', 'failed'],
] as const)('%s is a new deposit that counts', (_, wish, amount, screening) => {
  const { name, callback } = report(wish);
  expect(name).toBe('deposit');
  expect(callback).toMatchObject({
    transaction_id: '0xfresh',
    amount,
    screening,
    confirmations: 3,
    occurred_at: fresh.now,
  });
});

it('tops up to the unit, and pays all once more when nothing is missing', () => {
  const paid = (amount_received: string) =>
    report({ event: 'received' }, { amount_received }).callback.amount;
  expect([paid('100'), paid('101'), paid('500')]).toEqual(['1', '101', '101']);
});

it('confirms a deposit that is known, as the chain has seen it', () => {
  const { callback } = report({ transaction_id: '0xseen' });
  expect(callback).toMatchObject({ amount: '40', occurred_at: seen.seen_at, confirmations: 3 });
  expect(callback.screening).toBeUndefined();
});

it('shows a deposit before it counts', () => {
  expect(report({ amount: '7', confirmations: 0 }).callback.confirmations).toBe(0);
});

it('undoes the last deposit, or the one that is named', () => {
  const undone = (wish: object, change = {}) => {
    const { name, callback } = report({ event: 'deposit_undone', ...wish }, change);
    return [name, callback.transaction_id];
  };
  expect(undone({})).toEqual(['deposit_undone', '0xseen']);
  expect(undone({ transaction_id: '0xother' })).toEqual(['deposit_undone', '0xother']);
  expect(undone({}, { deposits: [] })).toEqual(['deposit_undone', '0xfresh']);
});

it('closes the window', () => {
  expect(report({ event: 'expired' })).toMatchObject({ name: 'expired' });
});
