import { saveHistory } from '../../support/histories';
import { callback, openRefund, refundInput, scriptedBank } from '../../support/workflow-setting';
import { refusalOf, type TrackedRefund } from '../lifecycles';
import { by, MAIN, type Row, type Rows, type Step, useMovementStories } from '../movement-stories';

/** Holds docs/ledger.md#bank-movements for payouts of 1,000 with a fee of 25, and refunds of 1,050. */
const { setting, play, playAll, withPayout, withRefund } = useMovementStories();

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
const SENT = expect.stringMatching(/^out ref-\S+ 1000 applied$/);

const COMPLETED: Step = ['completed', by('A'), 'completed', PAID];
/** The bank has only queued it, and reports that it sent more. */
const MORE: Step = ['sent', by('odd', 1_100), 'amount_differs'];

describe('a payout', () => {
  test.each<Row>([
    {
      title: 'that an operator completes gets the name of the bank, and is posted once',
      from: 'submitted',
      steps: [
        ['mark_completed', {}, 'completed', PAID],
        ['completed', by('A', 1_000), ''],
        ['completed', by('A', 1_000), '', PAID],
      ],
      ...{ movements: [SENT_A], kinds: [CAPTURED] },
    },
    {
      title: 'that is sent under a second reference is in suspense, and completed by its report',
      from: 'submitted',
      steps: [
        ['sent', by('A'), 'sent'],
        ['sent', by('B'), 'second_completion', TWICE],
        ['completed', by('B'), 'completed', TWICE],
      ],
      ...{ movements: [SENT_A, 'out B 1000 suspense'], kinds: [CAPTURED, HELD] },
    },
    {
      title: 'that is completed under another reference has this in suspense',
      from: 'submitted',
      steps: [
        ['sent', by('A'), 'sent'],
        ['completed', by('B'), 'completed second_completion'],
        ['save', 'payout-second-reference'],
        ['completed', by('B'), ''],
      ],
      movements: [SENT_A, 'out B 1000 suspense'],
    },
    {
      title:
        'that is completed under another reference has this as its name, with one for each step',
      ...{ from: 'submitted', reference_per_step: true },
      steps: [
        ['sent', by('A'), 'sent'],
        ['completed', by('B'), 'completed'],
        ['save', 'payout-reference-per-step'],
        ['completed', by('B'), ''],
      ],
      movements: ['out B 1000 applied'],
    },
    {
      title: 'that is completed again under another reference is in suspense',
      from: 'sent',
      steps: [
        COMPLETED,
        ['completed', by('second'), 'second_completion', TWICE],
        ['completed', by('second'), '', TWICE],
        ['save', 'payout-second-completion'],
      ],
      kinds: [CAPTURED, HELD],
    },
    {
      title: 'that is completed again under the same reference, or none, is a repeat',
      from: 'sent',
      steps: [COMPLETED, ['completed', by('A'), '', PAID], ['completed', {}, '', PAID]],
      kinds: [CAPTURED],
    },
    {
      title: 'of which less was sent is captured once',
      from: 'submitted',
      steps: [
        ['sent', by('less', 900), 'amount_differs'],
        ['completed', by('less', 900), ''],
        ['mark_completed', {}, 'completed clear', PAID],
      ],
      kinds: [HELD, CAPTURED],
    },
    {
      title: 'of which more was sent is completed by a part, and the rest never happened',
      from: 'submitted',
      steps: [
        MORE,
        ['mark_completed', {}, 'completed', { ...PAID, 'suspense.sent': -100, clearing: 1_100 }],
        ['resolve_movement', { as: 'never_happened' }, 'clear', PAID],
      ],
      ...{ movements: ['out odd 1100 resolved'], kinds: [HELD, CAPTURED, RESOLVED] },
    },
    {
      title: 'that failed, and of which money is in suspense, has it back from the bank',
      from: 'submitted',
      // Whether that is right, an operator knows.
      steps: [MORE, ['failed', {}, 'failed', UNTOUCHED]],
      movements: ['out odd 1100 resolved', 'in - 1100 applied'],
      kinds: [HELD, RESOLVED, 'payout_released'],
    },
    {
      title: 'that an operator marks as failed, and of which money is in suspense, never moved',
      from: 'submitted',
      steps: [
        MORE,
        ['mark_failed', { bank_confirmed_not_executed: true }, 'failed clear', UNTOUCHED],
      ],
      movements: ['out odd 1100 resolved'],
      kinds: [HELD, RESOLVED, 'payout_released'],
    },
    {
      title: 'that moves after it failed, and comes back, is back twice under one reference',
      from: 'sent',
      steps: [
        ['failed', by('one'), 'failed', UNTOUCHED],
        ['completed', by('one'), 'moved_after_failed'],
        ['failed', by('one'), '', UNTOUCHED],
        ['failed', by('one'), '', UNTOUCHED],
      ],
      movements: [SENT, 'in one 1000 applied', 'out one 1000 resolved', 'in one 1000 applied'],
    },
    {
      title: 'that comes back in another currency, too, needs an operator until that is resolved',
      from: 'sent',
      steps: [
        ['returned', by('usd', 1_000, { currency: 'USD' }), 'amount_differs'],
        ['returned', by('eur', 1_000, { currency: 'EUR' }), 'returned'],
        ['resolve_movement', { as: 'never_happened' }, 'clear', RETURNED],
      ],
      movements: [SENT, 'in usd 1000 resolved', 'in eur 1000 applied'],
    },
    {
      title:
        'of which less is back and that is sent again needs an operator for one after the other',
      from: 'sent',
      steps: [
        ['returned', by('less', 900), 'amount_differs'],
        ['sent', by('again'), ''],
        ['mark_returned', { amount: 900 }, 'returned second_completion'],
        ['resolve_movement', { as: 'loss' }, 'clear'],
      ],
    },
    {
      title: 'that is sent after it has come back is borne by the merchant, who owes the rest',
      from: 'sent',
      steps: [
        COMPLETED,
        ['returned', {}, 'returned', RETURNED],
        ['completed', by('again'), 'moved_after_returned'],
        ['spend', 400],
        ['resolve_movement', { as: 'merchant' }, 'clear', OWED],
      ],
      kinds: [CAPTURED, 'payout_returned', HELD, RESOLVED],
    },
    {
      title: 'whose return the bank reverses is returned, and owed where it was spent',
      from: 'sent',
      steps: [
        ['returned', by('B'), 'returned', RETURNED],
        ['return_reversed', by('C', 1_000), 'return_reversed'],
        ['spend', 400],
        ['resolve_movement', { as: 'merchant' }, 'clear', OWED],
      ],
      movements: [SENT, 'in B 1000 applied', 'out C 1000 resolved'],
    },
  ])('$title', play);

  const SENT_TOO = { ...UNTOUCHED, 'suspense.sent': -1_000, clearing: 1_000 };
  const failedThenSent: Step[] = [
    ['failed', by('S-1'), 'failed', UNTOUCHED],
    ['sent', {}, 'moved_after_failed', UNTOUCHED],
    ['completed', {}, '', SENT_TOO],
    ['completed', {}, '', SENT_TOO],
    ['acknowledge', {}, 'refused: money_in_suspense'],
  ];

  test.each<[string, Rows]>([
    ['merchant', { [MAIN]: 9_000, clearing: 1_000 }],
    ['loss', { ...UNTOUCHED, clearing: 1_000, 'external.adjustments': -1_000 }],
    ['bank', UNTOUCHED],
    ['never_happened', UNTOUCHED],
  ])('that is sent after it failed is resolved by an operator as %s', (as, rows) => {
    const resolve: Step = ['resolve_movement', { as }, 'clear', rows];
    const save: Step = ['save', 'payout-sent-after-failed'];
    const steps = [...failedThenSent, ...(as === 'loss' ? [save] : []), resolve];
    return play({ title: as, from: 'sent', steps });
  });

  test('that is sent after it failed has come back when the bank reports the failure again', () =>
    play({
      ...{ title: '', from: 'sent' },
      steps: [
        ...failedThenSent,
        ['returned', { amount: 999 }, '', SENT_TOO],
        ['failed', {}, '', UNTOUCHED],
        ['failed', {}, '', UNTOUCHED],
      ],
    }));
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

  test.each<Omit<Row, 'from'>>([
    {
      title: 'is completed where it books it again after that',
      steps: [...begin, ['completed', again, 'clear', PAID], ['completed', again, '', PAID]],
      ...{ movements: [SENT_A, 'in B 1000 resolved', 'out C 1000 applied'], kinds },
    },
    {
      title: 'is completed where it books it again before it reports that',
      steps: [
        ['completed', by('A', 1_000, day('2026-10-05')), 'completed'],
        ['completed', again, 'second_completion', TWICE],
        [...reversed, 'clear', PAID],
        [...reversed, '', PAID],
      ],
      ...{ movements: [SENT_A, 'out C 1000 resolved', 'in B 1000 applied'], kinds },
    },
    {
      title: 'needs an operator where it books it again later than in ten days',
      steps: [...begin, ['completed', { ...again, value_date: '2026-10-17' }, '']],
      movements: [SENT_A, 'in B 1000 suspense', 'out C 1000 suspense'],
    },
    {
      title: 'needs an operator where it books it again in another amount',
      steps: [...begin, ['completed', { ...again, amount: 999 }, '']],
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
    {
      title: 'stays completed where the bank will book it again, as an operator knows',
      steps: [
        ...begin,
        ['resolve_movement', { as: 'bank' }, 'clear'],
        ['completed', { ...again, value_date: '2026-12-01' }, '', PAID],
      ],
      movements: [SENT_A, 'in B 1000 resolved', 'out C 1000 applied'],
    },
  ])('$title', (row) => play({ ...row, from: 'sent' }));
});

describe('a return', () => {
  const CARD = { method: 'card_payout', can_be_returned: false } as const;
  const AC04 = { code: 'AC04', reason: 'Account closed' };
  const LESS = by('R-1', 900, { currency: 'EUR' });
  const LESS_HELD = { ...ALL_BACK, 'suspense.late': 900, clearing: 100 };
  const SECOND = { ...RETURNED, 'suspense.late': 1_000, clearing: -1_000 };
  const NOT_ON_CARDS = 'refused: wrong_state: Nothing comes back on the rail card_payout.';

  test.each<Omit<Row, 'from'>>([
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
      title: 'on a rail where nothing comes back cannot be marked after the end',
      changes: CARD,
      steps: [COMPLETED, ['mark_returned', {}, NOT_ON_CARDS]],
    },
    {
      title: 'on a rail where nothing comes back is in suspense',
      changes: CARD,
      steps: [
        ['mark_returned', {}, NOT_ON_CARDS],
        ['returned', AC04, 'return_not_possible', ALL_BACK],
        ['completed', {}, 'completed', ALL_BACK],
      ],
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
    {
      title: 'of less that never came is said so by an operator',
      steps: [
        ['returned', LESS, 'amount_differs', LESS_HELD],
        ['resolve_movement', { as: 'never_happened' }, 'clear', PAID],
        ['mark_returned', {}, 'returned', RETURNED],
      ],
    },
    {
      title: 'of a smaller amount is part of what a failed payout returns to its balance',
      steps: [
        ['returned', LESS, 'amount_differs', LESS_HELD],
        ['failed', {}, 'failed', UNTOUCHED],
      ],
    },
    {
      title: 'under another reference is in suspense until an operator credits it, once',
      steps: [
        ['returned', by('R-1'), 'returned', RETURNED],
        ['returned', by('R-1'), 'second_return', RETURNED],
        ['returned', by('R-2'), '', SECOND],
        ['returned', by('R-2'), '', SECOND],
        [
          'resolve_movement',
          { as: 'merchant' },
          'clear',
          { ...RETURNED, [MAIN]: 10_975, clearing: -1_000 },
        ],
        ['resolve_movement', { as: 'merchant' }, 'refused: wrong_state: No money is in suspense.'],
      ],
    },
  ])('$title', (row) => play({ ...row, from: 'sent' }));

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
  const REFUNDED = { refunded: 1_050 };

  test.each<Omit<Row, 'from'>>([
    {
      title: 'of which less was sent is in suspense until an operator posts that amount',
      steps: [
        [
          ...(['settled', by('S-1', 900), 'amount_differs'] as const),
          { 'transit.refunds': 1_050, 'suspense.sent': -900, clearing: -150 },
        ],
        // A report without an amount does not settle the question.
        ['settled', {}, ''],
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
      ...{ stored: { transition: 2 }, payment: { refunded: 900 } },
    },
    {
      title: 'of which more was sent is in suspense until the merchant owes the rest',
      steps: [
        ['settled', by('S-1', 1_200), 'amount_differs'],
        ['mark_settled', {}, 'settled', { 'suspense.sent': -150, clearing: 150 }],
        ['resolve_movement', { as: 'loss', amount: 151 }, 'refused: wrong_state'],
        [
          'resolve_movement',
          { as: 'merchant' },
          'clear',
          { 'receivable.merchant': -150, clearing: 150 },
        ],
        ['resolve_movement', { as: 'loss' }, 'refused: wrong_state: No money is in suspense.'],
      ],
      payment: { refunded: 1_050, refunded_over: 150 },
    },
    {
      title: 'of which another currency was sent has come back when the refund fails',
      steps: [
        ['settled', by('S-1', 900, { currency: 'USD' }), 'amount_differs'],
        ['failed', {}, 'failed', FAILED],
        ['acknowledge', {}, 'clear'],
      ],
      payment: { refunded: 0 },
    },
    {
      title: 'that fails after it settled can be asked for again once the merchant has it',
      steps: [
        ['settled', by('A'), 'settled', {}],
        [
          'failed',
          by('back'),
          'failed_after_settled',
          { 'suspense.late': 1_050, clearing: -1_050 },
        ],
        ['resolve_movement', { as: 'merchant' }, 'clear', FAILED],
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
      payment: REFUNDED,
    },
    {
      title: 'that is settled again under the same reference, or none, is a repeat',
      steps: [
        ['settled', by('first'), 'settled', {}],
        ['settled', by('first'), '', {}],
        ['settled', {}, '', {}],
      ],
      payment: REFUNDED,
    },
  ])('$title', (row) => play({ ...row, from: 'processing' }));

  const withFailed = (story: (refund: TrackedRefund) => Promise<void>) =>
    withRefund(scriptedBank(), async (refund) => {
      await refund.endBy('failed', by('first'));
      await story(refund);
      const more = await refusalOf(openRefund(setting, refundInput(refund.payment, { amount: 1 })));
      expect(more).toMatchObject({ code: 'refund_amount_exceeds_balance' });
      expect(await refund.differences(refund.payment.payment_id)).toEqual([]);
    });

  test('that failed and settles is debited again, once, and the customer gets no second one', () =>
    withFailed(async (refund) => {
      const again = ['settled', by('sent')] as const;
      const steps: Step[] = [
        [...again, 'settled_after_failed', {}],
        [...again, '', {}],
      ];
      await playAll(refund, 'failed', steps);
      expect(await refund.stored()).toMatchObject({ late_amount: 1_050 });
      await saveHistory(refund.handle, 'refund-resumed-settled-after-failed');
    }));

  test('that failed and settles is owed where the balance is gone, and none that fails releases it', () =>
    withFailed(async ({ payment, account_id, money, report }) => {
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
    }));
});
