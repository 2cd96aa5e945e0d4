import { addCredits } from '../../../../connectors/sepa/credits';
import { type Credit, readBankMessage } from '../../../../connectors/sepa/messages';
import { makeReference } from '../../../../connectors/sepa/payments';
import { buildPaymentReports } from '../../../../connectors/sepa/reporting';
import { isCreditorReference } from '../../../../src/domain/payment/creditor-reference';
import type { LineMovement } from '../../../../src/service/sepa/book';
import { type CamtEntry, camt, TEST_DAY } from '../../../support/camt';

const PAYMENT = '7b1e2c90-6a41-4c65-9a0b-2f64d50cf0aa';
const REFERENCE = makeReference(PAYMENT, 0);
const credited = { reference: REFERENCE, amount: 1_000, currency: 'EUR', value_date: TEST_DAY };

const text = (...lines: string[]) => lines.map((line) => `<Ustrd>${line}</Ustrd>`).join('');
const structured = (reference: string) =>
  `<Strd><CdtrRefInf><Ref>${reference}</Ref></CdtrRefInf></Strd>`;
const transfer = (remittance: string, more = ''): string =>
  '<TxDtls><Refs><EndToEndId>NOTPROVIDED</EndToEndId></Refs><RltdPties><Dbtr><Pty>' +
  `<Nm>Ada Lovelace</Nm></Pty></Dbtr></RltdPties><RmtInf>${remittance}</RmtInf>${more}</TxDtls>`;

async function readCredits(entry: Partial<CamtEntry>, message = 'camt.054.001.08') {
  const entries = [{ amount: 1_000, bank_reference: 'B-1', ...entry }];
  const read = await readBankMessage(camt([{ entries }], { message }));
  if (read.kind !== 'statements') throw new Error(read.kind);
  expect(JSON.stringify(read)).not.toMatch(/Ada|Lovelace|flowers/);
  return read.credits;
}

test('each payment has a reference of its own, again the same', () => {
  expect(isCreditorReference(REFERENCE)).toBe(true);
  expect(makeReference(PAYMENT, 0)).toBe(REFERENCE);
  expect(makeReference(PAYMENT, 1)).not.toBe(REFERENCE);
  expect(makeReference(PAYMENT.replace('7', '8'), 0)).not.toBe(REFERENCE);
});

describe('a credit is read by its reference', () => {
  const note = `Thank you for the flowers ${REFERENCE} Ada`;
  test.each([
    ['in the text', transfer(text(note))],
    ['in a text that is cut at 35', transfer(text(note.slice(0, 35), note.slice(35)))],
    ['in the field for it', transfer(structured(REFERENCE))],
    ['in both', transfer(text(note) + structured(REFERENCE))],
  ])('%s', async (_where, details) => {
    const [credit, ...others] = await readCredits({ details });
    const source = 'notification';
    expect(credit).toEqual({ ...credited, source, bank_reference: 'B-1' });
    expect(others).toEqual([]);
  });

  test('as EndToEndId, in a statement', async () => {
    const credits = await readCredits({ reference: REFERENCE }, 'camt.053.001.08');
    expect(credits).toEqual([{ ...credited, source: 'statement', bank_reference: 'B-1' }]);
  });
});

const returned = '<RtrInf><Rsn><Cd>AC04</Cd></Rsn></RtrInf>';
test.each<[string, Partial<CamtEntry>]>([
  ['no reference', { details: transfer(text('flowers')) }],
  ['two references', { details: transfer(text(REFERENCE, makeReference('other', 0))) }],
  ['money that leaves', { amount: -1_000, details: transfer(text(REFERENCE)) }],
  ['a return', { details: transfer(text(REFERENCE), returned) }],
  ['a reversal', { reversal: true, details: transfer(text(REFERENCE)) }],
  ['a credit that is not booked', { status: 'PDNG', details: transfer(text(REFERENCE)) }],
])('%s is no credit', async (_what, entry) => {
  expect(await readCredits(entry)).toEqual([]);
});

type Told = [source: Credit['source'], bank_reference: string | null, amount?: number];

/** Applies messages one after the other, each again as after a kill. */
function tell(messages: readonly (readonly Told[])[]): LineMovement[] {
  let facts: LineMovement[] = [];
  for (const message of messages) {
    const own = message.map(([source, bank_reference, amount = 1_000]) => ({
      ...{ ...credited, source, bank_reference, amount },
    }));
    facts = addCredits(facts, own, 'then') ?? facts;
    expect(addCredits(facts, own, 'later')).toBeUndefined();
  }
  return facts;
}

test.each<[string, readonly (readonly Told[])[], [string | null, number][]]>([
  ['one in two messages', [[['notification', 'A']], [['statement', 'A']]], [['A', 1_000]]],
  ['one whose references differ', [[['notification', 'A']], [['statement', 'X']]], [['A', 1_000]]],
  ['one without a reference', [[['notification', null]], [['statement', 'X']]], [[null, 1_000]]],
  [
    'two of the same amount in one message',
    [
      [
        ['notification', 'A'],
        ['notification', 'B'],
      ],
      [
        ['statement', 'B'],
        ['statement', 'A'],
      ],
    ],
    [
      ['A', 1_000],
      ['B', 1_000],
    ],
  ],
  [
    'two in a statement, the new one first',
    [
      [['notification', 'A']],
      [
        ['statement', 'B'],
        ['statement', 'A'],
      ],
    ],
    [
      ['A', 1_000],
      ['B', 1_000],
    ],
  ],
  [
    'a part, and the rest',
    [[['notification', 'A', 400]], [['notification', 'B', 600]]],
    [
      ['A', 400],
      ['B', 600],
    ],
  ],
])('%s counts right', (_what, messages, expected) => {
  const facts = tell(messages);
  expect(facts.map(({ bank_reference, amount }) => [bank_reference, amount])).toEqual(expected);
});

test('each credit has a report with its amount, under one id', () => {
  const credits = tell([[['notification', 'A', 400]], [['notification', null, 600]]]);
  const reports = buildPaymentReports({ _id: PAYMENT, credits });
  const payment = { resource: 'payment', resource_id: PAYMENT, name: 'settled' };
  const facts = { occurred_at: 'then', currency: 'EUR', value_date: TEST_DAY };
  expect(reports).toEqual([
    {
      ...payment,
      callback: {
        ...{ ...facts, callback_id: `sepa:credited:${PAYMENT}:A:400EUR` },
        ...{ amount: 400, bank_reference: 'A' },
      },
    },
    {
      ...payment,
      callback: { ...facts, callback_id: `sepa:credited:${PAYMENT}::600EUR`, amount: 600 },
    },
  ]);
});
