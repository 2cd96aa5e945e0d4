import { readTrialBalance } from '../../src/ledger-check/trial-balance';
import { matchByHand, unmatchByHand } from '../../src/service/statements/lines';
import { TEST_DAY } from '../support/camt';
import { useStatements } from './statement-setting';

const setting = useStatements();

const ids = (rows: readonly { id: string }[]) => rows.map(({ id }) => id);
const entryIds = (rows: readonly { entry_id: string }[]) => rows.map(({ entry_id }) => entry_id);

test('each of eight kinds of difference is reported, and nothing else', async () => {
  const bank = await setting.openAccount();
  const good = [];
  for (let number = 1; number <= 5; number += 1) {
    good.push({ ...(await bank.post(number * 111)), bank_reference: `B-${number}` });
  }
  const missing = await bank.post(2_001);
  const less = await bank.post(3_000);
  const twice = { ...(await bank.post(4_000)), bank_reference: 'B-4000' };
  const turned = await bank.post(5_000);
  const wrongBank = await bank.post(6_000, { bank_reference: 'B-6000' });
  const [one, other] = [await bank.post(7_000), await bank.post(7_000)];
  const late = await bank.post(8_000, { day: '2026-11-21' });
  const [shown] = await bank.import(
    bank.write({
      entries: [
        ...good,
        // Ours alone: `missing`. Theirs alone, of an amount that `missing` does not have:
        { amount: 2_002, reference: 'A-STRANGER', bank_reference: 'B-2002' },
        { ...less, amount: 2_999 },
        ...[twice, twice],
        // The bank took what it should have given.
        { ...turned, amount: -5_000 },
        // The amount of an entry to which the bank gave another reference.
        { amount: 6_000, bank_reference: 'B-6001' },
        // One of two entries of the same amount and day.
        { amount: 7_000 },
        // Booked although ours comes a day later.
        { amount: 8_000 },
      ],
    }),
  );
  const line = (number: number) => `${shown?.id}:${number}`;
  const day = await bank.reconcile();
  expect(day).toMatchObject({ day: TEST_DAY, closed: false, matched: 6, findings: [] });
  expect(day.different.map((each) => [each.line.id, each.entry.entry_id])).toEqual([
    [line(7), less.entry_id],
  ]);
  expect(new Set(ids(day.theirs_only))).toEqual(new Set([6, 9, 10, 11, 12, 13].map(line)));
  expect(new Set(entryIds(day.ours_only))).toEqual(
    new Set([missing, turned, wrongBank, one, other].map(({ entry_id }) => entry_id)),
  );
  expect(await bank.uncleared()).toContain(late.entry_id);
  const open = 2_002 + 2_999 + 4_000 - 5_000 + 6_000 + 7_000 + 8_000;
  expect(await bank.balance('suspense.unmatched')).toBe(open);
  expect(await bank.verify()).toEqual([]);
});

test('a line that came before its entry is matched later, and its day closes', async () => {
  const bank = await setting.openAccount();
  await bank.import(bank.write({ entries: [{ amount: 1_000, bank_reference: 'B-1' }] }));
  expect(await bank.reconcile()).toMatchObject({
    closed: false,
    theirs_only: [{ amount: 1_000, status: 'open', unmatched: 1_000, entries: [], owner: null }],
  });
  const posted = await bank.post(1_000, { bank_reference: 'B-1' });
  expect(await bank.reconcile()).toMatchObject({ closed: true, matched: 1, theirs_only: [] });
  expect(await bank.lines()).toMatchObject([{ status: 'matched', entries: [posted.entry_id] }]);
  expect(await bank.balance('suspense.unmatched')).toBe(0);
  expect(await bank.balance('clearing')).toBe(1_000);
  // What comes after that belongs to the next open day.
  const later = await bank.post(5);
  expect(await bank.reconcile(TEST_DAY)).toMatchObject({ closed: true, ours_only: [] });
  await bank.import(bank.write({ id: 'S-2', day: '2026-11-21', opening: 1_000 }));
  expect(await bank.reconcile()).toMatchObject({
    ...{ day: '2026-11-21', closed: false, opening: 1_000, closing: 1_000, matched: 0 },
    ours_only: [{ entry_id: later.entry_id, amount: 5, day: TEST_DAY, age_days: 0 }],
  });
});

test('an entry is shown on the first open day that it belongs to, and on no other', async () => {
  const bank = await setting.openAccount();
  const [first, second] = [await bank.post(1, { day: '2026-11-18' }), await bank.post(2)];
  await bank.import(bank.write({ id: 'S-1', day: '2026-11-18' }));
  await bank.import(bank.write({ id: 'S-2' }));
  const [early, latest] = [await bank.reconcile('2026-11-18'), await bank.reconcile()];
  expect(entryIds(early.ours_only)).toEqual([first.entry_id]);
  expect(entryIds(latest.ours_only)).toEqual([second.entry_id]);
  expect(await bank.reconcile('2026-11-10')).toMatchObject({ day: '2026-11-10', ours_only: [] });
});

test('a batch is matched by the sum of the entries that have its bank reference', async () => {
  const bank = await setting.openAccount();
  for (const amount of [-100, -200, -300]) await bank.post(amount, { bank_reference: 'BATCH' });
  const entries = [{ amount: -600, bank_reference: 'BATCH', details: '' }];
  expect(await bank.import(bank.write({ entries }))).toMatchObject([{ lines: 1, matched: 1 }]);
  const anyId = expect.any(String);
  expect(await bank.lines()).toMatchObject([{ entries: [anyId, anyId, anyId] }]);
  expect(await bank.uncleared()).toEqual([]);
});

test('a notification changes no balance, and is reported if no statement repeats it in 5 days', async () => {
  const bank = await setting.openAccount();
  const posted = await bank.post(1_000, { bank_reference: 'B-1' });
  const message = 'camt.054.001.08';
  const announced = [
    { ...posted, bank_reference: 'B-1' },
    { amount: 77, bank_reference: 'B-2', day: '2026-11-15' },
    { amount: 78, bank_reference: 'B-3', day: '2026-11-14' },
  ];
  const file = bank.write({ id: 'N-1', entries: announced }, { message });
  expect(await bank.import(file)).toMatchObject([
    { kind: 'notification', lines: 3, matched: 0, open: 3 },
  ]);
  expect(await bank.import(file)).toMatchObject([{ already_imported: true }]);
  expect(await bank.balance('cash')).toBe(0);
  expect(await bank.uncleared()).toEqual([posted.entry_id]);
  const entries = [{ amount: 1_000, bank_reference: 'B-1' }];
  expect(await bank.import(bank.write({ entries }))).toMatchObject([{ lines: 1, matched: 1 }]);
  expect(await bank.reconcile()).toMatchObject({
    ...{ closed: true, matched: 1, theirs_only: [] },
    findings: [{ code: 'not_repeated', amount: 78, currency: 'EUR', ids: [expect.any(String)] }],
  });
  const { mongo, db } = setting.database;
  const { findings } = await readTrialBalance(mongo, db.databaseName, setting.deps());
  const notRepeated = findings.filter(({ code }) => code === 'not_repeated');
  expect(notRepeated).toMatchObject([{ amount: 78n, currency: 'EUR', ids: [expect.any(String)] }]);
  const statuses = (await bank.lines()).map(({ status }) => status).sort();
  expect(statuses).toEqual(['announced', 'announced', 'matched', 'repeated']);
});

describe('an operator', () => {
  const setup = async (livemode = false) => {
    const bank = await setting.openAccount('EUR', livemode);
    const posted = [await bank.post(700), await bank.post(290)];
    await bank.import(bank.write({ entries: [{ amount: 1_000, reference: 'X' }] }));
    const [line] = await bank.lines();
    if (line === undefined) throw new Error('no line');
    const entries = posted.map(({ entry_id }) => entry_id);
    return { bank, id: String(line._id), entries };
  };

  test('matches a line with entries, books the difference, and unmatches it', async () => {
    const { bank, id, entries } = await setup();
    const deps = setting.deps();
    const refused = matchByHand(deps, id, { entries });
    const message = expect.stringMatching(/has €10.00, and the entries €9.90: €0.10 differ/);
    await expect(refused).rejects.toMatchObject({ code: 'amounts_differ', message });
    const fees = { entries, difference_to: 'expense.bank_fees' } as const;
    expect(await matchByHand(deps, id, fees)).toMatchObject({ status: 'matched', entries });
    expect(await bank.balance('expense.bank_fees')).toBe(10);
    expect(await bank.reconcile()).toMatchObject({ closed: true, matched: 1 });
    await expect(matchByHand(deps, id, fees)).rejects.toMatchObject({ code: 'line_not_open' });

    expect(await unmatchByHand(deps, id, {})).toMatchObject({ status: 'open', entries: [] });
    expect(await bank.balance('suspense.unmatched')).toBe(1_000);
    const fitting = await bank.post(1_000);
    // The operator's decision stands: nothing matches it again by itself.
    expect(await bank.reconcile()).toMatchObject({ closed: false, theirs_only: [{ id }] });
    const rest = { entries, difference_to: 'suspense.unmatched' } as const;
    expect(await matchByHand(deps, id, rest)).toMatchObject({ status: 'matched' });
    expect(await bank.balance('suspense.unmatched')).toBe(10);
    await unmatchByHand(deps, id, {});
    await matchByHand(deps, id, { entries: [fitting.entry_id] });
    const balances = await Promise.all(['clearing', 'suspense.unmatched'].map(bank.balance));
    expect(balances).toEqual([1_000, 0]);
    expect(await bank.verify()).toEqual([]);
  });

  test('cannot match an entry twice or of another account, nor a line that does not exist', async () => {
    const { bank, id, entries } = await setup();
    const { id: other } = await setup();
    const deps = setting.deps();
    const match = (line: string, ...names: string[]) =>
      matchByHand(deps, line, { entries: names, difference_to: 'expense.bank_fees' });
    await expect(match(other, ...entries)).rejects.toMatchObject({ code: 'entry_not_found' });
    await expect(match('st_none:1')).rejects.toMatchObject({ code: 'line_not_found' });
    await expect(unmatchByHand(deps, id, {})).rejects.toMatchObject({ code: 'line_not_matched' });
    const added = [{ amount: 9, reference: 'Y' }];
    await bank.import(bank.write({ id: 'S-2', opening: 1_000, entries: added }));
    const [, second] = await bank.lines();
    const [first = ''] = entries;
    const both = await Promise.allSettled([match(id, first), match(String(second?._id), first)]);
    expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    expect(await bank.uncleared()).toEqual(entries.slice(1));
  });

  test('gives a name and a reason on live, which are audited', async () => {
    const { id, entries } = await setup(true);
    const fees = { entries, difference_to: 'expense.bank_fees' } as const;
    const refused = matchByHand(setting.deps(), id, fees);
    await expect(refused).rejects.toMatchObject({ code: 'operator_required' });
    const who = { operator: 'mia', reason: 'Ticket 42' };
    await matchByHand(setting.deps(), id, { ...fees, ...who });
    const audited = await setting.database.db.collection('audit_log').findOne({ target: id });
    expect(audited).toMatchObject({
      ...{ act: 'statement.matched', account_id: null, livemode: true },
      before: { status: 'open', entries: [] },
      after: { status: 'matched', entries, ...who },
    });
  });
});
