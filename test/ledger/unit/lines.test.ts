import type { NewEntry } from '../../../src/ledger/entries';
import { mergeLines } from '../../../src/ledger/lines';
import { sumByBook } from '../../../src/ledger/stored-entry';

test('lines of one account become one with the exact sum, also of an asset', () => {
  const wei = 10n ** 21n;
  const lines = [
    { account: 'main', amount: wei + 1n },
    { account: 'owed', amount: -wei },
    { account: 'main', amount: -wei },
  ];
  const merged = [
    { account: 'main', amount: 1n },
    { account: 'owed', amount: -wei },
  ];
  expect(mergeLines(lines)).toEqual(merged);
  const numbers = [5, 7].map((amount) => ({ account: 'main', amount }));
  expect(mergeLines(numbers)).toEqual([{ account: 'main', amount: 12 }]);
});

test('lines of one statement that cancel out leave balances of 0, since they have entries', () => {
  const buildEntry = (resource_id: string, amount: number): NewEntry => ({
    ...{ kind: 'bank_line', resource_id, account_id: 'ba_1', livemode: false, currency: 'USD' },
    at: '2026-11-26T00:00:00.000Z',
    legs: [
      { account: 'cash', amount: -amount },
      { account: 'suspense.unmatched', amount },
    ],
  });
  const balances = ['cash', 'suspense.unmatched'].map((account) => ({ account, amount: 0n }));
  const sums = sumByBook([buildEntry('a', 500), buildEntry('b', -500)]);
  expect([...sums]).toEqual([['ba_1:sandbox:USD', balances]]);
});
