import { callback, openRefund, refundInput, scriptedBank } from '../../support/workflow-setting';
import { by, MAIN, type Row, type Step, useMovementStories } from '../movement-stories';

/** Holds docs/ledger.md#bank-movements for payouts of 1,000 with a fee of 25, and refunds of 1,050. */
const { setting, playFrom, playAll, withPayout, withRefund } = useMovementStories();

const FEES = 'income.fees';
const UNTOUCHED = { [MAIN]: 10_000 };
const PAID = { [MAIN]: 8_975, [FEES]: 25, clearing: 1_000 };
const RETURNED = { [MAIN]: 9_975, [FEES]: 25 };
/** All of it is back, and in suspense. */
const ALL_BACK = { [MAIN]: 8_975, [FEES]: 25, 'suspense.late': 1_000 };
const TWICE = { ...PAID, clearing: 2_000, 'suspense.sent': -1_000 };
const OWED = {
  ...{ 'receivable.merchant': -600, [FEES]: 25, clearing: 1_000 },
  'external.adjustments': 9_575,
};
const [CAPTURED, HELD, RESOLVED] = ['payout_captured', 'payout_held', 'payout_resolved'];

const SENT_A = 'out A 1000 applied';

const COMPLETED: Step = ['completed', by('A'), 'completed', PAID];

describe('a payout', () => {
  test.each<Row>([
    {
      title: 'that is completed under another reference has this in suspense',
      steps: [
        ['sent', by('A'), 'sent'],
        ['completed', by('B'), 'completed second_completion'],
        ['save', 'payout-second-reference'],
        ['completed', by('B')],
      ],
      movements: [SENT_A, 'out B 1000 suspense'],
    },
    {
      title:
        'that is completed under another reference has this as its name, with one for each step',
      steps: [
        ['sent', by('A'), 'sent'],
        ['completed', by('B'), 'completed'],
        ['save', 'payout-reference-per-step'],
        ['completed', by('B')],
      ],
      reference_per_step: true,
      movements: ['out B 1000 applied'],
    },
    {
      title: 'keeps the name of a report over that of the answer to its instruction',
      steps: [
        ['sent', by('A'), 'sent'],
        ['completed', {}, 'completed'],
        ['completed', by('A'), '', PAID],
      ],
      movements: [SENT_A],
      stored: { bank_reference: 'A' },
    },
  ])('$title', playFrom('submitted'));

  test.each<Row>([
    {
      title: 'that is completed again under another reference is in suspense',
      steps: [
        COMPLETED,
        ['completed', by('second'), 'second_completion', TWICE],
        ['completed', by('second'), '', TWICE],
        ['save', 'payout-second-completion'],
      ],
      kinds: [CAPTURED, HELD],
    },
    {
      title: 'that is sent after it has come back is borne by the merchant, who owes the rest',
      steps: [
        COMPLETED,
        ['returned', {}, 'returned', RETURNED],
        ['completed', by('again'), 'moved_after_returned'],
        ['spend', 400],
        ['resolve_movement', { as: 'merchant' }, 'clear', OWED],
      ],
      kinds: [CAPTURED, 'payout_returned', HELD, RESOLVED],
    },
  ])('$title', playFrom('sent'));

  const SENT_TOO = { ...UNTOUCHED, 'suspense.sent': -1_000, clearing: 1_000 };
  const failedThenSent: Step[] = [
    ['failed', by('S-1'), 'failed', UNTOUCHED],
    ['sent', {}, 'moved_after_failed', UNTOUCHED],
    ['completed', {}, '', SENT_TOO],
    ['completed', {}, '', SENT_TOO],
    ['acknowledge', {}, 'refused: money_in_suspense'],
  ];

  test.each<Row>([
    {
      title: 'that is sent after it failed is a loss, where an operator says so',
      steps: [
        ...failedThenSent,
        ['save', 'payout-sent-after-failed'],
        [
          ...(['resolve_movement', { as: 'loss' }, 'clear'] as const),
          { ...UNTOUCHED, clearing: 1_000, 'external.adjustments': -1_000 },
        ],
      ],
    },
    {
      title: 'that is sent after it failed has come back when the bank reports the failure again',
      steps: [
        ...failedThenSent,
        ['returned', { amount: 999 }, '', SENT_TOO],
        ['failed', {}, '', UNTOUCHED],
        ['failed', {}, '', UNTOUCHED],
      ],
    },
  ])('$title', playFrom('sent'));
});

describe('a payout whose debit the bank reverses', () => {
  const day = (value_date: string) => ({ currency: 'EUR', value_date });
  const again = by('C', 1_000, day('2026-10-16'));
  const reversed = ['debit_reversed', by('B', 1_000, day('2026-10-06'))] as const;
  const begin: Step[] = [
    ['completed', by('A', 1_000, day('2026-10-05')), 'completed', PAID],
    [...reversed, 'debit_reversed', ALL_BACK],
  ];
  const kinds = [CAPTURED, HELD, RESOLVED];

  test.each<Row>([
    {
      title: 'is completed where it books it again after that',
      steps: [...begin, ['completed', again, 'clear', PAID], ['completed', again, '', PAID]],
      movements: [SENT_A, 'in B 1000 resolved', 'out C 1000 applied'],
      kinds,
    },
    {
      title: 'is completed where it books it again before it reports that',
      steps: [
        ['completed', by('A', 1_000, day('2026-10-05')), 'completed'],
        ['completed', again, 'second_completion', TWICE],
        [...reversed, 'clear', PAID],
        [...reversed, '', PAID],
      ],
      movements: [SENT_A, 'out C 1000 resolved', 'in B 1000 applied'],
      kinds,
    },
    {
      title: 'needs an operator where it books it again later than in ten days',
      steps: [...begin, ['completed', { ...again, value_date: '2026-10-17' }]],
      movements: [SENT_A, 'in B 1000 suspense', 'out C 1000 suspense'],
    },
    {
      title: 'needs an operator where it books it again in another amount',
      steps: [...begin, ['completed', { ...again, amount: 999 }]],
      movements: [SENT_A, 'in B 1000 suspense', 'out C 999 suspense'],
    },
    {
      title: 'is returned where the bank keeps it back',
      steps: [
        ...begin,
        ['resolve_movement', { as: 'merchant' }, 'returned clear', RETURNED],
        ['save', 'payout-debit-reversed'],
      ],
      movements: [SENT_A, 'in B 1000 applied'],
    },
  ])('$title', playFrom('sent'));
});

describe('a return', () => {
  const CARD = { method: 'card_payout', can_be_returned: false } as const;
  const AC04 = { code: 'AC04', reason: 'Account closed' };
  const LESS = by('R-1', 900, { currency: 'EUR' });
  const LESS_HELD = { ...ALL_BACK, 'suspense.late': 900, clearing: 100 };
  const NOT_ON_CARDS = 'refused: wrong_state: Nothing comes back on the rail card_payout.';

  test.each<Row>([
    {
      title: 'straight from sent credits the amount without the fee',
      steps: [
        ['returned', AC04, 'returned', RETURNED],
        ['save', 'payout-returned-from-sent'],
      ],
      stored: { version: 4, returned: AC04, failure: null, completed_at: expect.any(String) },
      kinds: [CAPTURED, 'payout_returned'],
    },
    {
      title: 'without a reason gets one, and a second one without a reference needs attention',
      steps: [
        COMPLETED,
        ['sleep', '5 days'],
        ['returned', { callback_id: 'R-1' }, 'returned', RETURNED],
        ['save', 'payout-returned-days-later'],
        // The connector repeats it when it crashed before it knew that the signal had arrived.
        ['returned', { callback_id: 'R-1' }, '', RETURNED],
        ['returned', { reason: 'Once more' }, 'second_return', RETURNED],
        ['save', 'payout-second-return'],
      ],
      stored: {
        transition: 5,
        returned: { code: 'returned', reason: 'The receiving bank sent the payout back.' },
      },
      kinds: [CAPTURED, 'payout_returned'],
      unapplied: ['returned: the payout has come back already'],
    },
    {
      title: 'of day 61 is in suspense until an operator marks it',
      steps: [
        COMPLETED,
        ['sleep', '61 days'],
        ['returned', AC04, 'return_too_late', ALL_BACK],
        ['mark_returned', {}, 'returned clear', RETURNED],
        ['save', 'payout-marked-returned-after-end'],
      ],
      stored: {
        transition: 5,
        returned: { code: 'returned', reason: 'The bank reported that the payout came back.' },
        audit: [{ who: 'ada', what: 'mark_returned', before: 'completed', after: 'returned' }],
      },
      unapplied: ['returned: a payout comes back within 60 days'],
    },
    {
      title: 'on a rail where nothing comes back is in suspense',
      steps: [
        ['mark_returned', {}, NOT_ON_CARDS],
        ['returned', AC04, 'return_not_possible', ALL_BACK],
        ['completed', {}, 'completed', ALL_BACK],
      ],
      changes: CARD,
      stored: { returned: null },
      unapplied: ['returned: nothing comes back on this rail'],
    },
    {
      title: 'of less is in suspense, whatever is reported, until an operator credits it',
      steps: [
        ['returned', LESS, 'amount_differs', LESS_HELD],
        ['mark_returned', { amount: 1_001 }, 'refused: invalid_request'],
        ['returned', LESS, '', LESS_HELD],
        ['returned', {}, '', LESS_HELD],
        ['completed', {}, 'completed', LESS_HELD],
        ['save', 'payout-return-held'],
        ['acknowledge', {}, 'refused: money_in_suspense'],
        ['mark_returned', { amount: 900 }, 'returned clear'],
      ],
      kinds: [CAPTURED, HELD, 'payout_returned'],
    },
    {
      title: 'of less is credited by an operator before anything else is reported',
      steps: [
        ['returned', LESS, 'amount_differs', LESS_HELD],
        [
          'mark_returned',
          { amount: 900 },
          'returned clear',
          { ...RETURNED, [MAIN]: 9_875, clearing: 100 },
        ],
        ['save', 'payout-amount-differs'],
      ],
      stored: { transition: 4 },
    },
  ])('$title', playFrom('sent'));

  test('of day 59 counts, also when it is reported on day 61', () =>
    withPayout(scriptedBank(), async (payout) => {
      await playAll(payout, 'sent', [COMPLETED, ['sleep', '59 days']]);
      const occurred_at = new Date(await setting.env.currentTimeMs()).toISOString();
      await setting.env.sleep('2 days');
      await playAll(payout, 'completed', [['returned', { occurred_at }, 'returned', RETURNED]]);
    }));
});

describe('a refund', () => {
  const FAILED = { [MAIN]: 1_050, clearing: -1_050 };
  const TWO_SENT = { 'suspense.sent': -1_050, clearing: 1_050 };
  const LATE = { 'suspense.late': 1_050, clearing: -1_050 };

  test.each<Row>([
    {
      title: 'of which less was sent is in suspense until an operator posts that amount',
      steps: [
        [
          ...(['settled', by('S-1', 900), 'amount_differs'] as const),
          { 'transit.refunds': 1_050, 'suspense.sent': -900, clearing: -150 },
        ],
        // A report without an amount does not settle the question.
        ['settled', {}],
        ['acknowledge', {}, 'refused: money_in_suspense'],
        [
          'resolve_movement',
          { as: 'loss' },
          'refused: wrong_state: The refund takes it: send `mark_settled`',
        ],
        ['mark_settled', { amount: 1_051 }, 'refused: invalid_request'],
        ['mark_settled', { amount: 900 }, 'settled clear', { [MAIN]: 150, clearing: -150 }],
        ['save', 'refund-amount-differs'],
      ],
      kinds: ['refund_held', 'refund_settled'],
      stored: { transition: 2 },
      payment: { refunded: 900 },
    },
    {
      title: 'of which less was sent comes back as what was sent, where the bank names no amount',
      steps: [
        [
          ...(['settled', by('S-1', 900), 'amount_differs'] as const),
          { 'transit.refunds': 1_050, 'suspense.sent': -900, clearing: -150 },
        ],
        ['mark_settled', { amount: 900 }, 'settled clear', { [MAIN]: 150, clearing: -150 }],
        [
          ...(['failed', by('back'), 'failed_after_settled'] as const),
          { [MAIN]: 150, 'suspense.late': 900, clearing: -1_050 },
        ],
        ['resolve_movement', { as: 'merchant' }, 'clear', FAILED],
      ],
      payment: { refunded: 0 },
    },
    {
      title:
        'that an operator marks as failed, of which the bank says again that it sent less, is shown',
      steps: [
        [
          ...(['settled', by('S-1', 900), 'amount_differs'] as const),
          { 'transit.refunds': 1_050, 'suspense.sent': -900, clearing: -150 },
        ],
        ['mark_failed', {}, 'failed clear', FAILED],
        ['settled', by('S-1', 900), 'settled_after_failed', FAILED],
      ],
      payment: { refunded: 0 },
    },
    {
      title: 'that fails after it settled can be asked for again once the merchant has it',
      steps: [
        ['settled', by('A'), 'settled', {}],
        ['failed', by('back'), 'failed_after_settled', LATE],
        ['resolve_movement', { as: 'merchant' }, 'clear', FAILED],
      ],
      payment: { refunded: 0 },
    },
    {
      title: 'of which more comes back than was refunded leaves no more to refund than the payment',
      steps: [
        ['settled', by('A'), 'settled', {}],
        [
          ...(['failed', by('back', 2_000), 'failed_after_settled'] as const),
          { 'suspense.late': 2_000, clearing: -2_000 },
        ],
        ['resolve_movement', { as: 'merchant' }, 'clear', { [MAIN]: 2_000, clearing: -2_000 }],
      ],
      payment: { refunded: 0 },
    },
    {
      title: 'that is settled again under another reference is in suspense',
      steps: [
        ['settled', by('first'), 'settled', {}],
        ['settled', by('second'), 'second_completion', TWO_SENT],
        ['settled', by('second'), '', TWO_SENT],
        ['save', 'refund-second-completion'],
        ['resolve_movement', { as: 'bank' }, 'clear', {}],
        ['failed', by('back'), '', {}],
      ],
      payment: { refunded: 1_050 },
    },
    {
      title: 'that failed and settles is debited again, once, and the customer gets no second one',
      steps: [
        ['failed', by('first'), 'failed', FAILED],
        ['settled', by('sent'), 'settled_after_failed', {}],
        ['settled', by('sent'), '', {}],
        ['save', 'refund-resumed-settled-after-failed'],
        ['refund', { amount: 1 }, 'refused: refund_amount_exceeds_balance'],
      ],
      stored: { late_amount: 1_050 },
    },
    {
      title:
        'that failed, of which less settled as a loss, comes back as that, and releases none of the payment',
      steps: [
        ['failed', by('first'), 'failed', FAILED],
        [
          ...(['settled', by('sent', 900), 'settled_after_failed'] as const),
          { [MAIN]: 1_050, 'suspense.sent': -900, clearing: -150 },
        ],
        [
          ...(['resolve_movement', { as: 'loss' }, 'clear'] as const),
          { [MAIN]: 1_050, 'external.adjustments': -900, clearing: -150 },
        ],
        [
          ...(['failed', by('back'), 'failed_after_settled'] as const),
          { [MAIN]: 1_050, 'external.adjustments': -900, 'suspense.late': 900, clearing: -1_050 },
        ],
        ['resolve_movement', { as: 'merchant' }, 'clear'],
      ],
      payment: { refunded: 0 },
    },
    {
      title: 'that failed, settles and fails again is in suspense until the merchant has it back',
      steps: [
        ['failed', by('first'), 'failed', FAILED],
        ['settled', by('sent'), 'settled_after_failed', {}],
        ['failed', by('back'), 'failed_after_settled', LATE],
        ['failed', by('back'), '', LATE],
        ['resolve_movement', { as: 'merchant' }, 'clear', FAILED],
      ],
      stored: { late_amount: 0 },
      payment: { refunded: 0 },
    },
  ])('$title', playFrom('processing'));

  test('that settles after it failed is owed where the balance is gone, and stays refunded when another one fails', () =>
    withRefund(scriptedBank(), async ({ payment, account_id, money, report, ...refund }) => {
      await refund.endBy('failed', by('first'));
      const { handle } = await openRefund(setting, refundInput(payment, { amount: null }));
      await report('settled');
      expect(await money()).toEqual({ refunded: 1_050, available: 0 });
      const { payments, ledger } = setting.stores;
      expect(await payments.get(payment.payment_id)).toMatchObject({ refunded_over: 1_050 });
      const owed = [{ currency: 'EUR', owed: 1_050 }];
      expect((await ledger.balancesAndReceivables(account_id, false)).receivables).toEqual(owed);
      await handle.signal('failed', callback());
      await handle.result();
      expect(await money()).toEqual({ refunded: 1_050, available: 1_050 });
      expect(await refund.differences(payment.payment_id)).toEqual([]);
    }));
});
