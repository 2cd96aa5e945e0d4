import { measureCharge } from '../../../src/service/banks/statements/matching';
import { type Candidate, type LineFacts, matchLine } from '../../../src/statements/match';

const ID = '0d1f2e3c4b5a69788796a5b4c3d2e1f0';
const OURS = { reference: ID };
const NAMED = { bank_reference: 'B' };
const BOTH = { ...OURS, ...NAMED };
const FEE = { ...OURS, amount: 990, fee: 10 };

function entry(amount: number, bank_reference: string | null = null, id = `e${amount}`) {
  return { entry_id: id, resource_id: ID, amount, bank_reference };
}
const [fit, less, foreign] = [entry(1000), entry(999), entry(1000, 'B', 'b')];

const match = (entries: string[], clearing = 1000, bank_fees = 0) => ({
  ...{ status: 'matched', entries, parts: { clearing, bank_fees } },
});
const leaveOpen = (different: string | null = null) => ({ status: 'open', different });
const ACQUIRED = { ...fit, fee: 40 };
const ANNOUNCED = { ...match(['e1000'], 1000, -40), announced: 40 };
const PARTS = [entry(400), entry(600)];
const MAYBE = { amount: 990, charges: [10] };
const CHARGED = match(['e1000'], 1000, -10);
const TAKEN = { ...OURS, amount: -3_000 };
const REINSTATED = { ...OURS, amount: 3_000 };
const DISPUTED = { ...entry(-1_000), fee: 2_000 };
const TAKEN_MATCH = { ...match(['e-1000'], -1_000, -2_000), announced: 2_000 };
const REINSTATED_MATCH = { ...match(['e1000'], 1_000, 2_000), announced: -2_000 };
const BOOKED = { status: 'booked', entries: [], parts: { clearing: 0, bank_fees: -5 } };

interface Candidates {
  ours?: Candidate[];
  named?: Candidate[];
  only?: Candidate[];
  file?: Candidate[];
  text?: Candidate[];
}

function matchFacts(line: Partial<LineFacts>, found: Candidates, tolerance?: number) {
  const facts = { amount: 1000, fee: 0, is_fee: false, batch: null };
  const names = { reference: null, bank_reference: null };
  const { ours: by_reference = [], named: by_bank_reference = [], only: by_amount = [] } = found;
  const by = { by_reference, by_bank_reference, by_amount, by_file: found.file ?? [], tolerance };
  return matchLine({ ...facts, ...names, ...line }, { ...by, by_text: found.text ?? [] });
}

test.each<[string, Partial<LineFacts>, Candidates, object]>([
  ['its reference', OURS, { ours: [fit] }, match(['e1000'])],
  ['its reference before another', BOTH, { ours: [fit], named: [foreign] }, match(['e1000'])],
  [
    'of two, that of its bank reference',
    BOTH,
    { ours: [entry(1000, 'A', 'a'), foreign] },
    match(['b']),
  ],
  ['its bank reference by amount', BOTH, { ours: [less], named: [foreign] }, match(['b'])],
  ['a sum of its bank reference', NAMED, { named: PARTS }, match(['e400', 'e600'])],
  ['the amount before charges', FEE, { ours: [fit] }, match(['e1000'], 1000, -10)],
  ['the amount after charges', FEE, { ours: [entry(990)] }, match(['e990'], 990)],
  ['the amount after an announced fee', { ...OURS, amount: 960 }, { ours: [ACQUIRED] }, ANNOUNCED],
  ['the amount before it', { ...OURS, amount: 960, fee: 40 }, { ours: [ACQUIRED] }, ANNOUNCED],
  ['no other fee', { ...OURS, amount: 959 }, { ours: [ACQUIRED] }, leaveOpen('e1000')],
  ['what a dispute took, with an announced fee', TAKEN, { ours: [DISPUTED] }, TAKEN_MATCH],
  [
    'what came back of a dispute, with it',
    REINSTATED,
    { ours: [{ ...fit, fee: -2_000 }] },
    REINSTATED_MATCH,
  ],
  ['the only entry of its amount and day', {}, { only: [fit] }, match(['e1000'])],
  ['none of two entries of its amount', {}, { only: [fit, fit] }, leaveOpen()],
  ['no entry that the bank names otherwise', NAMED, { only: [entry(1000, 'A')] }, leaveOpen()],
  ['no entry of its amount if it names ours', OURS, { only: [fit] }, leaveOpen()],
  ['no entry of another amount', OURS, { ours: [less] }, leaveOpen('e999')],
  ['the amount before charges in it', { ...OURS, ...MAYBE }, { ours: [fit] }, CHARGED],
  ['a sum of its file', { batch: 2 }, { file: PARTS }, match(['e400', 'e600'])],
  ['its file before charges', MAYBE, { file: [fit] }, CHARGED],
  ['no file with another number', { batch: 3 }, { file: PARTS }, leaveOpen()],
  ['no file with another sum', {}, { file: [entry(400), less] }, leaveOpen()],
  ['the one entry that its text names', {}, { text: [less, fit] }, match(['e1000'])],
  ['none of two entries that its text names', {}, { text: [fit, fit] }, leaveOpen()],
  ['no part of a sum', NAMED, { named: [entry(400), entry(500)] }, leaveOpen('e400')],
  ['no entry in the other direction', OURS, { ours: [entry(-1000)] }, leaveOpen()],
  ['nothing', {}, {}, leaveOpen()],
  ['no entry as a charge', { amount: -5, is_fee: true }, { only: [entry(-5)] }, BOOKED],
])('a line matches %s', (_, line, found, result) => {
  expect(matchFacts(line, found)).toEqual(result);
});

test.each([
  ['no charge that a report announced', -40, 40, 0n],
  ['a charge beyond what a report announced', -40, 39, 40n],
  ['no charge that comes back as a report announced', 40, -40, 0n],
])('the limit of charges counts %s', (_, bank_fees, announced, counted) => {
  const book = { account_id: 'ba_1', currency: 'EUR' };
  const parts = { clearing: 1000, bank_fees };
  const charged = { status: 'matched', entries: ['e1000'], parts, announced } as const;
  expect(measureCharge(charged, book).amount).toBe(counted);
});

test.each<[string, Partial<LineFacts>, Candidates, object]>([
  ['the one entry that it names', OURS, { ours: [less] }, match(['e999'], 999, 1)],
  ['one of more', OURS, { ours: [entry(1002)] }, match(['e1002'], 1002, -2)],
  ['one that its bank reference names', NAMED, { named: [less] }, match(['e999'], 999, 1)],
  ['one before its charges', FEE, { ours: [entry(1001)] }, match(['e1001'], 1001, -11)],
  ['none beyond the tolerance', OURS, { ours: [entry(1003)] }, leaveOpen('e1003')],
  ['none of two', OURS, { ours: [less, entry(998)] }, leaveOpen('e999')],
  ['none in the other direction', OURS, { ours: [entry(-1)] }, leaveOpen()],
  ['none by amount and day', {}, { only: [less, less] }, leaveOpen()],
])('within a tolerance of 2, a line matches %s', (_, line, found, result) => {
  expect(matchFacts(line, found, 2)).toEqual(result);
});
