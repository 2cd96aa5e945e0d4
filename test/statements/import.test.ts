import { TEST_DAY } from '../support/camt';
import { retryTransient } from '../support/eventually';
import { useStatements } from './statement-setting';

const setting = useStatements();

test('an imported statement is matched, booked and reconciled, and its day closes', async () => {
  const bank = await setting.openAccount();
  const paid = await bank.post(1000, { bank_reference: 'B-1' });
  const sent = await bank.post(-400);
  const file = bank.write({
    opening: 50,
    entries: [
      { ...paid, bank_reference: 'B-1' },
      { ...sent, bank_reference: 'B-2' },
      { amount: -5, code: 'PMNT.MDOP.CHRG' },
    ],
  });
  const row = {
    ...{ id: expect.stringMatching(/^st_/), statement_id: 'S-1', kind: 'statement' },
    ...{ account: bank.iban, day: TEST_DAY, lines: 3, matched: 2, booked: 1, open: 0 },
  };
  expect(await bank.import(file)).toEqual([{ ...row, already_imported: false }]);
  const stored = await bank.stored();
  expect(stored).toEqual({ statements: 1, lines: 3, entries: 4 });
  expect(await bank.import(file)).toEqual([{ ...row, already_imported: true }]);
  expect(await bank.stored()).toEqual(stored);
  expect(await bank.reconcile()).toEqual({
    ...{ account: bank.iban, currency: 'EUR', day: TEST_DAY, closed: true },
    ...{ opening: 50, closing: 645, matched: 2, has_more: false },
    ...{ ours_only: [], theirs_only: [], different: [], findings: [] },
  });
  const accounts = ['cash', 'clearing', 'suspense.unmatched', 'expense.bank_fees'];
  const balances = await Promise.all([...accounts, 'external.opening'].map(bank.balance));
  // Below 0 is what the bank holds: the closing balance.
  expect(balances).toEqual([-645, 600, 0, -5, 50]);
  const closing = { amount: 645, day: TEST_DAY, statement_id: 'S-1' };
  const account = await setting.database.stores.bankAccounts.get(bank.account._id);
  expect(account).toEqual({ ...bank.account, closing });
  expect(await bank.verify()).toEqual([]);
});

test('a file with several statements is imported in the order of its days', async () => {
  const bank = await setting.openAccount('JPY');
  const [first, second] = [await bank.post(100), await bank.post(7, { day: '2026-11-21' })];
  const file = bank.write({ id: 'B', day: '2026-11-21', opening: 100, entries: [second] });
  const earlier = bank.write({ id: 'A', entries: [first] }).toString();
  const text = `${earlier.match(/<Stmt>.*<\/Stmt>/s)}<Stmt>`;
  const both = Buffer.from(file.toString().replace('<Stmt>', text));
  expect(await bank.import(both)).toMatchObject([
    { statement_id: 'A', matched: 1, already_imported: false },
    { statement_id: 'B', matched: 1, already_imported: false },
  ]);
  expect(await bank.balance('cash')).toBe(-107);
});

describe('a refused file leaves only its refusal', () => {
  const entries = [{ amount: 1000 }];
  const setup = async () => {
    const bank = await setting.openAccount();
    await bank.import(bank.write({ id: 'S-0', day: '2026-11-17', entries: [{ amount: 50 }] }));
    return bank;
  };
  type Bank = Awaited<ReturnType<typeof setup>>;

  test.each<[string, (bank: Bank) => Buffer, RegExp]>([
    [
      'statement_conflict',
      (bank) => bank.write({ id: 'S-0', day: '2026-11-17', entries: [{ amount: 51 }] }),
      /S-0 was imported from another file/,
    ],
    [
      'statement_gap',
      (bank) => bank.write({ opening: 60, entries }),
      /S-1 opens at €0.60.* of 2026-11-17 closed at €0.50: €0.10 differ. .*: 2026-11-18 to 2026-11-19/,
    ],
    [
      'statement_gap',
      (bank) => bank.write({ day: '2026-11-16', opening: 50, entries }),
      /is older than the last one/,
    ],
    [
      'sum_mismatch',
      (bank) => bank.write({ opening: 50, closing: 1049, entries }),
      /S-1 do not lead .*: -€0.01 is missing/,
    ],
    [
      'wrong_currency',
      (bank) => bank.write({ currency: 'USD', opening: 50, entries }),
      /S-1 is in USD, and the account .* in EUR/,
    ],
    [
      'bank_account_unknown',
      (bank) => bank.write({ iban: 'GB82WEST12345698765432', entries }),
      /no bank account GB82WEST12345698765432/,
    ],
    [
      'file_invalid',
      (bank) => bank.write({ opening: 50, entries: [{ amount: 1, value_date: '2026-12-21' }] }),
      /Line 1 of statement S-1 has the value date 2026-12-21/,
    ],
    ['file_invalid', (bank) => bank.write({ entries }).subarray(0, -30), /well-formed/],
  ])('%s', async (code, write, message) => {
    const bank = await setup();
    const before = await bank.stored();
    const refusals = setting.database.db.collection('statement_refusals');
    const refusal = { code, message: expect.stringMatching(message) };
    for (const _ of ['first', 'repeat']) {
      await expect(bank.import(write(bank))).rejects.toMatchObject(refusal);
    }
    expect(await bank.stored()).toEqual(before);
    expect(await refusals.countDocuments({ connector: bank.connector })).toBe(1);
    expect(await bank.import(bank.write({ opening: 50, entries }))).toMatchObject([{ open: 1 }]);
  });

  test('if only one of its statements is wrong', async () => {
    const bank = await setup();
    const good = bank.write({ id: 'A', opening: 50, entries }).toString();
    const bad = bank.write({ id: 'B', opening: 1051, closing: 0 }).toString();
    const both = good.replace('</Stmt>', `</Stmt>${bad.match(/<Stmt>.*<\/Stmt>/s)}`);
    const before = await bank.stored();
    await expect(bank.import(Buffer.from(both))).rejects.toMatchObject({ code: 'sum_mismatch' });
    expect(await bank.stored()).toEqual(before);
  });
});

test('a value date may be 30 days ahead', async () => {
  const bank = await setting.openAccount();
  const entries = [{ amount: 1, value_date: '2026-12-20' }];
  expect(await bank.import(bank.write({ entries }))).toMatchObject([{ lines: 1 }]);
});

test('concurrent imports of one file agree, and one of two statements for a day is refused', async () => {
  const bank = await setting.openAccount();
  const posted = [];
  for (let number = 1; number <= 7; number += 1) posted.push(await bank.post(number));
  const many = Array.from({ length: 400 }, () => ({ amount: 3 }));
  const file = bank.write({ entries: [...many, ...posted] });
  const importOnce = (bytes: Buffer) => retryTransient(() => bank.import(bytes));
  const [first, second] = await Promise.all([importOnce(file), importOnce(file)]);
  const row = { lines: 407, matched: 7, open: 400 };
  expect([first, second]).toMatchObject([[row], [row]]);
  expect(await bank.stored()).toEqual({ statements: 1, lines: 407, entries: 407 });
  const sum = 1200 + 28;
  const write = (id: string) => bank.write({ id, opening: sum, entries: [{ amount: 9 }] });
  const results = await Promise.allSettled(['X', 'Y'].map((id) => importOnce(write(id))));
  expect(results.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  const refused = results.find((result) => result.status === 'rejected');
  expect(refused?.reason.code).toMatch(/^statement_(gap|incomplete)$/);
  expect(await bank.balance('cash')).toBe(-sum - 9);
  expect(await bank.verify()).toEqual([]);
});

type Step = 'insert' | 'insertLines' | 'complete' | 'ofAccount';

/** Makes a step of the store fail once others of its kind were done. */
function stopAt(step: Step, skipped: number) {
  const { statements } = setting.database.stores;
  const original = statements[step];
  let calls = 0;
  return jest.spyOn(statements, step).mockImplementation((...args: unknown[]) => {
    calls += 1;
    if (calls > skipped) throw new Error(`killed at ${step}`);
    return Reflect.apply(original, statements, args);
  });
}

test('an import that stops at any write continues, and stores nothing twice', async () => {
  const bank = await setting.openAccount();
  const posted = [];
  for (let number = 1; number <= 5; number += 1) posted.push(await bank.post(100 + number));
  const many = Array.from({ length: 700 }, () => ({ amount: 3 }));
  const file = bank.write({ opening: 9, entries: [...posted, ...many, ...posted] });
  const other = bank.write({ id: 'S-2', opening: 9 });
  const steps = [
    ['insert', 0],
    ['insertLines', 0],
    ['insertLines', 2],
    ['complete', 0],
    ['ofAccount', 0],
  ] as const;
  for (const [step, skipped] of steps) {
    const stop = stopAt(step, skipped);
    await expect(bank.import(file)).rejects.toThrow(`killed at ${step}`);
    stop.mockRestore();
    if (step === 'insertLines') {
      await expect(bank.import(other)).rejects.toMatchObject({ code: 'statement_incomplete' });
      expect(await bank.reconcile()).toMatchObject({ day: null, matched: 0 });
    }
  }
  expect(await bank.import(file)).toMatchObject([{ lines: 710, matched: 5, open: 705 }]);
  expect(await bank.stored()).toEqual({ statements: 1, lines: 710, entries: 711 });
  expect(await bank.uncleared()).toEqual([]);
  expect(await bank.verify()).toEqual([]);
});
