import { randomUUID } from 'node:crypto';
import type { PaymentCallbackName } from '../../../src/domain/callback/callback';
import type { PaymentAct } from '../../../src/domain/payment/payment';
import { reverseOperation } from '../../../src/service/money/balances/act';
import { breakBook } from '../../support/book';
import { saveHistory } from '../../support/histories';
import { describeMovement } from '../../support/movements';
import { fund, openRefund, refundInput, scriptedBank } from '../../support/workflow-setting';
import { ACT, type TrackedPayment, useLifecycles } from '../lifecycles';

const { setting, buildDeps, withPayment } = useLifecycles();

/** A report of the bank, or an act of an operator or the merchant. */
type Step = [
  what: PaymentCallbackName | `act ${PaymentAct}` | 'refund' | 'spend' | 'reverse',
  facts: { amount?: number | null; operation_id?: string; [fact: string]: unknown },
  /** Part of the refusal, or of the balances and the payment then. */
  expected?: string | Partial<Awaited<ReturnType<typeof readState>>>,
];

async function readState({ money, stored }: TrackedPayment) {
  const { attention, disputed_at } = await stored();
  return { ...(await money()), attention, disputed_at };
}

async function play(payment: TrackedPayment, [what, facts]: Step): Promise<unknown> {
  const { id, input } = payment;
  const { amount = null, operation_id } = facts;
  const [, act] = what.split('act ');
  if (act !== undefined) return await payment.actAfterEnd(act, { ...ACT, ...facts });
  switch (what) {
    case 'refund':
      return await openRefund(setting, refundInput(input, { amount }));
    case 'spend':
      return await fund(setting, input, -(amount ?? 0));
    case 'reverse': {
      const operation = ['payment_clawed_back', id, operation_id].filter(Boolean).join(':');
      const reversed = await reverseOperation(buildDeps(), operation, ACT);
      return expect(reversed).toMatchObject(amount === null ? {} : { amount });
    }
    default:
      return await payment.report(what as PaymentCallbackName, facts);
  }
}

/** Settles a payment of 1,050, runs the steps of its disputes, and verifies the ledger. */
const withSteps = (steps: Step[], story: (payment: TrackedPayment) => Promise<void>) =>
  withPayment(scriptedBank(), async (payment) => {
    await payment.endBy('settled');
    for (const step of steps) {
      const [, , expected] = step;
      if (typeof expected === 'string') {
        const error = await play(payment, step).catch((failure: unknown) => failure);
        const { type, code = type, message } = Object(Object(error).cause ?? error);
        expect(`${code}: ${message}`).toContain(expected);
      } else {
        await play(payment, step);
        expect(await readState(payment)).toMatchObject(expected ?? {});
      }
    }
    await story(payment);
    expect(await payment.differences()).toEqual([]);
  });

test('a dispute whose entry MongoDB refuses is shown to operators, and not tried again', () =>
  withPayment(scriptedBank(), async (payment) => {
    await payment.endBy('settled');
    await play(payment, ['spend', { amount: 1 }]);
    const correct = await breakBook(setting.stores, `${payment.account_id}:sandbox:EUR`);
    await payment.report('dispute_opened', FIRST);
    await payment.becomes({ attention: 'books_refused' });
    await payment.shows('The books refuse payment_dispute_opened: ');
    await payment.shows('This is a fault of the service: report it');
    expect(await payment.actAfterEnd('acknowledge', ACT)).toMatchObject({ status: 'settled' });
    const refused = payment.actAfterEnd('claw_back', ACT).catch((error: unknown) => error);
    expect(await refused).toMatchObject({ cause: { type: 'books_refused' } });
    await correct();
    await payment.report('dispute_opened', { ...FIRST, callback_id: randomUUID() });
    await payment.becomes({ attention: null });
    expect(await payment.stored()).toMatchObject({ disputes: [{ id: 'D1', state: 'opened' }] });
    expect(await payment.differences()).toEqual([]);
  }));

const NAMED = { bank_reference: 'W-1' };
const FIRST = { dispute_id: 'D1', amount: 400, currency: 'EUR', fee: 15, ...NAMED };
const WON = { dispute_id: 'D2', amount: 300, currency: 'EUR' };
const [DISPUTED, TOO_MUCH] = ['payment_disputed', 'refund_amount_exceeds_balance'];

const OPENED: Step = ['dispute_opened', { dispute_id: 'D1', amount: 400, fee: 15 }];

// What differs is in test/domain/dispute.test.ts.
test('a dispute that differs changes nothing and waits for an operator', () =>
  withSteps([], async (payment) => {
    const balances = await payment.money();
    await play(payment, ['dispute_opened', { amount: 1_051 }]);
    const unchanged = { ...balances, attention: 'dispute_differs', disputed_at: undefined };
    expect(await readState(payment)).toEqual(unchanged);
    expect((await payment.stored()).disputes).toBeUndefined();
    expect(await payment.unapplied()).toEqual([expect.stringContaining('1050 is left')]);
    await saveHistory(payment.handle, 'payment-dispute-differs');
  }));

test.each([
  ['failed', 'failed_after_settled'],
  ['clawed_back', 'clawed_back'],
] as const)('a settled payment that the bank reports as %s cannot be refunded', (name, attention) =>
  withSteps(
    [
      [name, {}, { available: 1_050 }],
      ['refund', { amount: 1 }, DISPUTED],
    ],
    async ({ handle, stored }) => {
      const disputed = { status: 'settled', attention, disputed_at: expect.any(String) };
      expect(await stored()).toMatchObject(disputed);
      await saveHistory(handle, `payment-disputed-${name.replace('_', '-')}`);
    },
  ),
);

const POSTED = 'posted already';

interface Row {
  title: string;
  steps: Step[];
  stored: object;
  entries?: string[];
  /** In words, after that of the payment. */
  movements?: unknown[];
  unapplied?: string[];
}

test.each<Row>([
  {
    title: 'several disputes each debit their amount and fee at once, and what is won is credited',
    steps: [
      ['dispute_opened', FIRST, { available: 635, clearing: -635 }],
      ['dispute_opened', FIRST, { available: 635, clearing: -635 }],
      ['refund', { amount: 1 }, DISPUTED],
      ['spend', { amount: 600 }],
      ['dispute_opened', { dispute_id: 'D2', amount: 300 }, { available: 0, receivable: -265 }],
      ['dispute_lost', { dispute_id: 'D1' }],
      ['refund', { amount: 1 }, DISPUTED],
      ['dispute_won', WON, { available: 300, receivable: -265 }],
      ['dispute_won', WON, { available: 300, receivable: -265 }],
      ['refund', { amount: 651 }, TOO_MUCH],
      ['refund', { amount: 300 }],
    ],
    stored: {
      attention: null,
      disputes: [
        { id: 'D1', amount: 400, fee: 15, held: 415, owed: 0, state: 'lost' },
        { id: 'D2', amount: 300, fee: 0, held: 35, owed: 265, state: 'won', won: 300 },
      ],
    },
    entries: [
      'payment_settled:ID',
      'payment_dispute_opened:ID:D1',
      'payment_dispute_opened:ID:D2',
      'payment_dispute_won:ID:D2',
    ],
    movements: ['out W-1 415 applied', 'out - 300 applied', 'in - 300 applied'],
    unapplied: ['dispute_opened', 'dispute_won'].map(
      (name) => `${name}: the dispute is posted already`,
    ),
  },
  {
    title: 'a chargeback debits the balance once, and the merchant owes what the balance lacks',
    steps: [
      ['refund', { amount: 300 }],
      ['act claw_back', { amount: 1_051 }, 'has brought 1050'],
      ['act claw_back', {}, { available: 0, receivable: -300 }],
      ['act claw_back', {}, POSTED],
      ['refund', { amount: 1 }, DISPUTED],
    ],
    stored: {
      ...{ status: 'settled', transition: 4, attention: null, disputed_at: expect.any(String) },
      disputes: [{ kind: 'clawed_back', amount: 1_050, held: 750, owed: 300, state: 'lost' }],
      audit: [{ who: 'ada', what: 'claw_back', why: ACT.reason }],
    },
    entries: ['payment_settled:ID', 'payment_clawed_back:ID'],
  },
  {
    title: 'a chargeback comes in parts, each posted once, up to the amount of the payment',
    steps: [
      ['clawed_back', {}],
      ['act claw_back', { amount: 400, operation_id: 'part-1' }],
      ['act claw_back', { amount: 400, operation_id: 'part-1' }],
      ['act claw_back', { amount: 500, operation_id: 'part-1' }, 'wrong_state'],
      [
        'act claw_back',
        { amount: 300, operation_id: 'part-2' },
        { available: 350, clearing: -350 },
      ],
      ['act claw_back', { amount: 351 }, '1050, and 700 is taken back'],
      ['refund', { amount: 351 }, TOO_MUCH],
      ['refund', { amount: 50 }],
      ['act claw_back', {}],
      ['act claw_back', {}, POSTED],
      ['refund', { amount: 1 }, DISPUTED],
    ],
    stored: { attention: null },
    entries: [
      'payment_settled:ID',
      'payment_clawed_back:ID',
      'payment_clawed_back:ID:part-2',
      expect.stringMatching(/^payment_clawed_back:ID:/),
    ],
  },
  {
    title: 'an operator lifts a dispute, of several one by its id, and refunds are possible again',
    steps: [
      ['act dispute_won', {}, 'wrong_state: The payment is not disputed.'],
      ['clawed_back', {}],
      ['act dispute_won', {}, { attention: null, disputed_at: null }],
      ['refund', { amount: 50 }],
      ['act claw_back', { amount: 400 }],
      OPENED,
      ['act dispute_won', {}, 'several disputes'],
      ['act dispute_won', { dispute_id: 'D2' }, 'no dispute D2'],
      ['act dispute_won', { dispute_id: 'D1', fee: 16 }, 'is 15'],
      ['dispute_lost', { dispute_id: 'D1' }, { available: 185 }],
      ['act dispute_won', { dispute_id: 'D1', fee: 15 }, { available: 600 }],
      ['act dispute_won', { dispute_id: 'D1' }, 'no dispute D1'],
      ['act dispute_won', {}, { available: 1_000, clearing: -1_050 }],
      ['refund', { amount: null }],
    ],
    stored: { attention: null, disputed_at: null, refunded: 1_050 },
  },
  {
    title:
      'a chargeback after a dispute names its amount, since the bank may report the same money',
    steps: [
      OPENED,
      ['clawed_back', {}, { attention: 'clawed_back' }],
      ['act claw_back', {}, 'Disputes have taken 400 already'],
      ['act claw_back', { amount: 650 }, { attention: null }],
    ],
    stored: { disputes: [{ kind: 'dispute_opened' }, { kind: 'clawed_back', amount: 650 }] },
  },
  {
    title: 'a chargeback is reversed once, which pays what the merchant still owes',
    steps: [
      ['spend', { amount: 1_000 }],
      ['act claw_back', {}, { available: 0, receivable: -1_000 }],
      ['reverse', { amount: 1_050 }, { available: 50, receivable: 0, clearing: -1_050 }],
      ['reverse', { amount: 1_050 }, { available: 50, receivable: 0, clearing: -1_050 }],
      ['act dispute_won', {}, 'wrong_state: The payment is not disputed.'],
      ['refund', { amount: 1 }],
      ['act claw_back', { amount: 100, operation_id: 'again' }],
      ['act dispute_won', {}],
    ],
    stored: {
      disputes: [
        { state: 'won', is_reversed: true },
        { amount: 100, state: 'won' },
      ],
    },
    movements: [1_050, 100].flatMap((sum) => [`out - ${sum} applied`, `in - ${sum} applied`]),
  },
])('$title', ({ steps, stored, entries, movements, unapplied }) =>
  withSteps(steps, async (payment) => {
    const { id, handle } = payment;
    expect(await payment.stored()).toMatchObject(stored);
    const written = await setting.stores.ledger.forResource(id);
    const ids = written.map(({ _id }) => _id.replace(id, 'ID'));
    expect(ids).toEqual(entries ?? ids);
    const [, ...moved] = (await setting.stores.movements.forResource(id)).map(describeMovement);
    expect(moved).toEqual(movements ?? moved);
    if (unapplied === undefined) return;
    expect(await payment.unapplied()).toEqual(unapplied);
    await saveHistory(handle, 'payment-disputes');
  }),
);
