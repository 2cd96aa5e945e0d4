import type { NewEntry } from '../../../src/ledger/entries';
import { sumByBook } from '../../../src/ledger/stored-entry';

const line = (resource_id: string, amount: number): NewEntry => ({
  ...{ kind: 'bank_line', resource_id, account_id: 'ba_1', livemode: false, currency: 'USD' },
  at: '2026-11-26T00:00:00.000Z',
  legs: [
    { account: 'cash', amount: -amount },
    { account: 'suspense.unmatched', amount },
  ],
});

test('lines of one statement that cancel out leave balances of 0, which their entries have', () => {
  const sums = sumByBook([line('a', 500), line('b', -500)]);
  expect([...sums]).toEqual([
    [
      'ba_1:sandbox:USD',
      [
        { account: 'cash', amount: 0n },
        { account: 'suspense.unmatched', amount: 0n },
      ],
    ],
  ]);
});
