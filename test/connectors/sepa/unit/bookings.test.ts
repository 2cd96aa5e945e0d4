import fc from 'fast-check';
import { makeReference } from '../../../../connectors/sepa/definition';
import { readBankMessages } from '../../../../connectors/sepa/messages';
import { pickReading } from '../../../../connectors/sepa/movements';
import { camt } from '../../../support/camt';
import { type Part, VERSIONS, type Wording, writeBooking } from '../bookings';

const charge = fc.integer({ min: 5, max: 3_000 });
const amount = fc.integer({ min: 5_000, max: 900_000 });
const sign = fc.constantFrom<1 | -1>(1, -1);
const message = fc.constantFrom('camt.053.001', 'camt.054.001');
const wordings = {
  version: fc.constantFrom(...VERSIONS),
  cut: fc.constantFrom<Wording['cut']>('as it is', 'dashes', 'spaces', 'words'),
  form: fc.constantFrom<Wording['form']>('record', 'total', 'tax', 'included', 'foreign'),
  reference: fc.constantFrom<Wording['reference']>('entry', 'part', 'both', 'none'),
};
const PAYOUT = '7b1e2c90-6a41-4c65-9a0b-2f64d50cf0aa';
const listParts = (rows: readonly [number, number][], dir: number): Part[] =>
  rows.map(([each, own], index) => {
    const id = `${index}${PAYOUT.slice(1)}`;
    return { amount: each, charge: own, id: dir < 0 ? id : makeReference(id, 0) };
  });

async function read(parts: readonly Part[], wording: Wording, dir: 1 | -1, name: string) {
  const entries = writeBooking(parts, wording, { sign: dir, bank_reference: 'BK-1' });
  const file = camt([{ opening: 5_000_000, entries }], { message: `${name}.${wording.version}` });
  const [found] = await readBankMessages(file);
  if (found?.kind !== 'statements') throw new Error(found?.kind);
  expect(JSON.stringify(found)).not.toMatch(/Ada|Lovelace|FR76|3000 ?6000/);
  const { lines = [] } = found.statements[0] ?? {};
  const moved = entries.reduce((sum, each) => sum + each.amount, 0);
  expect(lines.reduce((sum, line) => sum + line.amount, 0)).toBe(moved);
  return { ...found, lines };
}

test('charges are a fee, wherever and however a bank states them', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        ...wordings,
        charges: fc.constantFrom<Wording['charges']>('none', 'part', 'entry', 'separate'),
        amount: fc.constantFrom<Wording['amount']>('gross', 'net', 'net alone'),
      }),
      ...[fc.array(fc.tuple(amount, charge), { minLength: 1, maxLength: 4 }), sign, message],
      async (shape, rows, dir, name) => {
        // Charges in another currency explain nothing, and those of an entry are not in its parts.
        fc.pre(
          shape.form !== 'foreign' || shape.charges === 'none' || shape.charges === 'separate',
        );
        const wording: Wording = { ...shape, name: 'EndToEndId' };
        const parts = listParts(rows, dir);
        const { movements, credits, lines } = await read(parts, wording, dir, name);
        const own = dir < 0 ? movements : credits;
        const euros = parts.map((part) => ({ ...part, currency: 'EUR' }));
        const amounts = own.map((each, at) => pickReading(each, euros[at] ?? each).amount);
        expect(amounts).toEqual(parts.map((part) => part.amount));
        const isSaid = shape.form === 'included' && shape.version !== '02';
        const isProved = shape.amount !== 'net alone' || isSaid;
        if (shape.charges === 'none' || shape.charges === 'separate' || !isProved) return;
        const fees = lines.map((line) => (line.is_fee ? -line.amount : line.fee));
        expect(fees.reduce((sum, fee) => sum + fee, 0)).toBe(
          parts.reduce((sum, part) => sum + part.charge, 0),
        );
      },
    ),
    { numRuns: 500 },
  );
});

test('a reference is found wherever a text has it, however it is cut', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        ...wordings,
        name: fc.constantFrom<Wording['name']>('Ustrd', 'AddtlTxInf', 'AddtlNtryInf'),
      }),
      ...[fc.array(fc.tuple(amount, charge), { minLength: 1, maxLength: 3 }), sign, message],
      async (shape, rows, dir, name) => {
        const isEntry = shape.name === 'AddtlNtryInf';
        const wording: Wording = { ...shape, charges: 'none', amount: 'gross' };
        const parts = listParts(isEntry ? rows.slice(0, 1) : rows, dir);
        const { mentioning } = await read(parts, wording, dir, name);
        expect(mentioning.map(({ mentions, amount: each }) => [mentions, each])).toEqual(
          parts.map((part) => [expect.arrayContaining([part.id]), part.amount]),
        );
      },
    ),
    { numRuns: 300 },
  );
});
