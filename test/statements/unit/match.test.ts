import { type Candidate, type LineFacts, matchLine } from '../../../src/statements/match';

const ID = '0d1f2e3c4b5a69788796a5b4c3d2e1f0';

function entry(amount: number, bank_reference: string | null = null, entry_id = `e${amount}`) {
  return { entry_id, resource_id: ID, amount, bank_reference };
}

function match(
  line: Partial<LineFacts>,
  { ours = [], named = [], only = [] }: { [by in 'ours' | 'named' | 'only']?: Candidate[] },
) {
  const facts = { amount: 1000, fee: 0, is_fee: false, reference: null, bank_reference: null };
  const found = { by_reference: ours, by_bank_reference: named, by_amount: only };
  return matchLine({ ...facts, ...line }, found);
}

const matched = (entries: string[], clearing: number, bank_fees = 0) => ({
  ...{ status: 'matched', entries, parts: { clearing, bank_fees } },
});
const open = (different: string | null = null) => ({ status: 'open', different });

test.each<[string, Partial<LineFacts>, Parameters<typeof match>[1], object]>([
  ['its reference', { reference: ID }, { ours: [entry(1000)] }, matched(['e1000'], 1000)],
  [
    'its reference before its bank reference',
    { reference: ID, bank_reference: 'B' },
    { ours: [entry(1000)], named: [entry(1000, 'B', 'other')] },
    matched(['e1000'], 1000),
  ],
  [
    'of two entries, the one with its bank reference',
    { reference: ID, bank_reference: 'B' },
    { ours: [entry(1000, 'A', 'a'), entry(1000, 'B', 'b')] },
    matched(['b'], 1000),
  ],
  [
    'its bank reference where its reference names another amount',
    { reference: ID, bank_reference: 'B' },
    { ours: [entry(999)], named: [entry(1000, 'B', 'b')] },
    matched(['b'], 1000),
  ],
  [
    'the sum of all entries with its bank reference',
    { bank_reference: 'B' },
    { named: [entry(400, 'B'), entry(600, 'B')] },
    matched(['e400', 'e600'], 1000),
  ],
  [
    'the amount before charges',
    { amount: 990, fee: 10, reference: ID },
    { ours: [entry(1000)] },
    matched(['e1000'], 1000, -10),
  ],
  [
    'the amount after charges',
    { amount: 990, fee: 10, reference: ID },
    { ours: [entry(990)] },
    matched(['e990'], 990),
  ],
  ['the only entry of its amount and day', {}, { only: [entry(1000)] }, matched(['e1000'], 1000)],
  ['none of two entries of its amount', {}, { only: [entry(1000), entry(1000)] }, open()],
  [
    'no entry that the bank calls otherwise',
    { bank_reference: 'B' },
    { only: [entry(1000, 'A')] },
    open(),
  ],
  ['no entry of its amount if it names ours', { reference: ID }, { only: [entry(1000)] }, open()],
  ['no entry of another amount', { reference: ID }, { ours: [entry(999)] }, open('e999')],
  ['no part of a sum', { bank_reference: 'B' }, { named: [entry(400), entry(500)] }, open('e400')],
  ['no entry in the other direction', { reference: ID }, { ours: [entry(-1000)] }, open()],
  ['nothing', {}, {}, open()],
  [
    'as a charge, none',
    { amount: -5, is_fee: true },
    { only: [entry(-5)] },
    { status: 'booked', entries: [], parts: { clearing: 0, bank_fees: -5 } },
  ],
])('a line matches %s', (_, line, found, result) => {
  expect(match(line, found)).toEqual(result);
});
