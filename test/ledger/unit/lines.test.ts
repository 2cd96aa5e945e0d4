import { mergeLines } from '../../../src/ledger/lines';

test('lines of one account become one, exactly, also for assets', () => {
  const wei = 10n ** 21n;
  expect(
    mergeLines([
      { account: 'main', amount: wei + 1n },
      { account: 'owed', amount: -wei },
      { account: 'main', amount: -wei },
    ]),
  ).toEqual([
    { account: 'main', amount: 1n },
    { account: 'owed', amount: -wei },
  ]);
  const twice = [
    { account: 'main', amount: 5 },
    { account: 'main', amount: 7 },
  ];
  expect(mergeLines(twice)).toEqual([{ account: 'main', amount: 12 }]);
});
