import { isValidIBAN } from 'ibantools';
import {
  type BankDecision,
  decideMovements,
  type Movement,
  sandboxIban,
} from '../../src/domain/banks/sandbox';
import { CURRENCIES } from '../../src/domain/money/money';

const NAMED = { bank_reference: 'other reference' };
const USD = { currency: 'USD' };

/** Decisions about one resource, in order, by name or by name and fields. */
type Step = BankDecision['name'] | [BankDecision['name'], Partial<BankDecision>];

function moved(resource: BankDecision['resource'], steps: readonly Step[]): number[][] {
  const book: Movement[] = [];
  return steps.map((step) => {
    const [name, change] = typeof step === 'string' ? [step, {}] : step;
    const facts = { resource, resource_id: 'r', bank_reference: 'own', amount: 1_000 };
    const decision = { ...facts, currency: 'EUR', name, ...change };
    const amounts = decideMovements(decision, book);
    book.push(...amounts.map((amount) => ({ ...decision, amount })));
    return amounts;
  });
}

const DISPUTED: Step[] = [
  ['dispute_opened', { ...NAMED, amount: 1_015 }],
  'dispute_lost',
  ['dispute_opened', { amount: 200, bank_reference: 'another reference' }],
  ['dispute_won', { amount: 900 }],
];

test.each<[BankDecision['resource'], Step[], number[][]]>([
  ['payment', ['authorized', 'settled', 'settled', 'expired'], [[], [1_000], [], []]],
  ['payment', ['settled', ['settled', NAMED]], [[1_000], [1_000]]],
  ['payment', [['settled', { amount: 900 }], 'clawed_back', 'failed'], [[900], [-900], []]],
  [
    'payment',
    ['dispute_opened', 'settled', ...DISPUTED],
    [[], [1_000], [-1_015], [], [-200], [900]],
  ],
  ['payment', ['failed', 'settled', 'reversed', 'reversed'], [[], [1_000], [-1_000], []]],
  ['payment', ['settled', 'reversed', 'reversal_failed'], [[1_000], [-1_000], [1_000]]],
  ['payment', ['settled', 'reversal_failed'], [[1_000], []]],
  [
    'payment',
    [
      ['settled', USD],
      ['reversed', NAMED],
      ['reversed', USD],
    ],
    [[1_000], [], [-1_000]],
  ],
  ['refund', ['failed', 'settled', 'settled', 'failed'], [[], [-1_000], [], [1_000]]],
  ['refund', ['settled', ['settled', NAMED]], [[-1_000], [-1_000]]],
  ['payout', ['submitted', 'sent', 'completed', 'failed'], [[], [-1_000], [], [1_000]]],
  ['payout', ['completed', ['returned', { amount: 400 }]], [[-1_000], [400]]],
  ['payout', ['returned', 'returned'], [[-1_000, 1_000], []]],
  ['payout', ['sent', 'failed', 'completed'], [[-1_000], [1_000], [-1_000]]],
])('the sandbox bank posts for a %s with the decisions %j the amounts %j', (...row) => {
  const [resource, steps, amounts] = row;
  expect(moved(resource, steps)).toEqual(amounts);
});

test('each currency has a valid IBAN of its own', () => {
  const ibans = CURRENCIES.map(sandboxIban);
  expect(ibans.filter((iban) => !isValidIBAN(iban))).toEqual([]);
  expect(new Set(ibans).size).toBe(CURRENCIES.length);
  expect(sandboxIban('EUR')).toMatch(/^DE\d{2}999999990000143027$/);
});
