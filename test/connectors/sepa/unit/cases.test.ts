import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeReference } from '../../../../connectors/sepa/definition';
import { readBankMessages } from '../../../../connectors/sepa/messages';
import { shortenId } from '../../../../src/service/banks/sepa/book';
import { camt } from '../../../support/camt';

const [P1, P2] = ['7b1e2c90-6a41-4c65-9a0b-2f64d50cf0aa', '00000000-6a41-4c65-9a0b-2f64d50cf0aa'];
const FILE = '0b7d6d524a3f4a5d9b530f0f6d1a3c11';
const RF = makeReference(P1, 0);

/** Reads what a bank wrote, with names of ours put in. */
const read = (name: string) =>
  readFileSync(join(__dirname, '../cases', `${name}.xml`), 'utf8')
    .replaceAll('{P1}', shortenId(P1))
    .replaceAll('{P2}', shortenId(P2))
    .replaceAll('{FILE}', FILE)
    .replaceAll('{RF}', RF);

/** Movement of a payout of 100.00 EUR. */
const movement = (payout_id: string, changes: object = {}) => ({
  ...{ payout_id, kind: 'booked', amount: 10_000, ...changes },
});
const sum = (bank_reference: string) => ({
  ...{ kind: 'booked', amount: 30_000, names: [FILE], count: 2, bank_reference },
});
const [one, two] = [movement(P1), movement(P2, { amount: 20_000 })];

test.each<[what: string, name: string, moved: number, found: object, fee?: number]>([
  [
    '08',
    'charge-next-to-amount',
    -152_600,
    { movements: [movement(P1, { amount: 150_000 })] },
    2_600,
  ],
  ['08', 'charge-included', -152_600, { movements: [movement(P1, { amount: 150_000 })] }, 2_600],
  ['08', 'charges-of-parts', -30_400, { movements: [one, two] }, 400],
  ['09', 'total-charges', -10_150, { movements: [one] }, 150],
  ['09', 'charge-with-tax', -10_179, { movements: [one] }, 179],
  ['10', 'sum', -30_000, { movements: [], sums: [sum('SUM-101')] }],
  ['10', 'details', -30_000, { movements: [one, two] }],
  ['10', 'sum-of-details', -30_000, { movements: [], sums: [sum('SUM-102')] }],
  ['11', 'booked', -10_000, { movements: [one] }],
  ['11', 'reversed', 0, { movements: [movement(P1, { kind: 'debit_reversed' }), one] }],
  [
    '11',
    'sign-of-original',
    10_000,
    { statements: [{ notice: expect.stringMatching('opposite sign') }] },
  ],
  ['12', 'additional-information', 4_200, { mentioning: [{ mentions: [RF], amount: 4_200 }] }],
])('%s %s, as a bank wrote it, is read right', async (what, name, closing, found, fee = 0) => {
  const entries = read(`${what}-${name}`);
  const text = camt([{ closing }]).toString().replace('</Stmt>', `${entries}</Stmt>`);
  const [message] = await readBankMessages(Buffer.from(text));
  if (message?.kind !== 'statements') throw new Error(message?.kind);
  expect(message).toMatchObject(found);
  const lines = message.statements.flatMap((statement) => statement.lines);
  const fees = lines.map((line) => (line.is_fee ? -line.amount : line.fee));
  expect(fees.reduce((total, each) => total + each, 0)).toBe(fee);
  expect(JSON.stringify(message)).not.toContain('Haddad');
});

test.each([
  ['name-check', { [P1]: 'no_match', [P2]: 'close_match' }],
  ['name-check-of-group', { [P1]: 'no_match' }],
])('18 %s, as a bank wrote it, has results and no names', async (name, results) => {
  const [message] = await readBankMessages(Buffer.from(read(`18-${name}`)));
  const [report] = message?.kind === 'status' ? message.reports : [];
  expect(report?.verification).toMatchObject({ isAlone: true, others: null });
  expect(Object.fromEntries(report?.verification?.results ?? [])).toEqual(results);
  expect(JSON.stringify(message)).not.toContain('Haddad');
});
