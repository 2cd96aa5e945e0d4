import { randomUUID } from 'node:crypto';
import { createMovements } from '../../../activities/movements';
import { inTransaction } from '../../../src/base/mongo';
import type { PaymentCallbackName } from '../../../src/domain/banks/callback';
import type { PaymentAct } from '../../../src/domain/payment/payment';
import { applyMovements } from '../../../src/movements/register';
import { reverseOperation } from '../../../src/service/money/balances/act';
import type { DisputeDocument } from '../../../src/store/disputes';
import { breakBook } from '../../support/book';
import { gate } from '../../support/gate';
import { saveHistory } from '../../support/histories';
import { eventually } from '../../support/http';
import { describeMovement } from '../../support/movements';
import { readAccountRows } from '../../support/trial-balance';
import {
  callback,
  fund,
  openPayment,
  openRefund,
  paymentInput,
  refundInput,
  type ScriptedBank,
  scriptedBank,
} from '../../support/workflow-setting';
import { ACT, isAt, refusalOf, shows, type TrackedPayment, trackPayment } from '../lifecycles';
import { by, MAIN, type Row, type Step, useMovementStories } from '../movement-stories';

/**
 * Holds docs/ledger.md#bank-movements and #money-that-goes-wrong for payments of 1,050. Tests that
 * leave an instruction without an answer are last: those hold the clock.
 */
const { setting, buildDeps, withPayment, play, ...stories } = useMovementStories();
const { readMovements, findReferred } = stories;

const MERCHANT = { by: 'merchant' };
const FIRST = { bank_reference: 'first' };
const SETTLED = { [MAIN]: 1_050, clearing: -1_050 };

type Story = (payment: TrackedPayment) => Promise<unknown>;

/** Runs the story of a payment that waits for its customer, and verifies the ledger afterwards. */
const withOpen = (story: Story, bank: ScriptedBank = scriptedBank()) =>
  withPayment(bank, async (payment) => {
    await isAt(payment.handle, 'awaiting_customer');
    await story(payment);
    expect(await payment.differences()).toEqual([]);
  });

const withEnded = (how: 'cancelled' | 'expired' | 'settled', story: Story, bank?: ScriptedBank) =>
  withOpen(async (payment) => {
    if (how === 'settled') await payment.signal('settled', FIRST);
    if (how === 'cancelled') await payment.act('cancel', MERCHANT);
    expect(await payment.handle.result()).toMatchObject({ status: how });
    await story(payment);
  }, bank);

interface Expected {
  status?: string;
  attention?: string | null;
  /** In words, the oldest first. */
  movements?: string[];
  /** Trial balance of the merchant. */
  rows?: Record<string, number>;
  /** Kinds of the journal entries. */
  kinds?: string[];
}

type Subject = Pick<TrackedPayment, 'id' | 'account_id' | 'stored' | 'entryKinds'>;

async function expectState(payment: Subject, expected: Expected): Promise<void> {
  const { movements, rows, kinds, ...stored } = expected;
  expect(await payment.stored()).toMatchObject(stored);
  if (movements) expect((await readMovements(payment)).map(describeMovement)).toEqual(movements);
  if (rows) expect(await readAccountRows(setting, payment.account_id)).toEqual(rows);
  if (kinds) expect(await payment.entryKinds()).toEqual(kinds);
}

/** Builds the trial balance of a merchant whose only money is in suspense. */
function buildHeld(amount: number, currency = 'EUR'): Record<string, number> {
  const unit = currency === 'EUR' ? '' : ` ${currency}`;
  return amount === 0 ? {} : { [`suspense.late${unit}`]: amount, [`clearing${unit}`]: -amount };
}

const resolve = ({ actAfterEnd }: TrackedPayment, as: string, more: object = {}) =>
  actAfterEnd('resolve_movement', { ...ACT, as, ...more });
const refuseResolve = ({ refusalAfterEnd }: TrackedPayment, as: string, more: object = {}) =>
  refusalAfterEnd('resolve_movement', { ...ACT, as, ...more });
const wrongState = (message: string) => ({ code: 'wrong_state', message });

/** Reports money in flight that is not what the payment waits for. */
async function reportOdd({ signal, becomes }: TrackedPayment, facts: object): Promise<void> {
  await signal('settled', { bank_reference: 'odd', ...facts });
  await becomes({ attention: 'amount_differs' });
}

const odd = (amount: number, more: object = {}): Step => [
  ...(['settled', by('odd', amount, more), 'amount_differs'] as const),
];
const SECOND: Step = ['settled', by('second', 700), 'second_settlement'];
const SENT_BACK = 'late_settlement_reversed';

describe('a payment', () => {
  test.each<Row>([
    {
      title: 'keeps the attention reason of a different amount over the true settlement',
      from: 'awaiting_customer',
      steps: [
        odd(1_049),
        ['settled', { amount: 1_050 }, 'settled'],
        ['save', 'payment-amount-differs-unread'],
      ],
    },
    {
      title: 'whose authorization has a different amount needs attention, and nothing is posted',
      from: 'awaiting_customer',
      steps: [
        ['authorized', { amount: 1_051, currency: 'EUR' }, 'amount_differs', {}],
        ['mark_failed', {}, 'failed clear'],
      ],
      kinds: [],
    },
    {
      title: 'that settles twice has the second in suspense, until the customer has it back',
      from: 'settled',
      steps: [
        SECOND,
        ['clawed_back', {}, ''],
        ['claw_back', {}, ''],
        SECOND,
        ['mark_reversed', {}, 'clear'],
        ['save', 'payment-second-settlement'],
      ],
      movements: [
        ...['in first 1050 applied', 'in second 700 resolved', 'out - 1050 applied'],
        'out - 700 applied',
      ],
    },
  ])('$title', play);

  const KEPT = { 'income.acquirer_fees': 40, clearing: -1_050 };
  const settledWith = (fee: number, rows: Record<string, number>): Step => [
    ...(['settled', by('A', 1_050, { fee }), 'settled', rows] as const),
  ];

  test.each<Row>([
    {
      title: 'is credited in full where the service bears the fee',
      from: 'awaiting_customer',
      steps: [settledWith(40, SETTLED), ['bear', 'merchant'], ['settled', by('A', 1_050), '']],
      movements: ['in A 1050 applied'],
    },
    {
      title: 'is credited without the fee where the merchant bears it',
      from: 'awaiting_customer',
      steps: [['bear', 'merchant'], settledWith(40, { [MAIN]: 1_010, ...KEPT })],
    },
    {
      title: 'is credited nothing where all of it is the fee, and more than that is never borne',
      from: 'awaiting_customer',
      steps: [['bear', 'merchant'], settledWith(1_051, { ...KEPT, 'income.acquirer_fees': 1_050 })],
    },
    {
      title:
        'whose merchant bore fees when a different amount came bears this one when it is credited',
      from: 'awaiting_customer',
      steps: [
        ['bear', 'merchant'],
        odd(999, { fee: 40 }),
        ['bear', 'service'],
        ['mark_settled', { amount: 1_050 }, 'settled clear', { [MAIN]: 1_010, ...KEPT }],
      ],
    },
    {
      title: 'whose service bore fees when a different amount came is credited all of it',
      from: 'awaiting_customer',
      steps: [
        odd(999, { fee: 40 }),
        ['bear', 'merchant'],
        ['mark_settled', {}, 'settled clear', { [MAIN]: 999, clearing: -999 }],
      ],
    },
    {
      title:
        'that settles twice has the second fee in the first part that the merchant is credited',
      from: 'settled',
      steps: [
        ['bear', 'merchant'],
        ['settled', by('second', 700, { fee: 40 }), 'second_settlement'],
        ['resolve_movement', { as: 'loss', amount: 100 }, ''],
        [
          ...(['resolve_movement', { as: 'merchant', amount: 200 }, ''] as const),
          {
            ...{ [MAIN]: 1_210, 'income.acquirer_fees': 40, clearing: -1_750 },
            ...{ 'external.adjustments': 100, 'suspense.late': 400 },
          },
        ],
        [
          ...(['resolve_movement', { as: 'merchant' }, 'clear'] as const),
          {
            ...{ [MAIN]: 1_610, 'income.acquirer_fees': 40, clearing: -1_750 },
            'external.adjustments': 100,
          },
        ],
      ],
    },
    {
      title: 'that comes too late goes back whole, whoever bears fees',
      from: 'cancelled',
      steps: [
        ['bear', 'merchant'],
        ['settled', by('late', 1_050, { fee: 40 }), 'late_settlement_reversed', buildHeld(1_050)],
        ['reversed', {}, 'late_settlement_reversed', {}],
      ],
    },
  ])('$title', play);

  /** Later than this server's clock gets, and within 90 days of each report. */
  const dayIn = (days: number) =>
    new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10);
  const LATER = { available_on: dayIn(85) };
  const DUE = `due.main.${LATER.available_on}`;

  test.each<Row>([
    {
      title: 'of a different amount is pending until the last day that the bank said of it',
      from: 'awaiting_customer',
      steps: [
        odd(999, { available_on: dayIn(84) }),
        ['settled', by('more', 51, LATER), 'amount_differs'],
        ['mark_settled', {}, 'settled clear', { [DUE]: 1_050, clearing: -1_050 }],
      ],
    },
    {
      title: 'whose merchant has what came twice has it from the day that the bank said',
      from: 'settled',
      steps: [
        ['bear', 'merchant'],
        ['settled', by('second', 700, { fee: 40, ...LATER }), 'second_settlement'],
        [
          ...(['resolve_movement', { as: 'merchant', amount: 200 }, ''] as const),
          {
            ...{ [MAIN]: 1_050, [DUE]: 160, 'income.acquirer_fees': 40, clearing: -1_750 },
            'suspense.late': 500,
          },
        ],
        ['resolve_movement', { as: 'loss' }, 'clear'],
      ],
    },
  ])('$title', play);

  // Which account each books to is in test/cli/operators.test.ts.
  test.each(['merchant', 'bank', 'loss', 'never_happened'])(
    'has money in suspense resolved as %s part by part',
    (as) =>
      play({
        ...{ title: as, from: 'settled' },
        steps: [
          SECOND,
          ['resolve_movement', { as, amount: 300, movement: 'second' }, ''],
          ['resolve_movement', { as, amount: 401 }, 'refused: wrong_state: Of the movement mv_'],
          ['resolve_movement', { as }, 'clear'],
          ['save', `payment-resolved-as-${as}`],
        ],
        movements: [
          ...['in first 1050 applied', 'in second 700 resolved'],
          ...(as === 'bank' ? ['out - 300 applied', 'out - 400 applied'] : []),
        ],
      }),
  );

  test('with a different amount in suspense stays open until that is returned', () =>
    withOpen(async (payment) => {
      const [amount, value_date] = [1_049, '2026-03-01'];
      await reportOdd(payment, { amount, value_date });
      const held = { amount, value_date, reason: 'amount_differs', state: 'suspense' };
      expect(await readMovements(payment)).toMatchObject([held]);
      const entries = await setting.stores.ledger.forResource(payment.id);
      expect(entries).toMatchObject([{ value_date }]);
      expect(await payment.refusal('cancel', MERCHANT)).toMatchObject({ code: 'cannot_cancel' });
      await setting.env.sleep('31 minutes');
      await expectState(payment, { status: 'awaiting_customer' });
      await payment.signal('reversed', { amount });
      expect(await payment.handle.result()).toMatchObject({ status: 'expired' });
      await expectState(payment, { attention: null, rows: {} });
      expect(await readMovements(payment)).toMatchObject([
        { state: 'resolved', resolutions: [{ as: 'customer', amount, operator: null }] },
        { direction: 'out', amount, reason: null, state: 'applied' },
      ]);
      await saveHistory(payment.handle, 'payment-receipt-reversed-expired');
    }));

  test('keeps the attention reason of a different amount over a malformed callback', () =>
    withOpen(async (payment) => {
      await reportOdd(payment, { amount: 1_049 });
      await payment.handle.signal('settled', { callback_id: 7 });
      await payment.endBy('settled', { amount: 1_050 });
      expect(await payment.attention()).toBe('amount_differs');
      await saveHistory(payment.handle, 'payment-malformed-under-mark');
    }));

  test.each([
    ['what came', {}, 999, []],
    ['more, as the bank says later', { amount: 1_050 }, 1_050, ['in - 51 applied']],
  ])(
    'has a different amount posted once, whatever is reported, until an operator credits %s',
    (_what, facts, settled_amount, more) =>
      withOpen(async (payment) => {
        const { signal } = payment;
        const odd = { bank_reference: 'odd', amount: 999 };
        await reportOdd(payment, odd);
        await signal('settled', odd);
        for (const name of ['settled', 'authorized', 'expired'] as const) await signal(name);
        await eventually('all reports', async () => (await payment.unapplied()).length === 5);
        const unchanged = { status: 'awaiting_customer', attention: 'amount_differs' };
        await expectState(payment, { ...unchanged, rows: buildHeld(999) });
        await payment.act('mark_settled', { ...ACT, ...facts });
        expect(await payment.handle.result()).toMatchObject({ status: 'settled' });
        const credited = { amount: 1_050, settled_amount };
        expect(await payment.stored()).toMatchObject(credited);
        // The bank repeats the same money, now that the payment is settled.
        await payment.report('settled', odd);
        await expectState(payment, {
          attention: null,
          movements: ['in odd 999 applied', ...more],
          rows: { [MAIN]: settled_amount, clearing: -settled_amount },
          kinds: ['payment_held', 'payment_settled'],
        });
        const refund = (amount: number | null) =>
          openRefund(setting, refundInput(payment.input, { amount }));
        expect(await refusalOf(refund(settled_amount + 1))).toMatchObject({
          code: 'refund_amount_exceeds_balance',
        });
        const { handle, opened } = await refund(null);
        expect((await setting.stores.refunds.get(opened.refund_id))?.amount).toBe(settled_amount);
        // Left open, its instruction would hold the clock once this bank is gone.
        await handle.signal('settled', callback());
        await handle.result();
        await saveHistory(payment.handle, 'payment-amount-differs');
      }),
  );

  test('sends money in suspense back by the bank, which reports it', () =>
    withEnded('settled', async (payment) => {
      await payment.report('settled', by('second', 700));
      const { _id: movement } = await findReferred(payment, 'second');
      await resolve(payment, 'customer');
      await payment.shows('reversal at the bank: accepted');
      const instruction = `reversal:${payment.id}:${movement}`;
      expect(payment.told.at(-1)).toBe(`reversePayment ${instruction}`);
      await expectState(payment, { attention: 'late_settlement_reversed' });
      await payment.report('reversed', { bank_reference: 'back', amount: 700 });
      await expectState(payment, { attention: null, rows: SETTLED });
      expect(await readMovements(payment)).toMatchObject([
        { state: 'applied' },
        { resolutions: [{ as: 'customer', amount: 700, operator: null }] },
        { direction: 'out', bank_reference: 'back', state: 'applied' },
      ]);
      await saveHistory(payment.handle, 'payment-resolved-as-customer');
    }));

  test('takes out of suspense what the bank is to send back, and not an older movement of this amount', () =>
    withEnded('settled', async (payment) => {
      await payment.report('settled', by('second', 700));
      await payment.report('settled', by('third', 700));
      const { _id: movement } = await findReferred(payment, 'third');
      await resolve(payment, 'customer', { movement });
      await payment.shows('reversal at the bank: accepted');
      await payment.report('reversed', by('back', 700));
      expect(await readMovements(payment)).toMatchObject([
        { bank_reference: 'first', state: 'applied' },
        { bank_reference: 'second', state: 'suspense' },
        { bank_reference: 'third', state: 'resolved', resolutions: [{ as: 'customer' }] },
        { bank_reference: 'back', direction: 'out' },
      ]);
    }));
});

test('one reference of the bank settles each of two payments that came under it', () =>
  withOpen(async (payment) => {
    const input = paymentInput(payment.input.connector);
    const { handle } = await openPayment(setting, input);
    const other = trackPayment(setting, input, handle);
    const both = [payment, other];
    // A wait for a result skips time, in which the other one would expire.
    for (const { signal } of both) await signal('settled', FIRST);
    for (const each of both) {
      expect(await each.handle.result()).toMatchObject({ status: 'settled' });
      await each.report('settled', FIRST);
      expect(await each.attention()).toBeNull();
      await expectState(each, { movements: ['in first 1050 applied'] });
      expect(await each.differences()).toEqual([]);
    }
    const rows = (await Promise.all(both.map(readMovements))).flat();
    const named = rows.filter(({ names }) => names.includes('first'));
    expect([rows.length, named.length]).toEqual([2, 1]);
  }));

const ONE = { bank_reference: 'one' };
const NOT_SENT_BACK = 'late_settlement_not_reversed';

describe('late funds', () => {
  test.each<Omit<Row, 'from'>>([
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
      ...{ kinds: ['payment_held', 'payment_resolved'], reversals: ['reversal', 'reversal'] },
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
      reversals: ['reversal', expect.stringMatching(/^reversal:mv_/)],
    },
    {
      title: 'in another currency wait for an operator',
      steps: [['settled', { ...ONE, currency: 'USD' }, 'amount_differs', buildHeld(1_050, 'USD')]],
      ...{ movements: ['in one 1050 suspense'], reversals: [] },
    },
    {
      title: 'that the bank returns before it reports that they came are posted once',
      steps: [
        ['reversed', by('back'), SENT_BACK, {}],
        ['settled', ONE, '', {}],
      ],
      ...{ movements: ['in one 1050 resolved', 'out back 1050 applied'], reversals: [] },
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
  ])('$title', (row) => play({ ...row, from: 'cancelled' }));

  test.each([
    ['different', 'expired', { amount: 100, currency: 'EUR' }, SENT_BACK, 100],
    ['unknown', 'cancelled', {}, NOT_SENT_BACK, undefined],
  ] as const)(
    'of a late authorization that cannot be voided are returned unless their amount is unknown: %s',
    (_which, how, money, attention, amount) => {
      const voidPayment = async () => ({ outcome: 'already_settled', ...money }) as const;
      const story: Story = async (payment) => {
        const { id, told } = payment;
        await payment.report('authorized');
        const kinds = amount === undefined ? [] : ['payment_held'];
        await expectState(payment, { status: how, attention, kinds });
        const instructions = [`voidPayment void:${id}`, `reversePayment reversal:${id}`];
        expect(told.slice(-2)).toEqual(
          amount === undefined ? ['closeSession', instructions[0]] : instructions,
        );
        // The bank's own report is of the same money.
        const settled = { ...ONE, amount: amount ?? 1_050 };
        await payment.report('settled', settled);
        expect(await readMovements(payment)).toMatchObject([settled]);
        await expectState(payment, { rows: buildHeld(settled.amount) });
      };
      return withEnded(how, story, scriptedBank({ voidPayment }));
    },
  );

  const recordReturn = async (resource_id: string) => {
    const { version = 0, transition = 0 } = (await setting.stores.payments.get(resource_id)) ?? {};
    const source = { kind: 'callback', id: `back-${resource_id}` } as const;
    const about = { kind: 'payment', resource_id, at: new Date().toISOString() } as const;
    const report = { source, direction: 'out' } as const;
    await createMovements(buildDeps()).recordReturn({ ...about, report, version, transition });
  };
  const creditMovements = async (id: string) => {
    const movements = await readMovements({ id });
    const taken = movements.map(({ _id, amount }) => ({ id: _id, amount }));
    await inTransaction(setting.mongo, (session) =>
      applyMovements(setting.stores, id, taken, session),
    );
  };

  test.each([
    ['resolved', recordReturn, SENT_BACK],
    ['applied', creditMovements, null],
  ] as const)(
    'that only the record has as %s, as after a reset, are not called refused or reversed',
    (state, changeRecord, attention) => {
      const bank = scriptedBank({
        reversePayment: async ({ payment_id }) => {
          await changeRecord(payment_id);
          return { outcome: 'outdated' };
        },
      });
      const story: Story = async (payment) => {
        await payment.report('settled', ONE);
        expect(await payment.attention()).toBe(attention);
        expect((await readMovements(payment))[0]).toMatchObject({ state });
      };
      return withEnded('cancelled', story, bank);
    },
  );
});

describe('a return that the bank has not answered', () => {
  function silentBank() {
    const { opened, release } = gate();
    let instructions = 0;
    const bank = scriptedBank({
      reversePayment: async () => {
        instructions += 1;
        if (instructions === 1) await opened;
        return { outcome: 'accepted', bank_reference: 'back' };
      },
    });
    return { bank, release };
  }

  test('delays nothing that the bank reports, and cannot be recorded by hand', () => {
    const { bank, release } = silentBank();
    const story: Story = async (payment) => {
      const nothing = wrongState('No money is in suspense.');
      expect(await payment.refusalAfterEnd('mark_reversed')).toEqual(nothing);
      await payment.signalAfterEnd('settled', ONE);
      await payment.becomes({ attention: 'late_money_pending' });
      await expectState(payment, { rows: buildHeld(1_050) });
      const why =
        'The bank is instructed to send the money back. Wait for its answer, or send `give_up_closing`.';
      expect(await payment.refusalAfterEnd('mark_reversed')).toEqual(wrongState(why));
      expect(await refuseResolve(payment, 'loss')).toEqual(wrongState(why));
      await payment.signal('reversed');
      await payment.becomes({ attention: SENT_BACK });
      await expectState(payment, { rows: {} });
      release();
      await payment.handle.result();
      expect(await payment.attention()).toBe(SENT_BACK);
    };
    return withEnded('cancelled', story, bank);
  });

  test('is given up by an operator, who may then say that the money is back', () => {
    const bank = scriptedBank({ reversePayment: () => Promise.reject(new Error('retired')) });
    const story: Story = async (payment) => {
      expect(await payment.refusalAfterEnd('give_up_closing')).toMatchObject(
        wrongState('No session, void or reversal of the payment is open at the bank.'),
      );
      await payment.signalAfterEnd('settled', ONE);
      await payment.becomes({ attention: 'late_money_pending' });
      await payment.actAfterEnd('give_up_closing');
      await payment.becomes({ attention: NOT_SENT_BACK });
      await payment.handle.result();
      await saveHistory(payment.handle, 'payment-reversal-given-up');
      await expectState(payment, { rows: buildHeld(1_050) });
      await payment.actAfterEnd('mark_reversed');
      await payment.handle.result();
      expect((await readMovements(payment))[0]).toMatchObject({ state: 'resolved' });
    };
    return withEnded('cancelled', story, bank);
  });

  test('that is given up while the bank executes it counts as the bank answers', () => {
    const { bank, release } = silentBank();
    const story: Story = async (payment) => {
      await payment.signalAfterEnd('settled', ONE);
      await eventually('the instruction', async () =>
        bank.told.some((line) => line.startsWith('reversePayment')),
      );
      await payment.actAfterEnd('give_up_closing');
      release();
      await payment.handle.result();
      expect(await payment.attention()).toBe(SENT_BACK);
    };
    return withEnded('cancelled', story, bank);
  });

  test('is sent again by a new run, with the same id', () => {
    const { bank, release } = silentBank();
    const listReturns = () => bank.told.filter((line) => line.startsWith('reversePayment'));
    const story: Story = async (payment) => {
      await payment.signalAfterEnd('settled', ONE);
      await eventually('the instruction', async () => listReturns().length === 1);
      await payment.handle.terminate('a test');
      await payment.restart();
      await payment.handle.result();
      release();
      expect(listReturns()).toEqual(Array(2).fill(`reversePayment reversal:${payment.id}`));
      expect(await payment.attention()).toBe(SENT_BACK);
      await saveHistory(payment.handle, 'payment-resumed-reversal');
    };
    return withEnded('cancelled', story, bank);
  });
});

/** A report of the bank, or an act of an operator or the merchant. */
type DisputeStep = [
  what: PaymentCallbackName | `act ${PaymentAct}` | 'refund' | 'spend' | 'reverse',
  facts: { amount?: number | null; operation_id?: string; [fact: string]: unknown },
  /** Part of the refusal, or of the balances and the payment then. */
  expected?: string | Partial<Awaited<ReturnType<typeof readState>>>,
];

async function readState({ id, money, stored }: TrackedPayment) {
  const { attention, disputed_at } = await stored();
  const disputes = await setting.stores.disputes.forPayment(id);
  const differing = disputes.flatMap((dispute) => dispute.attention ?? []);
  return { ...(await money()), attention, disputed_at, differing };
}

/** Reports as the bank does, until the dispute, or an operator, has it. */
async function reportDispute(
  { id, report }: TrackedPayment,
  name: PaymentCallbackName,
  facts: object,
): Promise<void> {
  const callback_id = randomUUID();
  await report(name, { callback_id, ...facts });
  await eventually(`${name} to be applied`, async () => {
    const { applied_callbacks = [], attention } = (await setting.stores.payments.get(id)) ?? {};
    const rows = await setting.stores.callbacks.forResource(id);
    const isUnapplied = rows.some(({ body }) => body.callback_id === callback_id);
    return applied_callbacks.includes(callback_id) || isUnapplied || attention !== null;
  });
}

async function playDispute(payment: TrackedPayment, [what, facts]: DisputeStep): Promise<unknown> {
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
      return await reportDispute(payment, what as PaymentCallbackName, facts);
  }
}

/** Settles a payment of 1,050, runs the steps of its disputes, and verifies the ledger. */
const withSteps = (steps: DisputeStep[], story: (payment: TrackedPayment) => Promise<void>) =>
  withPayment(scriptedBank(), async (payment) => {
    await payment.endBy('settled');
    for (const step of steps) {
      const [, , expected] = step;
      if (typeof expected === 'string') {
        const error = await playDispute(payment, step).catch((failure: unknown) => failure);
        const { type, code = type, message } = Object(Object(error).cause ?? error);
        expect(`${code}: ${message}`).toContain(expected);
      } else {
        await playDispute(payment, step);
        expect(await readState(payment)).toMatchObject(expected ?? {});
      }
    }
    await story(payment);
    expect(await payment.differences()).toEqual([]);
  });

test('a dispute whose entry MongoDB refuses is shown to operators, and not tried again', () =>
  withPayment(scriptedBank(), async (payment) => {
    await payment.endBy('settled');
    await playDispute(payment, ['spend', { amount: 1 }]);
    const correct = await breakBook(setting.stores, `${payment.account_id}:sandbox:EUR`);
    await payment.report('dispute_opened', FIRST_DISPUTE);
    const dispute = await eventually('the dispute', async () => {
      const [first] = await setting.stores.disputes.forPayment(payment.id);
      return first?.attention === 'books_refused' && first;
    });
    const handle = setting.env.client.workflow.getHandle(`dispute:${dispute._id}`);
    await shows(handle, 'The books refuse payment_dispute_opened: ');
    const refused = payment.actAfterEnd('claw_back', ACT).catch((error: unknown) => error);
    expect(await refused).toMatchObject({ cause: { type: 'books_refused' } });
    await correct();
    await reportDispute(payment, 'dispute_opened', FIRST_DISPUTE);
    const disputes = await setting.stores.disputes.forPayment(payment.id);
    expect(disputes).toMatchObject([{ name: 'D1', status: 'needs_response', amount: 400 }]);
    expect(await payment.differences()).toEqual([]);
  }));

const NAMED = { bank_reference: 'W-1' };
const FIRST_DISPUTE = { dispute_id: 'D1', amount: 400, currency: 'EUR', fee: 15, ...NAMED };
const WON = { dispute_id: 'D2', amount: 300, currency: 'EUR' };
const [DISPUTED, TOO_MUCH] = ['payment_disputed', 'refund_amount_exceeds_balance'];

const OPENED: DisputeStep = ['dispute_opened', { dispute_id: 'D1', amount: 400, fee: 15 }];

// What differs is in test/domain/dispute.test.ts.
test('a dispute that differs changes nothing and waits for an operator', () =>
  withSteps([], async (payment) => {
    const balances = await payment.money();
    await playDispute(payment, ['dispute_opened', { amount: 1_051 }]);
    const differing = ['dispute_differs'];
    const unchanged = { ...balances, attention: null, disputed_at: undefined, differing };
    await eventually('the reason', async () => (await readState(payment)).differing.length > 0);
    expect(await readState(payment)).toEqual(unchanged);
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

function describeDispute({ name, status, amount, fee, transfers }: DisputeDocument): string {
  const each = transfers.map(
    (transfer) => `${transfer.direction} ${transfer.amount} held ${transfer.held}`,
  );
  return `${name} ${status} ${amount} ${fee}: ${each.join(', ')}`;
}

interface DisputeRow {
  title: string;
  steps: DisputeStep[];
  stored: object;
  /** In words, the oldest first. */
  disputes?: string[];
  entries?: string[];
  /** In words, after that of the payment. */
  movements?: unknown[];
  unapplied?: string[];
}

test.each<DisputeRow>([
  {
    title: 'several disputes each debit their amount and fee at once, and what is won is credited',
    steps: [
      ['dispute_opened', FIRST_DISPUTE, { available: 650, clearing: -650 }],
      ['dispute_opened', FIRST_DISPUTE, { available: 650, clearing: -650 }],
      ['refund', { amount: 1 }, DISPUTED],
      ['spend', { amount: 615 }],
      ['dispute_opened', { dispute_id: 'D2', amount: 300 }, { available: 0, receivable: -265 }],
      ['dispute_lost', { dispute_id: 'D1' }],
      ['refund', { amount: 1 }, DISPUTED],
      ['dispute_won', WON, { available: 300, receivable: -265 }],
      ['dispute_won', WON, { available: 300, receivable: -265 }],
      ['refund', { amount: 651 }, TOO_MUCH],
      ['refund', { amount: 300 }],
    ],
    stored: { attention: null, disputed: 400, disputes_open: 0 },
    disputes: ['D1 lost 400 15: out 400 held 400', 'D2 won 0 0: out 300 held 35, in 300 held 0'],
    entries: [
      'payment_settled:ID',
      'payment_dispute_opened:ID:D1',
      'payment_dispute_opened:ID:D2',
      'payment_dispute_won:ID:D2',
    ],
    movements: ['out W-1 400 applied', 'out - 300 applied', 'in - 300 applied'],
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
      disputed: 1_050,
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
      ['dispute_lost', { dispute_id: 'D1' }, { available: 200 }],
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
    stored: { disputed: 1_050, disputes_open: 1 },
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
    stored: { disputed: 0 },
    disputes: [1_050, 100].map((sum, n) =>
      expect.stringMatching(`won 0 0: out ${sum} held ${n === 0 ? 50 : 49}, in ${sum} held 0`),
    ),
    movements: [1_050, 100].flatMap((sum) => [`out - ${sum} applied`, `in - ${sum} applied`]),
  },
])('$title', ({ steps, stored, disputes, entries, movements, unapplied }) =>
  withSteps(steps, async (payment) => {
    const { id, handle } = payment;
    expect(await payment.stored()).toMatchObject(stored);
    const rows = (await setting.stores.disputes.forPayment(id)).map(describeDispute);
    expect(rows).toEqual(disputes ?? rows);
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
