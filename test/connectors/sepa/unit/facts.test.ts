import { addCredits } from '../../../../connectors/sepa/credits';
import { changeLine } from '../../../../connectors/sepa/movements';
import { buildPaymentReports, buildReports } from '../../../../connectors/sepa/reporting';
import type { LineMovement, SepaLine } from '../../../../src/service/sepa/book';

const ID = '7b1e2c90-6a41-4c65-9a0b-2f64d50cf0aa';
const MONEY = { currency: 'EUR', value_date: '2026-10-05' };

const createReporter =
  (source: 'interbank' | 'notification' | 'statement') =>
  (bank_reference: string | null, amount = 1_000) => ({ ...MONEY, source, bank_reference, amount });
const bank = createReporter('interbank');
const note = createReporter('notification');
const stmt = createReporter('statement');
type Messages = readonly (readonly ReturnType<typeof bank>[])[];

/** Applies messages one after the other, each of them again as after a kill. */
function applyAll<F>(
  messages: Messages,
  empty: F,
  apply: (facts: F, message: Messages[number], at: string) => F | undefined,
): F {
  return messages.reduce((facts, message) => {
    const changed = apply(facts, message, 'then') ?? facts;
    expect(apply(changed, message, 'later')).toBeUndefined();
    return changed;
  }, empty);
}

const applyCredits = (messages: Messages) =>
  applyAll<LineMovement[]>(messages, [], (facts, message, at) => {
    const credits = message.map((movement) => ({ ...movement, reference: 'RF18' }));
    return addCredits(facts, credits, at);
  });

type Facts = Pick<SepaLine, 'state' | 'booked' | 'returned' | 'others'>;
const EMPTY: Facts = { state: 'in_file', booked: null, returned: null, others: [] };

const applyMovements = (kind: 'booked' | 'returned', messages: Messages) =>
  applyAll(messages, EMPTY, (facts, message, at) => {
    const movements = message.map((movement) => ({ ...movement, payout_id: ID, kind, code: null }));
    const change = changeLine(facts, movements, at);
    return change && { ...facts, ...change };
  });

test.each<[string, Messages, string[]]>([
  ['one in two messages', [[note('A')], [stmt('A')]], ['A 1000']],
  ['an interbank return', [[bank('R')], [note('A')], [stmt('A')]], ['R 1000']],
  ['one whose references differ', [[note('A')], [stmt('X')]], ['A 1000']],
  ['one without a reference', [[note(null)], [stmt('X')]], ['null 1000']],
  ['one that loses its reference', [[stmt('X')], [note(null)]], ['X 1000']],
  ['one that is repeated without its reference', [[note('A')], [note(null)]], ['A 1000']],
  ['a second in the same kind of message', [[note('A')], [note('B')]], ['A 1000', 'B 1000']],
  ['two at once', [[stmt('A'), stmt('B')]], ['A 1000', 'B 1000']],
  [
    'two in both',
    [
      [note('A'), note('B')],
      [stmt('B'), stmt('A')],
    ],
    ['A 1000', 'B 1000'],
  ],
  ['the new one first', [[note('A')], [stmt('B'), stmt('A')]], ['A 1000', 'B 1000']],
  ['new names', [[note('A')], [note('B')], [stmt('X'), stmt('Y')]], ['A 1000', 'B 1000']],
  ['another amount, the same reference', [[note('A')], [stmt('A', 900)]], ['A 1000', 'A 900']],
  ['a part, and the rest', [[note('A', 400)], [note('B', 600)]], ['A 400', 'B 600']],
])('each movement counts once, whichever messages report it: %s', (_, messages, expected) => {
  const describeFacts = (facts: readonly (LineMovement | null)[]) =>
    facts.map((fact) => `${fact?.bank_reference} ${fact?.amount}`);
  expect(describeFacts(applyCredits(messages))).toEqual(expected);
  for (const kind of ['booked', 'returned'] as const) {
    const { [kind]: first, others, state } = applyMovements(kind, messages);
    expect(describeFacts([first, ...others])).toEqual(expected);
    expect(new Set([state, ...others.map((other) => other.kind)])).toEqual(new Set([kind]));
  }
});

test('each credit of a payment is reported with its amount, under one id', () => {
  const credits = applyCredits([[note('A', 400)], [note(null, 600)]]);
  const payment = { resource: 'payment', resource_id: ID, name: 'settled' };
  const facts = { ...MONEY, occurred_at: 'then' };
  const named = { callback_id: `sepa:credited:${ID}:A:400EUR`, amount: 400, bank_reference: 'A' };
  const nameless = { callback_id: `sepa:credited:${ID}::600EUR`, amount: 600 };
  expect(buildPaymentReports({ _id: ID, credits })).toEqual([
    { ...payment, callback: { ...facts, ...named } },
    { ...payment, callback: { ...facts, ...nameless } },
  ]);
});

const LINE = { _id: ID, amount: 1_000, currency: 'EUR', booked: null, returned: null, others: [] };
const at = '2026-10-05T10:00:00.000Z';

test('each fact of a payout is reported under one id, in the order of the facts', () => {
  const booked = { ...MONEY, at, amount: 1_000, bank_reference: 'B-1', references: [], code: null };
  const returned = { ...booked, amount: 990, code: 'AC04', value_date: null };
  const reports = buildReports({ ...LINE, booked, returned, failure: null });
  const facts = { occurred_at: at, bank_reference: 'B-1' };
  const returnedFacts = { ...facts, amount: 990, currency: 'EUR', code: 'AC04' };
  const reason = 'The recipient’s bank sent the transfer back.';
  expect(reports.map(({ name, callback }) => [name, callback])).toEqual([
    ['completed', { ...facts, callback_id: `sepa:booked:${ID}`, value_date: '2026-10-05' }],
    ['returned', { ...returnedFacts, callback_id: `sepa:returned:${ID}`, reason }],
  ]);
});

test('a rejection without a code is reported without one, so that the service names its own', () => {
  const failure = { code: null, message: 'The bank rejected the transfer.', at };
  expect(buildReports({ ...LINE, failure })).toEqual([
    {
      resource: 'payout',
      resource_id: ID,
      name: 'failed',
      callback: { callback_id: `sepa:failed:${ID}`, occurred_at: at, reason: failure.message },
    },
  ]);
});
