import { createMovements } from '../../../activities/movements';
import { inTransaction } from '../../../src/base/mongo';
import { applyMovements } from '../../../src/movements/register';
import { breakBook } from '../../support/book';
import { eventually } from '../../support/eventually';
import { gate } from '../../support/gate';
import { saveHistory } from '../../support/histories';
import { readAccountRows } from '../../support/trial-balance';
import { openPayment, paymentInput, scriptedBank } from '../../support/workflow-setting';
import { ACT, isAt, shows, type TrackedPayment, trackPayment } from '../lifecycles';
import { by, MAIN, type Row, type Step, useMovementStories } from '../movement-stories';

/**
 * Holds docs/ledger.md#bank-movements and #money-that-goes-wrong for payments of 1,050. Tests that
 * leave an instruction without an answer are last: those hold the clock.
 */
const { setting, buildDeps, withPayment, withStatus, playFrom, playAll, report } =
  useMovementStories();
const readMovements = (id: string) => setting.stores.movements.forResource(id);

const SETTLED = { [MAIN]: 1_050, clearing: -1_050 };

/** Builds the trial balance of a merchant whose only money is in suspense. */
function buildHeld(amount: number, currency = 'EUR'): Record<string, number> {
  const unit = currency === 'EUR' ? '' : ` ${currency}`;
  return { [`suspense.late${unit}`]: amount, [`clearing${unit}`]: -amount };
}

const odd = (amount: number, more: object = {}): Step => [
  ...(['settled', by('odd', amount, more), 'amount_differs'] as const),
];
const SECOND: Step = ['settled', by('second', 700), 'second_settlement'];
const SENT_BACK = 'late_settlement_reversed';
const NOT_SENT_BACK = 'late_settlement_not_reversed';
const INSTRUCTED_ONCE =
  'refused: and is not instructed again. If the customer does not get the money, return it';
const HELD = 'payment_held';

const [DISPUTED, TOO_MUCH] = ['payment_disputed', 'refund_amount_exceeds_balance'].map(
  (code) => `refused: ${code}`,
);

describe('a payment', () => {
  const KEPT = { 'income.acquirer_fees': 40, clearing: -1_050 };
  const ALL_KEPT = { 'income.acquirer_fees': 1_050, clearing: -1_050 };

  /** Later than this server's clock gets, and within 90 days of each report. */
  const dayIn = (days: number) =>
    new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10);
  const LATER = { available_on: dayIn(85) };
  const DUE = `due.main.${LATER.available_on}`;

  // Who bears a fee of what comes in time is in test/api/payments-and-payouts.test.ts.
  test.each<Row>([
    {
      title: 'with a different amount in suspense stays open until that is returned',
      steps: [
        odd(1_049, { value_date: '2026-03-01' }),
        ['sleep', '31 minutes'],
        ['cancel', { by: 'merchant' }, 'refused: cannot_cancel: Money of the payment is in'],
        ['reversed', { amount: 1_049 }, 'expired clear', {}],
        ['save', 'payment-receipt-reversed-expired'],
      ],
      movements: [
        {
          ...{ value_date: '2026-03-01', reason: 'amount_differs', state: 'resolved' },
          resolutions: [{ as: 'customer', amount: 1_049, operator: null }],
        },
        'out - 1049 applied',
      ],
      entries: [{ kind: HELD, value_date: '2026-03-01' }, { kind: 'payment_resolved' }],
    },
    {
      title: 'keeps the attention reason of a different amount over the true settlement',
      steps: [
        odd(1_049),
        ['settled', { amount: 1_050 }, 'settled'],
        ['save', 'payment-amount-differs-unread'],
      ],
    },
    {
      title: 'keeps the attention reason of a different amount over a malformed callback',
      steps: [
        odd(1_049),
        ['malformed', 'settled'],
        ['settled', { amount: 1_050 }, 'settled'],
        ['save', 'payment-malformed-under-mark'],
      ],
    },
    {
      title: 'whose authorization has a different amount needs attention, and nothing is posted',
      steps: [
        ['authorized', { amount: 1_051, currency: 'EUR' }, 'amount_differs', {}],
        ['mark_failed', {}, 'failed clear'],
      ],
      kinds: [],
    },
    ...[[{}, 999, []] as const, [{ amount: 1_050 }, 1_050, ['in - 51 applied']] as const].map(
      ([facts, settled_amount, more]): Row => {
        const credited = { [MAIN]: settled_amount, clearing: -settled_amount };
        return {
          title: `has a different amount posted once, whatever is reported, until an operator credits ${settled_amount}`,
          steps: [
            odd(999),
            odd(999),
            ...(['settled', 'authorized', 'expired'] as const).map((name): Step => [name, {}]),
            ['acknowledge', {}, 'refused: money_in_suspense', buildHeld(999)],
            ['mark_settled', facts, 'settled clear', credited],
            // The bank repeats the same money, now that the payment is settled.
            ['settled', by('odd', 999), '', credited],
            ['refund', { amount: settled_amount + 1 }, TOO_MUCH],
            ['refund', { amount: null }],
            ['save', 'payment-amount-differs'],
          ],
          movements: ['in odd 999 applied', ...more],
          kinds: [HELD, 'payment_settled'],
          stored: { amount: 1_050, settled_amount, refunded: settled_amount },
        };
      },
    ),
    {
      title: 'is credited nothing where all of it is the fee, and more than that is never borne',
      steps: [
        ['bear', 'merchant'],
        ['settled', by('A', 1_050, { fee: 1_051 }), 'settled', ALL_KEPT],
      ],
    },
    {
      title: 'whose merchant bore fees when a different amount came bears this one when credited',
      steps: [
        ['bear', 'merchant'],
        odd(999, { fee: 40 }),
        ['bear', 'service'],
        ['mark_settled', { amount: 1_050 }, 'settled clear', { [MAIN]: 1_010, ...KEPT }],
      ],
    },
    {
      title: 'whose service bore fees when a different amount came is credited all of it',
      steps: [
        odd(999, { fee: 40 }),
        ['bear', 'merchant'],
        ['mark_settled', {}, 'settled clear', { [MAIN]: 999, clearing: -999 }],
      ],
    },
    {
      title: 'of a different amount is pending until the last day that the bank said of it',
      steps: [
        odd(999, { available_on: dayIn(84) }),
        ['settled', by('more', 51, LATER), 'amount_differs'],
        ['mark_settled', {}, 'settled clear', { [DUE]: 1_050, clearing: -1_050 }],
      ],
    },
  ])('$title', playFrom('awaiting_customer'));

  const TWO_KEPT = { 'income.acquirer_fees': 40, clearing: -1_750 };
  const PART_LATER = { [MAIN]: 1_050, [DUE]: 160, 'suspense.late': 500, ...TWO_KEPT };
  const PART_LOST = { [MAIN]: 1_610, 'external.adjustments': 100, ...TWO_KEPT };
  const PART_LEFT = { ...PART_LOST, [MAIN]: 1_210, 'suspense.late': 400 };

  test.each<Row>([
    {
      title: 'that settles twice has the second in suspense, until the customer has it back',
      steps: [
        SECOND,
        ['clawed_back', {}],
        ['claw_back', {}],
        SECOND,
        ['mark_reversed', {}, 'clear'],
        ['save', 'payment-second-settlement'],
      ],
      movements: [
        ...['in first 1050 applied', 'in second 700 resolved', 'out - 1050 applied'],
        'out - 700 applied',
      ],
    },
    {
      title: 'has money in suspense sent back by the bank, which reports it',
      steps: [
        SECOND,
        ['resolve_movement', { as: 'customer' }, SENT_BACK],
        ['reversed', by('back', 700), 'clear', SETTLED],
        ['save', 'payment-resolved-as-customer'],
      ],
      movements: [
        'in first 1050 applied',
        { resolutions: [{ as: 'customer', amount: 700, operator: null }] },
        'out back 700 applied',
      ],
      instructions: ['reversal:second'],
    },
    {
      title: 'whose bank refuses to send money in suspense back has it shown until it is back',
      steps: [
        SECOND,
        ['resolve_movement', { as: 'customer' }, NOT_SENT_BACK],
        ['resolve_movement', { as: 'customer' }, INSTRUCTED_ONCE],
        ['claw_back', {}, NOT_SENT_BACK],
        ['act dispute_won', {}, NOT_SENT_BACK],
        ['mark_reversed', {}, 'clear', SETTLED],
      ],
      bank: { reversePayment: async () => ({ outcome: 'refused', code: 'no', message: 'No.' }) },
      instructions: ['reversal:second'],
    },
    {
      title: 'has out of suspense what is sent back, and no older movement of this amount',
      steps: [
        SECOND,
        ['settled', by('third', 700)],
        ['resolve_movement', { as: 'customer', movement: 'third' }, SENT_BACK],
        ['reversed', by('back', 700), 'second_settlement'],
      ],
      movements: [
        ...['in first 1050 applied', 'in second 700 suspense'],
        ...['in third 700 resolved', 'out back 700 applied'],
      ],
    },
    {
      title: 'that settles twice has the second fee in the first part that is credited',
      steps: [
        ['bear', 'merchant'],
        ['settled', by('second', 700, { fee: 40 }), 'second_settlement'],
        ['resolve_movement', { as: 'loss', amount: 100 }],
        ['resolve_movement', { as: 'merchant', amount: 200 }, '', PART_LEFT],
        ['resolve_movement', { as: 'merchant' }, 'clear', PART_LOST],
      ],
    },
    {
      title: 'whose merchant has what came twice has it from the day that the bank said',
      steps: [
        ['bear', 'merchant'],
        ['settled', by('second', 700, { fee: 40, ...LATER }), 'second_settlement'],
        ['resolve_movement', { as: 'merchant', amount: 200 }, '', PART_LATER],
        ['resolve_movement', { as: 'loss' }, 'clear'],
      ],
    },
    // Which account each books to is in test/cli/operators.test.ts.
    ...['merchant', 'bank', 'loss', 'never_happened'].map(
      (as): Row => ({
        title: `has money in suspense resolved as ${as} part by part`,
        steps: [
          SECOND,
          ['resolve_movement', { as, amount: 300, movement: 'second' }],
          ['resolve_movement', { as, amount: 401 }, 'refused: wrong_state: Of the movement mv_'],
          ['resolve_movement', { as }, 'clear'],
          ['save', `payment-resolved-as-${as}`],
        ],
        movements: [
          ...['in first 1050 applied', 'in second 700 resolved'],
          ...(as === 'bank' ? ['out - 300 applied', 'out - 400 applied'] : []),
        ],
      }),
    ),
  ])('$title', playFrom('settled'));
});

test('one reference of the bank settles each of two payments that came under it', () =>
  withStatus.awaiting_customer(async (payment) => {
    const input = paymentInput(payment.input.connector);
    const { handle } = await openPayment(setting, input);
    const both = [payment, trackPayment(setting, input, handle)];
    // A wait for a result skips time, in which the other one would expire.
    for (const { signal } of both) await signal('settled', by('first'));
    for (const each of both) {
      expect(await each.handle.result()).toMatchObject({ status: 'settled' });
      await each.report('settled', by('first'));
      expect(await each.attention()).toBeNull();
      expect(await each.differences()).toEqual([]);
    }
    const rows = (await Promise.all(both.map(({ id }) => readMovements(id)))).flat();
    expect(rows).toMatchObject(Array(2).fill({ bank_reference: 'first', state: 'applied' }));
    expect(rows.filter(({ names }) => names.includes('first'))).toHaveLength(1);
  }));

const ONE = by('one');

/** Changes the record behind its workflow. */
const changes = {
  recordReturn: async (resource_id: string) => {
    const { version = 0, transition = 0 } = (await setting.stores.payments.get(resource_id)) ?? {};
    const source = { kind: 'callback', id: `back-${resource_id}` } as const;
    const about = { kind: 'payment', resource_id, at: new Date().toISOString() } as const;
    const sent = { source, direction: 'out' } as const;
    await createMovements(buildDeps()).recordReturn({
      ...about,
      report: sent,
      version,
      transition,
    });
  },
  creditMovements: async (id: string) => {
    const taken = (await readMovements(id)).map(({ _id, amount }) => ({ id: _id, amount }));
    await inTransaction(setting.mongo, (session) =>
      applyMovements(setting.stores, id, taken, session),
    );
  },
};
const outdatedBy = (change: keyof typeof changes): Row['bank'] => ({
  reversePayment: async ({ payment_id }) => {
    await changes[change](payment_id);
    return { outcome: 'outdated' };
  },
});

describe('late funds', () => {
  test.each<Row>([
    {
      title: 'are in suspense until the bank has returned them, and count once',
      steps: [
        ['settled', ONE, SENT_BACK, buildHeld(1_050)],
        // Sent again under the same id.
        ['settled', ONE, '', buildHeld(1_050)],
        ['reversed', { value_date: '2026-03-02' }, '', {}],
        ['reversed', {}, '', {}],
        ['save', 'payment-late-reversed'],
      ],
      movements: ['in one 1050 resolved', 'out - 1050 applied'],
      kinds: [HELD, 'payment_resolved'],
      instructions: ['reversal', 'reversal'],
    },
    {
      title: 'of two settlements wait for an amount that tells which is back',
      steps: [
        ['settled', ONE, SENT_BACK, buildHeld(1_050)],
        ['settled', by('two', 700), '', buildHeld(1_750)],
        ['reversed', {}, 'amount_differs', buildHeld(1_750)],
        ['reversed', by('back-two', 700), SENT_BACK, buildHeld(1_050)],
        ['reversed', by('back-two', 700), '', buildHeld(1_050)],
        ['reversed', by('back-one'), '', {}],
        ['settled', by('two', 700), '', {}],
      ],
      movements: [
        ...['in one 1050 resolved', 'in two 700 resolved'],
        ...['out back-two 700 applied', 'out back-one 1050 applied'],
      ],
      instructions: ['reversal', 'reversal:two'],
    },
    {
      title: 'go back whole, whoever bears fees',
      steps: [
        ['bear', 'merchant'],
        ['settled', by('late', 1_050, { fee: 40 }), SENT_BACK, buildHeld(1_050)],
        ['reversed', {}, '', {}],
      ],
    },
    {
      title: 'in another currency wait for an operator',
      steps: [['settled', { ...ONE, currency: 'USD' }, 'amount_differs', buildHeld(1_050, 'USD')]],
      movements: ['in one 1050 suspense'],
      instructions: [],
    },
    {
      title: 'that the bank returns before it reports that they came are posted once',
      steps: [
        ['reversed', by('back'), SENT_BACK, {}],
        ['settled', ONE, '', {}],
      ],
      movements: ['in one 1050 resolved', 'out back 1050 applied'],
      instructions: [],
    },
    {
      title: 'that the bank cannot return are returned by hand, and an operator records it',
      steps: [
        ['settled', ONE, SENT_BACK],
        ['reversal_failed', {}, NOT_SENT_BACK, buildHeld(1_050)],
        ['mark_reversed', {}, 'clear', {}],
      ],
      movements: ['in one 1050 resolved', 'out - 1050 applied'],
      stored: { audit: [{ who: 'ada', what: 'mark_reversed' }] },
    },
    {
      title:
        'that the bank accepted to return, and could not, are never said to be sent back again',
      steps: [
        ['settled', ONE, SENT_BACK],
        ['resolve_movement', { as: 'customer' }, INSTRUCTED_ONCE],
        ['reversal_failed', {}, NOT_SENT_BACK],
        ['resolve_movement', { as: 'customer' }, INSTRUCTED_ONCE, buildHeld(1_050)],
        ['mark_reversed', {}, 'clear', {}],
      ],
      stored: { audit: [{ who: 'ada', what: 'mark_reversed' }] },
      instructions: ['reversal'],
    },
    {
      title: 'of a late authorization that cannot be voided wait for the bank to tell their amount',
      steps: [
        ['authorized', {}, NOT_SENT_BACK, {}],
        ['settled', ONE, SENT_BACK, buildHeld(1_050)],
      ],
      bank: { voidPayment: async () => ({ outcome: 'already_settled' }) },
      movements: ['in one 1050 suspense'],
      instructions: ['void', 'reversal'],
    },
    {
      title: 'that only the record has as resolved, as after a reset, are not called refused',
      steps: [['settled', ONE, SENT_BACK]],
      bank: outdatedBy('recordReturn'),
      movements: ['in one 1050 resolved', 'out - 1050 applied'],
    },
    {
      title: 'that only the record has as applied, as after a reset, are not called reversed',
      steps: [['settled', ONE, 'clear']],
      bank: outdatedBy('creditMovements'),
      movements: ['in one 1050 applied'],
    },
  ])('$title', playFrom('cancelled'));

  test.each<Row>([
    {
      title: 'of a late authorization that cannot be voided are returned in their amount',
      steps: [
        ['authorized', {}, SENT_BACK, buildHeld(100)],
        // The bank's own report is of the same money.
        ['settled', by('one', 100), '', buildHeld(100)],
      ],
      bank: {
        voidPayment: async () => ({ outcome: 'already_settled', amount: 100, currency: 'EUR' }),
      },
      movements: ['in one 100 suspense'],
      kinds: [HELD],
      instructions: ['void', 'reversal', 'reversal'],
    },
  ])('$title', playFrom('expired'));
});

const FIRST = { dispute_id: 'D1', amount: 400, currency: 'EUR', fee: 15, bank_reference: 'W-1' };
const WON = { dispute_id: 'D2', amount: 300, currency: 'EUR' };
const ONE_OF_TWO: Step = ['dispute_opened', { dispute_id: 'D1', amount: 400, fee: 15 }];
const NO_DISPUTE = 'refused: wrong_state: The payment has no dispute D';
const POSTED = 'refused: wrong_state: The chargeback of the payment is posted already';
const SPENT = { 'external.adjustments': 615, 'receivable.merchant': -265 };
const REVERSED = { [MAIN]: 50, clearing: -1_050, 'external.adjustments': 1_000 };
const OWED = { ...REVERSED, [MAIN]: 100, clearing: -1_049, 'receivable.merchant': -51 };
const PART = { amount: 400, operation_id: 'part-1' };

describe('a settled payment', () => {
  test.each<Row>([
    {
      title: 'that the bank reports as failed cannot be refunded',
      steps: [
        ['failed', {}, 'failed_after_settled', SETTLED],
        ['refund', { amount: 1 }, DISPUTED],
        ['save', 'payment-disputed-failed'],
      ],
      stored: { disputed_at: expect.any(String) },
    },
    {
      title: 'that the bank reports as clawed back cannot be refunded',
      steps: [
        ['clawed_back', {}, 'clawed_back', SETTLED],
        ['refund', { amount: 1 }, DISPUTED],
        ['save', 'payment-disputed-clawed-back'],
      ],
      stored: { disputed_at: expect.any(String) },
    },
    {
      title: 'is debited for each of its disputes at once, with its fee, and credited what is won',
      steps: [
        ['dispute_opened', FIRST, '', { [MAIN]: 650, clearing: -650 }],
        ['dispute_opened', FIRST, '', { [MAIN]: 650, clearing: -650 }],
        ['refund', { amount: 1 }, DISPUTED],
        ['spend', 35],
        ['dispute_opened', { dispute_id: 'D2', amount: 300 }, '', { clearing: -350, ...SPENT }],
        ['dispute_lost', { dispute_id: 'D1' }],
        ['refund', { amount: 1 }, DISPUTED],
        ['dispute_won', WON, '', { [MAIN]: 300, clearing: -650, ...SPENT }],
        ['dispute_won', WON, '', { [MAIN]: 300, clearing: -650, ...SPENT }],
        ['refund', { amount: 651 }, TOO_MUCH],
        ['refund', { amount: 300 }],
        ['save', 'payment-disputes'],
      ],
      stored: { attention: null, disputed: 400, disputes_open: 0, refunded: 300 },
      disputes: ['D1 lost 400 15: out 400 held 400', 'D2 won 0 0: out 300 held 35, in 300 held 0'],
      entries: [
        ...['payment_settled:ID', 'payment_dispute_opened:ID:D1'],
        ...['payment_dispute_opened:ID:D2', 'payment_dispute_won:ID:D2'],
      ],
      movements: [
        ...['in first 1050 applied', 'out W-1 400 applied'],
        ...['out - 300 applied', 'in - 300 applied'],
      ],
      unapplied: ['dispute_opened', 'dispute_won'].map(
        (name) => `${name}: the dispute is posted already`,
      ),
    },
    {
      title: 'is debited for a chargeback once, and its merchant owes what the balance lacks',
      steps: [
        ['refund', { amount: 300 }],
        ['claw_back', { amount: 1_051 }, 'refused: wrong_state: The payment has brought 1050'],
        ['claw_back', {}, '', { 'receivable.merchant': -300, clearing: 300 }],
        ['claw_back', {}, POSTED],
        ['refund', { amount: 1 }, DISPUTED],
      ],
      stored: {
        ...{ status: 'settled', transition: 4, attention: null },
        ...{ disputed_at: expect.any(String), disputed: 1_050 },
        audit: [{ who: 'ada', what: 'claw_back', why: ACT.reason }],
      },
      entries: ['payment_settled:ID', 'payment_clawed_back:ID'],
    },
    {
      title: 'is debited for a chargeback in parts, each posted once, up to its amount',
      steps: [
        ['clawed_back', {}, 'clawed_back'],
        ['claw_back', PART, 'clear'],
        ['claw_back', PART],
        ['claw_back', { ...PART, amount: 500 }, 'refused: wrong_state'],
        ['claw_back', { amount: 300, operation_id: 'part-2' }, '', { [MAIN]: 350, clearing: -350 }],
        [
          'claw_back',
          { amount: 351 },
          'refused: wrong_state: The payment has brought 1050, and 700',
        ],
        ['refund', { amount: 351 }, TOO_MUCH],
        ['refund', { amount: 50 }],
        ['claw_back', {}],
        ['claw_back', {}, POSTED],
        ['refund', { amount: 1 }, DISPUTED],
      ],
      stored: { attention: null },
      entries: [
        ...['payment_settled:ID', 'payment_clawed_back:ID', 'payment_clawed_back:ID:part-2'],
        expect.stringMatching(/^payment_clawed_back:ID:/),
      ],
    },
    {
      title: 'can be refunded again once an operator lifts its dispute, of several one by its id',
      steps: [
        ['act dispute_won', {}, 'refused: wrong_state: The payment is not disputed.'],
        ['clawed_back', {}, 'clawed_back'],
        ['act dispute_won', {}, 'clear'],
        ['refund', { amount: 50 }],
        ['claw_back', { amount: 400 }],
        ONE_OF_TWO,
        ['act dispute_won', {}, 'refused: wrong_state: The payment has several disputes'],
        ['act dispute_won', { dispute_id: 'D2' }, NO_DISPUTE],
        ['act dispute_won', { dispute_id: 'D1', fee: 16 }, 'refused: wrong_state: The fee of the'],
        ['dispute_lost', { dispute_id: 'D1' }, '', { [MAIN]: 200, clearing: -200 }],
        ['act dispute_won', { dispute_id: 'D1', fee: 15 }, '', { [MAIN]: 600, clearing: -600 }],
        ['act dispute_won', { dispute_id: 'D1' }, NO_DISPUTE],
        ['act dispute_won', {}, '', { [MAIN]: 1_000, clearing: -1_000 }],
        ['refund', { amount: null }],
      ],
      stored: { attention: null, disputed_at: null, refunded: 1_050 },
    },
    {
      title: 'has the amount of a chargeback named after a dispute, which may be the same money',
      steps: [
        ONE_OF_TWO,
        ['clawed_back', {}, 'clawed_back'],
        ['claw_back', {}, 'refused: wrong_state: Disputes have taken 400 already'],
        ['claw_back', { amount: 650 }, 'clear'],
      ],
      stored: { disputed: 1_050, disputes_open: 1 },
    },
    {
      title: 'has a chargeback reversed once, which pays what its merchant still owes',
      steps: [
        ['spend', 50],
        ['claw_back', {}, '', { 'receivable.merchant': -1_000, 'external.adjustments': 1_000 }],
        ['reverse', 'payment_clawed_back:ID', '', REVERSED],
        ['reverse', 'payment_clawed_back:ID', '', REVERSED],
        ['act dispute_won', {}, 'refused: wrong_state: The payment is not disputed.'],
        ['refund', { amount: 1 }],
        ['claw_back', { amount: 100, operation_id: 'again' }],
        ['act dispute_won', {}, '', OWED],
      ],
      stored: { disputed: 0 },
      disputes: [1_050, 100].map((sum, n) =>
        expect.stringMatching(`won 0 0: out ${sum} held ${n === 0 ? 50 : 49}, in ${sum} held 0`),
      ),
      movements: [
        'in first 1050 applied',
        ...[1_050, 100].flatMap((sum) => [`out - ${sum} applied`, `in - ${sum} applied`]),
      ],
    },
  ])('$title', playFrom('settled'));

  // What differs is in test/domain/dispute.test.ts.
  test('is not changed by a dispute that differs, which waits for an operator', () =>
    withStatus.awaiting_customer(async (payment) => {
      const opened: Step = ['dispute_opened', { amount: 1_051 }, '', SETTLED];
      await playAll(payment, 'settled', [['settled', {}], opened]);
      const attention = async () =>
        (await setting.stores.disputes.forPayment(payment.id))[0]?.attention;
      await eventually('the reason', async () => (await attention()) === 'dispute_differs');
      expect(await payment.stored()).toMatchObject({ attention: null });
      expect(await payment.stored()).not.toHaveProperty('disputed_at');
      expect(await payment.unapplied()).toEqual([expect.stringContaining('1050 is left')]);
      expect(await payment.differences()).toEqual([]);
      await saveHistory(payment.handle, 'payment-dispute-differs');
    }));

  test('has a dispute whose entry MongoDB refuses shown to operators, and not tried again', () =>
    withPayment(scriptedBank(), async (payment) => {
      await payment.endBy('settled');
      await playAll(payment, 'settled', [['spend', 1_049]]);
      const correct = await breakBook(setting.stores, `${payment.account_id}:sandbox:EUR`);
      await payment.report('dispute_opened', FIRST);
      const { disputes } = setting.stores;
      const dispute = await eventually('the dispute', async () => {
        const [first] = await disputes.forPayment(payment.id);
        return first?.attention === 'books_refused' && first;
      });
      const handle = setting.env.client.workflow.getHandle(`dispute:${dispute._id}`);
      await shows(handle, 'The books refuse payment_dispute_opened: ');
      expect(await payment.refusalAfterEnd('claw_back')).toMatchObject({ code: 'books_refused' });
      await correct();
      await report(payment, 'dispute_opened', FIRST);
      const opened = { name: 'D1', status: 'needs_response', amount: 400 };
      expect(await disputes.forPayment(payment.id)).toMatchObject([opened]);
      expect(await payment.differences()).toEqual([]);
    }));
});

describe('a return that the bank has not answered', () => {
  type Story = (payment: TrackedPayment) => Promise<unknown>;

  /** Runs the story of a cancelled payment, and verifies the ledger afterwards. */
  const withCancelled = (
    reversePayment: NonNullable<Row['bank']>['reversePayment'],
    story: Story,
  ) =>
    withPayment(scriptedBank(reversePayment && { reversePayment }), async (payment) => {
      await isAt(payment.handle, 'awaiting_customer');
      await payment.act('cancel', { by: 'merchant' });
      await payment.handle.result();
      await story(payment);
      expect(await payment.differences()).toEqual([]);
    });

  /** Answers the first instruction once `release` is called. */
  function silentReversal() {
    const { opened, release } = gate();
    let instructions = 0;
    const reversePayment = async () => {
      instructions += 1;
      if (instructions === 1) await opened;
      return { outcome: 'accepted', bank_reference: 'back' } as const;
    };
    return { reversePayment, release };
  }
  const listReturns = ({ told }: TrackedPayment) =>
    told.filter((line) => line.startsWith('reversePayment'));
  const untilSent = (payment: TrackedPayment) =>
    eventually('the instruction', async () => listReturns(payment).length === 1);
  const rowsOf = ({ account_id }: TrackedPayment) => readAccountRows(setting, account_id);
  const wrongState = (message: string) => ({ code: 'wrong_state', message });

  test('delays nothing that the bank reports, and cannot be recorded by hand', () => {
    const { reversePayment, release } = silentReversal();
    return withCancelled(reversePayment, async (payment) => {
      const nothing = wrongState('No money is in suspense.');
      expect(await payment.refusalAfterEnd('mark_reversed')).toEqual(nothing);
      await payment.signalAfterEnd('settled', ONE);
      await payment.becomes({ attention: 'late_money_pending' });
      expect(await rowsOf(payment)).toEqual(buildHeld(1_050));
      const why = wrongState(
        'The bank is instructed to send the money back. Wait for its answer, or send `give_up_closing`.',
      );
      expect(await payment.refusalAfterEnd('mark_reversed')).toEqual(why);
      const loss = { ...ACT, as: 'loss' };
      expect(await payment.refusalAfterEnd('resolve_movement', loss)).toEqual(why);
      await payment.signal('reversed');
      await payment.becomes({ attention: SENT_BACK });
      expect(await rowsOf(payment)).toEqual({});
      release();
      await payment.handle.result();
      expect(await payment.attention()).toBe(SENT_BACK);
    });
  });

  test('is given up by an operator, who may then say that the money is back', () => {
    const retired = () => Promise.reject(new Error('retired'));
    return withCancelled(retired, async (payment) => {
      expect(await payment.refusalAfterEnd('give_up_closing')).toEqual(
        wrongState('No session, void or reversal of the payment is open at the bank.'),
      );
      await payment.signalAfterEnd('settled', ONE);
      await payment.becomes({ attention: 'late_money_pending' });
      await payment.actAfterEnd('give_up_closing');
      await payment.becomes({ attention: NOT_SENT_BACK });
      await payment.handle.result();
      await saveHistory(payment.handle, 'payment-reversal-given-up');
      expect(await rowsOf(payment)).toEqual(buildHeld(1_050));
      await playAll(payment, 'cancelled', [['mark_reversed', {}, 'clear', {}]]);
    });
  });

  test('that is given up while the bank executes it counts as the bank answers', () => {
    const { reversePayment, release } = silentReversal();
    return withCancelled(reversePayment, async (payment) => {
      await payment.signalAfterEnd('settled', ONE);
      await untilSent(payment);
      await payment.actAfterEnd('give_up_closing');
      release();
      await payment.handle.result();
      expect(await payment.attention()).toBe(SENT_BACK);
    });
  });

  test('is sent again by a new run, with the same id', () => {
    const { reversePayment, release } = silentReversal();
    return withCancelled(reversePayment, async (payment) => {
      await payment.signalAfterEnd('settled', ONE);
      await untilSent(payment);
      await payment.handle.terminate('a test');
      await payment.restart();
      await payment.handle.result();
      release();
      const instruction = `reversePayment reversal:${payment.id}`;
      expect(listReturns(payment)).toEqual([instruction, instruction]);
      expect(await payment.attention()).toBe(SENT_BACK);
      await saveHistory(payment.handle, 'payment-resumed-reversal');
    });
  });
});
