import type { Statement, StatementLine } from '../../../src/domain/banks/statement';
import {
  compareOrder,
  describeDifference,
  readFacts,
  relate,
} from '../../../src/statements/compare';
import { TEST_DAY } from '../../support/camt';

function line(amount: number, changes: Partial<StatementLine> = {}): StatementLine {
  return {
    ...{ day: TEST_DAY, value_date: TEST_DAY, amount, currency: 'EUR', reference: null },
    ...{ bank_reference: `B${amount}`, fee: 0, batch: null, kind: '', is_fee: false, entry: 1 },
    ...changes,
  };
}

function statement({ opening = 0, ...changes }: Partial<Statement> & { opening?: number } = {}) {
  const lines = changes.lines ?? [line(5), line(7)];
  const closing = lines.reduce((sum, { amount }) => sum + amount, opening);
  return {
    ...{ statement_id: 'S-1', iban: 'X', currency: 'EUR', balances: { opening, closing } },
    ...{ from_day: TEST_DAY, to_day: TEST_DAY, sequence: null, ...changes, lines },
  };
}

const days = (from_day: string, to_day = from_day) => ({ from_day, to_day });
const balances = null;
const unnamed = { balances, lines: [line(5, { bank_reference: null })] };
const dateless = line(5, { value_date: null, kind: 'x' });

test.each<[string, string, Parameters<typeof statement>[0], Parameters<typeof statement>[0]?]>([
  ['same', 'another id', { statement_id: 'X' }],
  ['same', 'its lines in another order', { lines: [line(7), line(5)] }],
  ['same', 'no value dates or codes', { lines: [dateless, line(7)] }],
  ['same', 'a number that the other lacks', { sequence: '7' }],
  ['same', 'a number with zeros', { sequence: '007' }, { sequence: '7' }],
  ['same', 'another first day, which is often derived', days('2026-11-18', TEST_DAY)],
  ['conflict', 'another line', { lines: [line(5), line(8)] }],
  ['conflict', 'another line and id, from the same opening', { statement_id: 'X', lines: [] }],
  ['conflict', 'another opening', { opening: 1 }],
  ['conflict', 'another number', { sequence: '8' }, { sequence: '7' }],
  ['conflict', 'its number', { sequence: '7', opening: 12 }, { sequence: '7' }],
  ['other', 'the next number and opening', { sequence: '8', opening: 12 }, { sequence: '7' }],
  ['other', 'another id and opening', { statement_id: 'X', opening: 12 }],
  ['other', 'another id, after one without lines', { statement_id: 'X' }, { lines: [] }],
  ['other', 'the same id a year later', days('2027-11-20')],
  ['other', 'the days before, to its begin', days('2026-11-19', TEST_DAY), { opening: 12 }],
  ['overlap', 'more days before', { ...days('2026-11-16', TEST_DAY), lines: [line(12)] }],
  ['overlap', 'more days after', days(TEST_DAY, '2026-11-22')],
  ['overlap', 'days around', days('2026-11-18', '2026-11-22')],
  ['same', 'the same named movements', { balances, statement_id: 'X' }, { balances }],
  ['other', 'other movements', { balances, statement_id: 'X', lines: [] }, { balances }],
  ['conflict', 'other movements under its id', { balances, lines: [line(5)] }, { balances }],
  ['other', 'alike movements without names', { ...unnamed, statement_id: 'X' }, unnamed],
])('the relation is "%s" to a statement with %s', (relation, _what, fresh, stored = {}) => {
  expect(relate(readFacts(statement(stored)), readFacts(statement(fresh)))).toBe(relation);
});

test.each<[string, Parameters<typeof statement>[0], Parameters<typeof statement>[0]?]>([
  ['it opens at €0.01, and that at €0.00', { opening: 1 }],
  [
    'line 2 is €0.08 of 2026-11-20, and that has €0.07 of 2026-11-20',
    { lines: [line(5), line(8)] },
  ],
  [
    'line 1 is €0.07 of 2026-11-20, and that has €0.07 of 2026-11-20, with another bank reference',
    { lines: [line(7, { bank_reference: 'Z' }), line(5)] },
  ],
  ['that lacks line 3, €0.07 of 2026-11-20', { lines: [line(5), line(7), line(7)] }],
  ['it lacks a line of that, €0.05 of 2026-11-20', { lines: [line(7)] }],
  ['its number is 8, and that of the other 7', { sequence: '8' }, { sequence: '7' }],
])('the difference between two statements is described: %s', (text, changes, before = {}) => {
  const [stored, fresh] = [before, changes].map((each) => {
    const of = statement(each);
    return { ...readFacts(of), all: of.lines };
  });
  if (stored === undefined || fresh === undefined) throw new Error('two statements');
  expect(describeDifference(stored, fresh, 'EUR')).toBe(text);
});

test('statements of a day are ordered by their numbers, and those without one come first', () => {
  const numbered = ['2', null, '1'].map((sequence) => statement({ sequence }));
  const ordered = numbered.toSorted(compareOrder).map(({ sequence }) => sequence);
  expect(ordered).toEqual([null, '1', '2']);
});
