import { createPaymentMoney } from '../../../activities/payment-money';
import { inTransaction } from '../../../src/base/mongo';
import type { PaymentCallbackName } from '../../../src/domain/callback/callback';
import { gate } from '../../support/gate';
import { saveHistory } from '../../support/histories';
import { eventually } from '../../support/http';
import { readAccountRows } from '../../support/trial-balance';
import {
  callback,
  openRefund,
  refundInput,
  type ScriptedBank,
  scriptedBank,
} from '../../support/workflow-setting';
import { ACT, isAt, refusalOf, type TrackedPayment, useLifecycles } from '../lifecycles';

/**
 * Holds docs/ledger.md#money-that-goes-wrong for payments of 1,050. A test that lets time pass comes
 * before the ones that leave an instruction without an answer: those hold the clock.
 */
const { setting, buildDeps, withPayment } = useLifecycles();

type Story = (payment: TrackedPayment) => Promise<unknown>;

const MERCHANT = { by: 'merchant' };

/** Runs the story of a payment that waits for its customer, and verifies the ledger afterwards. */
const withOpen = (story: Story, bank: ScriptedBank = scriptedBank()) =>
  withPayment(bank, async (payment) => {
    await isAt(payment.handle, 'awaiting_customer');
    await story(payment);
    expect(await payment.differences()).toEqual([]);
  });

const withEnded = (how: 'cancelled' | 'expired' | 'settled', story: Story, bank?: ScriptedBank) =>
  withOpen(async (payment) => {
    if (how === 'settled') await payment.signal('settled', { bank_reference: 'first' });
    if (how === 'cancelled') await payment.act('cancel', MERCHANT);
    expect(await payment.handle.result()).toMatchObject({ status: how });
    await story(payment);
  }, bank);

const readEntries = ({ id }: TrackedPayment) => setting.stores.ledger.forResource(id);

const readRows = ({ account_id }: TrackedPayment) => readAccountRows(setting, account_id);

/** Builds the trial balance of a merchant whose only money is in suspense. */
function buildHeld(amount: number, currency = 'EUR'): Record<string, number> {
  const unit = currency === 'EUR' ? '' : ` ${currency}`;
  return amount === 0 ? {} : { [`suspense.late${unit}`]: amount, [`clearing${unit}`]: -amount };
}

async function reportOdd({ signal, becomes }: TrackedPayment, facts: object): Promise<void> {
  await signal('settled', { bank_reference: 'odd', ...facts });
  await becomes({ attention: 'amount_differs' });
}

describe('a settlement of a different amount', () => {
  test.each([
    ['EUR', 1_049, 'reversed'],
    ['USD', 1_050, 'mark_reversed'],
  ] as const)(
    'in %s is in suspense, and keeps the payment open until it is returned',
    (currency, amount, how) =>
      withOpen(async (payment) => {
        const { id, account_id, handle, stored } = payment;
        const value_date = '2026-03-01';
        await reportOdd(payment, { amount, currency, value_date });
        expect((await stored()).receipts).toEqual([
          {
            ...{ id: 'odd', bank_reference: 'odd', amount, currency, value_date },
            callback_id: expect.any(String),
            received_at: expect.any(String),
            ...{ reason: 'amount_differs', state: 'suspense' },
          },
        ]);
        const book = `${account_id}:sandbox:${currency}`;
        expect(await readEntries(payment)).toMatchObject([
          { _id: `payment_receipt_held:${id}:odd`, book, value_date },
        ]);
        expect(await payment.refusal('cancel', MERCHANT)).toMatchObject({ code: 'cannot_cancel' });
        await setting.env.sleep('31 minutes');
        expect(await stored()).toMatchObject({ status: 'awaiting_customer' });
        if (how === 'reversed') await payment.signal(how, { amount });
        else await payment.act(how);
        expect(await handle.result()).toMatchObject({ status: 'expired' });
        expect(await stored()).toMatchObject({
          attention: null,
          receipts: [{ state: 'returned' }],
        });
        expect(await payment.money()).toMatchObject({ suspense: 0, clearing: 0 });
        if (how === 'reversed') await saveHistory(handle, 'payment-receipt-reversed-expired');
      }),
  );

  test.each([
    ['what came', {}, 999, ['suspense.late -999', 'balances.main.available 999']],
    [
      'more, as the bank says later',
      { amount: 1_050 },
      1_050,
      ['clearing.BANK -51', 'suspense.late -999', 'balances.main.available 1050'],
    ],
  ])(
    'is posted once, whatever is reported, until an operator credits %s',
    (_what, facts, settled_amount, expected) =>
      withOpen(async (payment) => {
        const { signal, stored } = payment;
        await reportOdd(payment, { amount: 999 });
        await signal('settled', { bank_reference: 'odd', amount: 999 });
        await signal('settled', { bank_reference: 'odd', amount: 1_050 });
        for (const name of ['settled', 'authorized', 'expired'] as const) await signal(name);
        await eventually('all reports', async () => (await payment.unapplied()).length === 6);
        const unchanged = { status: 'awaiting_customer', attention: 'amount_differs' };
        expect(await stored()).toMatchObject(unchanged);
        expect(await readRows(payment)).toEqual(buildHeld(999));
        await payment.act('mark_settled', { ...ACT, ...facts });
        expect(await payment.handle.result()).toMatchObject({ status: 'settled' });
        expect(await stored()).toMatchObject({
          ...{ amount: 1_050, settled_amount, attention: null, receipts: [{ state: 'credited' }] },
        });
        const { lines = [] } =
          (await readEntries(payment)).find(({ kind }) => kind === 'payment_settled') ?? {};
        const text = lines.map(({ account, amount }) => `${account} ${amount}`);
        expect(text.map((line) => line.replace(/clearing\.\S+/, 'clearing.BANK'))).toEqual(
          expected,
        );
        expect(await readRows(payment)).toEqual({
          ...{ 'balances.main.available': settled_amount, clearing: -settled_amount },
        });
        // The bank repeats the same money, now that the payment is settled.
        await payment.report('settled', { bank_reference: 'odd', amount: 999 });
        expect(await payment.attention()).toBeNull();
        expect(await payment.entryKinds()).toHaveLength(2);
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

  test('stays in suspense after a failure and next to late funds', () =>
    withOpen(async (payment) => {
      await reportOdd(payment, { amount: 999 });
      await payment.act('mark_failed');
      expect(await payment.handle.result()).toMatchObject({ status: 'failed' });
      await payment.report('settled', { bank_reference: 'late', amount: 1_050 });
      expect(await payment.attention()).toBe('amount_differs');
      expect(await payment.money()).toMatchObject({ suspense: 2_049 });
      await payment.actAfterEnd('mark_reversed');
      expect(await payment.attention()).toBeNull();
      expect(await payment.money()).toMatchObject({ suspense: 0, clearing: 0 });
    }));

  test.each([
    ['the true settlement', [], 'payment-amount-differs-unread'],
    [
      'a malformed callback and the true settlement',
      [{ callback_id: 7 }],
      'payment-malformed-under-mark',
    ],
  ])('keeps its attention reason over %s', (_what, malformed, history) =>
    withOpen(async (payment) => {
      await reportOdd(payment, { amount: 1_049 });
      for (const each of malformed) await payment.handle.signal('settled', each);
      const settled = await payment.endBy('settled', { amount: 1_050 });
      expect(settled).toMatchObject({ status: 'settled' });
      expect(await payment.attention()).toBe('amount_differs');
      await saveHistory(payment.handle, history);
    }),
  );
});

test('an authorization of a different amount posts nothing and needs attention', () =>
  withOpen(async (payment) => {
    await payment.signal('authorized', { amount: 1_051, currency: 'EUR' });
    await payment.becomes({ attention: 'amount_differs' });
    expect(await payment.stored()).toMatchObject({ status: 'awaiting_customer' });
    expect(await payment.entryKinds()).toEqual([]);
    await payment.act('mark_failed');
    expect(await payment.attention()).toBeNull();
  }));

test.each([
  ['another reference', { bank_reference: 'second' }, true],
  ['no reference', {}, true],
  ['the same reference', { bank_reference: 'first' }, false],
])('another settlement, with %s, is in suspense unless it repeats the first', (...row) => {
  const [reference, facts, isSecond] = row;
  return withEnded('settled', async (payment) => {
    await payment.report('settled', facts);
    const attention = isSecond ? 'second_settlement' : null;
    expect(await payment.stored()).toMatchObject({ status: 'settled', attention });
    const held = isSecond ? { 'suspense.late': 1_050, clearing: -2_100 } : { clearing: -1_050 };
    expect(await readRows(payment)).toEqual({ 'balances.main.available': 1_050, ...held });
    if (!isSecond) return;
    await payment.report('clawed_back');
    await payment.actAfterEnd('claw_back');
    expect(await payment.attention()).toBe(attention);
    if (reference === 'another reference') {
      await payment.report('settled', facts);
      await payment.actAfterEnd('mark_reversed');
    } else await payment.report('reversed', { bank_reference: 'back' });
    const returned = { reason: 'second_settlement', state: 'returned' };
    expect(await payment.stored()).toMatchObject({ attention: null, receipts: [returned] });
    expect(await payment.money()).toMatchObject({ suspense: 0 });
    await saveHistory(payment.handle, 'payment-second-settlement');
  });
});

const [SENT_BACK, NOT_SENT_BACK] = ['late_settlement_reversed', 'late_settlement_not_reversed'];
const RECEIVED = 'payment_late_received EUR';
const REVERSED = 'payment_late_reversed EUR';
const ONE = { bank_reference: 'one' };
const TWO = { bank_reference: 'two', amount: 700 };
const BACK_TWO = { bank_reference: 'back-two', amount: 700 };

/** A report or act; then what is in suspense, the attention reason, and the returns the bank got. */
type LateStep = [
  name: PaymentCallbackName | 'mark_reversed',
  facts: object,
  suspense: number,
  attention: string | null,
  returns?: string[],
];

describe('late funds', () => {
  test.each<{ title: string; steps: LateStep[]; entries: string[]; receipts: object[] }>([
    {
      title: 'are in suspense until the bank has returned them, and count once',
      steps: [
        ['settled', ONE, 1_050, SENT_BACK],
        // Sent again under the same id.
        ['settled', ONE, 1_050, SENT_BACK, [' 1050', ' 1050']],
        ['reversed', { value_date: '2026-03-02' }, 0, SENT_BACK, [' 1050', ' 1050']],
        ['reversed', {}, 0, SENT_BACK, [' 1050', ' 1050']],
      ],
      entries: [RECEIVED, REVERSED],
      receipts: [{ id: 'one', state: 'returned' }],
    },
    {
      title: 'of two settlements are posted and returned one by one',
      steps: [
        ['settled', ONE, 1_050, SENT_BACK],
        ['settled', TWO, 1_750, SENT_BACK, [' 1050', ':two 700']],
        ['reversed', BACK_TWO, 1_050, SENT_BACK, [' 1050', ':two 700']],
        ['reversed', BACK_TWO, 1_050, SENT_BACK, [' 1050', ':two 700']],
        ['reversed', {}, 0, SENT_BACK, [' 1050', ':two 700']],
        ['settled', TWO, 0, SENT_BACK, [' 1050', ':two 700']],
      ],
      entries: [RECEIVED, RECEIVED, REVERSED, REVERSED],
      receipts: [
        { id: 'one', state: 'returned' },
        { id: 'two', state: 'returned', returned_by: 'back-two' },
      ],
    },
    {
      title: 'of a different amount are returned in the amount that came',
      steps: [
        ['settled', { ...ONE, amount: 700 }, 700, SENT_BACK, [' 700']],
        ['reversed', { amount: 650 }, 700, 'amount_differs', [' 700']],
        ['reversed', { amount: 700 }, 0, SENT_BACK, [' 700']],
      ],
      entries: [RECEIVED, REVERSED],
      receipts: [{ id: 'one', state: 'returned' }],
    },
    {
      title: 'in another currency wait for an operator',
      steps: [['settled', { ...ONE, currency: 'USD' }, 1_050, 'amount_differs', []]],
      entries: ['payment_receipt_held USD'],
      receipts: [{ id: 'one', state: 'suspense' }],
    },
    {
      title: 'are in suspense when the bank reports their return in another currency',
      steps: [
        ['settled', ONE, 1_050, SENT_BACK],
        ['reversed', { amount: 1_050, currency: 'USD' }, 1_050, 'amount_differs'],
      ],
      entries: [RECEIVED],
      receipts: [{ id: 'one', state: 'suspense' }],
    },
    {
      title: 'that the bank returns before it reports that they came are posted once',
      steps: [
        ['reversed', { bank_reference: 'back' }, 0, SENT_BACK, []],
        ['settled', ONE, 0, SENT_BACK, []],
      ],
      entries: [RECEIVED, REVERSED],
      receipts: [{ bank_reference: 'one', state: 'returned' }],
    },
    {
      title: 'that the bank cannot return are returned by hand, and an operator records it',
      steps: [
        ['settled', ONE, 1_050, SENT_BACK],
        ['reversal_failed', {}, 1_050, NOT_SENT_BACK],
        ['mark_reversed', ACT, 0, null],
      ],
      entries: [RECEIVED, REVERSED],
      receipts: [{ id: 'one', state: 'returned' }],
    },
  ])('$title', async ({ steps, entries, receipts }) => {
    const sent: string[] = [];
    const bank = scriptedBank({
      reversePayment: async ({ instruction_id, amount }) => {
        sent.push(`${instruction_id} ${amount}`);
        return { outcome: 'accepted', bank_reference: 'back' };
      },
    });
    const story: Story = async (payment) => {
      const currency = entries[0]?.split(' ')[1];
      for (const [name, facts, held, attention, returns = [' 1050']] of steps) {
        if (name === 'mark_reversed') await payment.actAfterEnd(name, facts);
        else await payment.report(name, facts);
        expect(await readRows(payment)).toEqual(buildHeld(held, currency));
        expect(await payment.attention()).toBe(attention);
        expect(sent).toEqual(returns.map((each) => `reversal:${payment.id}${each}`));
        expect(await payment.differences()).toEqual([]);
      }
      const books = (await readEntries(payment)).map(({ kind, book }) => [
        kind,
        book.split(':')[2],
      ]);
      expect(books.map((each) => each.join(' '))).toEqual(entries);
      const acts = steps.filter(([name]) => name === 'mark_reversed');
      const audit = acts.map(([what]) => ({ who: 'ada', what }));
      expect(await payment.stored()).toMatchObject({ receipts, audit });
      if (entries.length === 2) await saveHistory(payment.handle, 'payment-late-reversed');
    };
    await withEnded('cancelled', story, bank);
  });

  test.each([
    ['known', 'cancelled', { amount: 1_050, currency: 'EUR' }, SENT_BACK, 1_050],
    ['different', 'expired', { amount: 100, currency: 'EUR' }, SENT_BACK, 100],
    ['unknown', 'cancelled', {}, NOT_SENT_BACK, undefined],
  ] as const)(
    'of a late authorization that cannot be voided are returned unless their amount is unknown: %s',
    (_which, how, money, attention, amount) => {
      const voidPayment = async () => ({ outcome: 'already_settled', ...money }) as const;
      const story: Story = async (payment) => {
        const { id, told } = payment;
        await payment.report('authorized');
        expect(await payment.stored()).toMatchObject({ status: how, attention });
        expect(await payment.entryKinds()).toHaveLength(amount === undefined ? 0 : 1);
        const instructions = [`voidPayment void:${id}`, `reversePayment reversal:${id}`];
        expect(told.slice(-2)).toEqual(
          amount === undefined ? ['closeSession', instructions[0]] : instructions,
        );
        // The bank's own report is of the same money.
        const settled = { ...ONE, amount: amount ?? 1_050 };
        await payment.report('settled', settled);
        expect(await payment.stored()).toMatchObject({ receipts: [settled] });
        expect(await readRows(payment)).toEqual(buildHeld(settled.amount));
      };
      return withEnded(how, story, scriptedBank({ voidPayment }));
    },
  );

  const recordReversal = async (payment_id: string, ids: string[]) => {
    const at = new Date().toISOString();
    const { version = 0, transition = 0 } = (await setting.stores.payments.get(payment_id)) ?? {};
    const call = { payment_id, at, ids, version, transition };
    await createPaymentMoney(buildDeps()).recordReversal(call);
  };
  const creditReceipts = async (payment_id: string, ids: string[]) => {
    const { payments } = setting.stores;
    for (const id of ids) {
      const before = { id, state: 'suspense' } as const;
      await inTransaction(setting.mongo, (session) =>
        payments.changeReceipt(payment_id, before, { state: 'credited' }, session),
      );
    }
  };

  test.each([
    ['returned', recordReversal, SENT_BACK],
    ['credited', creditReceipts, null],
  ] as const)(
    'that only the record has as %s, as after a reset, are not called refused or reversed',
    (state, changeRecord, attention) => {
      const bank = scriptedBank({
        reversePayment: async ({ payment_id }) => {
          const { receipts } = (await setting.stores.payments.get(payment_id)) ?? {};
          await changeRecord(payment_id, receipts?.map(({ id }) => id) ?? []);
          return { outcome: 'outdated' };
        },
      });
      const story: Story = async (payment) => {
        await payment.report('settled', ONE);
        expect(await payment.stored()).toMatchObject({ attention, receipts: [{ state }] });
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
      expect(await payment.refusalAfterEnd('mark_reversed')).toEqual({
        code: 'wrong_state',
        message: 'No money of the payment is in suspense.',
      });
      await payment.signalAfterEnd('settled', ONE);
      await payment.becomes({ attention: 'late_money_pending' });
      expect(await payment.money()).toMatchObject({ suspense: 1_050, clearing: -1_050 });
      expect(await payment.refusalAfterEnd('mark_reversed')).toMatchObject({ code: 'wrong_state' });
      await payment.signal('reversed');
      await payment.becomes({ attention: SENT_BACK });
      expect(await payment.money()).toMatchObject({ suspense: 0, clearing: 0 });
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
