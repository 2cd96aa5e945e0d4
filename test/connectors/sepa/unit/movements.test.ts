import type { Movement } from '../../../../connectors/sepa/messages';
import { changeLine } from '../../../../connectors/sepa/movements';
import type { SepaLine } from '../../../../src/service/sepa/book';

type Facts = Pick<SepaLine, 'state' | 'booked' | 'returned' | 'others'>;
type Told = [source: Movement['source'], bank_reference: string | null, amount?: number];

const EMPTY: Facts = { state: 'in_file', booked: null, returned: null, others: [] };

/** Applies messages one after the other, each again as after a kill. */
function tell(kind: Movement['kind'], messages: readonly (readonly Told[])[]): Facts {
  let facts = EMPTY;
  for (const message of messages) {
    const movements = message.map(([source, bank_reference, amount = 1_000]) => ({
      ...{ payout_id: 'p', kind, source, amount, currency: 'EUR', value_date: null },
      ...{ bank_reference, code: null },
    }));
    facts = { ...facts, ...changeLine(facts, movements, 'then') };
    expect(changeLine(facts, movements, 'later')).toBeUndefined();
  }
  return facts;
}

test.each<[string, readonly (readonly Told[])[], string[]]>([
  ['one in three messages', [[['notification', 'A']], [['statement', 'A']]], []],
  ['one whose references differ', [[['notification', 'A']], [['statement', 'X']]], []],
  ['one without a reference', [[['notification', null]], [['statement', 'X']]], []],
  ['one that loses its reference', [[['statement', 'X']], [['notification', null]]], []],
  [
    'an interbank return',
    [[['interbank', 'R']], [['notification', 'A']], [['statement', 'A']]],
    [],
  ],
  [
    'a second in the same kind of message',
    [[['notification', 'A']], [['notification', 'B']]],
    ['B'],
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
    ['B'],
  ],
  [
    'two that each kind names differently',
    [
      [['notification', 'A']],
      [['notification', 'B']],
      [
        ['statement', 'X'],
        ['statement', 'Y'],
      ],
    ],
    ['B'],
  ],
  [
    'another amount, the same reference',
    [[['notification', 'A']], [['statement', 'A', 900]]],
    ['A'],
  ],
  [
    'two at once',
    [
      [
        ['statement', 'A'],
        ['statement', 'B'],
      ],
    ],
    ['B'],
  ],
])('%s: what is further is known', (_what, messages, further) => {
  for (const kind of ['booked', 'returned'] as const) {
    const { [kind]: first, others, state } = tell(kind, messages);
    expect([first?.amount, state]).toEqual([1_000, kind]);
    expect(others.map((other) => [other.kind, other.bank_reference])).toEqual(
      further.map((reference) => [kind, reference]),
    );
  }
});
