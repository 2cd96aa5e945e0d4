import { createPaymentMoney } from '../../../activities/payment-money';
import { createLogger } from '../../../src/base/log';
import { inTransaction } from '../../../src/base/mongo';
import type { PaymentCallbackName } from '../../../src/domain/callback/callback';
import { saveHistory } from '../../support/histories';
import { eventually } from '../../support/http';
import {
  callback,
  openPayment,
  paymentInput,
  type ScriptedBank,
  scriptedBank,
  useWorkflowSetting,
  withBank,
} from '../../support/workflow-setting';
import { isAt, refusalOf } from '../lifecycles';
import {
  ACT,
  actAfterEnd,
  bookOf,
  differencesOf,
  reportAfterEnd,
  resume,
  storedPayment,
} from './setting';

const setting = useWorkflowSetting();

interface Opened {
  handle: Awaited<ReturnType<typeof openPayment>>['handle'];
  id: string;
  account: string;
}

async function opened(
  story: (of: Opened) => Promise<void>,
  { bank = scriptedBank() }: { bank?: ScriptedBank } = {},
): Promise<void> {
  await withBank(setting, bank, async (connector) => {
    const input = paymentInput(connector);
    const { handle } = await openPayment(setting, input);
    const { payment_id: id, account_id: account } = input;
    await isAt(handle, 'awaiting_customer');
    await story({ handle, id, account });
    expect(await differencesOf(setting, id)).toEqual([]);
    expect(await differencesOf(setting, account)).toEqual([]);
  });
}

async function ended(
  how: 'cancelled' | 'settled',
  story: (of: Opened) => Promise<void>,
  bank = scriptedBank(),
): Promise<void> {
  const story2 = async (of: Opened) => {
    if (how === 'settled') await of.handle.signal('settled', callback({ bank_reference: 'first' }));
    else {
      const args: [object] = [{ by: 'merchant' }];
      await of.handle.executeUpdate<unknown, [object]>('cancel', { args });
    }
    await of.handle.result();
    await story(of);
  };
  await opened(story2, { bank });
}

const act = ({ handle }: Opened, name: string, more: object = {}) =>
  handle.executeUpdate<unknown, [object]>(name, { args: [{ ...ACT, ...more }] });
const kindsOf = async (id: string) =>
  (await setting.stores.ledger.forResource(id)).map(({ kind }) => kind);
const receiptsOf = async (id: string) => (await storedPayment(setting, id)).receipts ?? [];
const until = (id: string, attention: string) =>
  eventually(attention, async () => (await storedPayment(setting, id)).attention === attention);

async function reportOther({ handle, id }: Opened, money: object): Promise<void> {
  await handle.signal('settled', callback({ bank_reference: 'odd', ...money }));
  await until(id, 'amount_differs');
}

describe('a settlement of another amount', () => {
  // It comes first: a payment that another test leaves open would hold the clock.
  test('keeps the payment from its end: it is not cancelled, and does not expire', async () => {
    await opened(async (of) => {
      const { handle, id } = of;
      await reportOther(of, { amount: 999 });
      const args: [object] = [{ by: 'merchant' }];
      const cancel = handle.executeUpdate<unknown, [object]>('cancel', { args });
      expect(await refusalOf(cancel)).toMatchObject({ code: 'cannot_cancel' });
      await setting.env.sleep('31 minutes');
      expect((await storedPayment(setting, id)).status).toBe('awaiting_customer');
      // Once it is back with the customer, the payment expires.
      await handle.signal('reversed', callback({ amount: 999 }));
      expect(await handle.result()).toMatchObject({ status: 'expired' });
      expect(await storedPayment(setting, id)).toMatchObject({ attention: null });
      await saveHistory(handle, 'payment-receipt-reversed-expired');
    });
  });

  test.each([
    ['EUR', { amount: 1_049, currency: 'EUR' }],
    ['USD', { amount: 1_050, currency: 'USD' }],
  ])('in %s is in suspense at once, in the book of its currency', async (currency, money) => {
    await opened(async (of) => {
      const { id, account } = of;
      await reportOther(of, { ...money, value_date: '2026-03-01' });
      expect(await receiptsOf(id)).toEqual([
        {
          ...{ id: 'odd', bank_reference: 'odd', ...money, value_date: '2026-03-01' },
          callback_id: expect.any(String),
          received_at: expect.any(String),
          ...{ reason: 'amount_differs', state: 'suspense' },
        },
      ]);
      expect(await setting.stores.ledger.forResource(id)).toMatchObject([
        {
          _id: `payment_receipt_held:${id}:odd`,
          book: `${account}:sandbox:${currency}`,
          value_date: '2026-03-01',
        },
      ]);
      expect(await storedPayment(setting, id)).toMatchObject({ status: 'awaiting_customer' });
      await act(of, 'mark_reversed');
      expect(await storedPayment(setting, id)).toMatchObject({ attention: null });
      expect(await receiptsOf(id)).toMatchObject([{ state: 'returned' }]);
      expect(await bookOf(setting, account)).toMatchObject({ suspense: 0, clearing: 0 });
    });
  });

  test('reported again, or by less, is posted once, and settles nothing', async () => {
    await opened(async (of) => {
      const { handle, id, account } = of;
      await reportOther(of, { amount: 999 });
      await handle.signal('settled', callback({ bank_reference: 'odd', amount: 999 }));
      await handle.signal('settled', callback({ bank_reference: 'odd', amount: 1_050 }));
      await handle.signal('settled', callback());
      await handle.signal('authorized', callback());
      await handle.signal('expired', callback());
      await eventually('all reports', async () => {
        const rows = await setting.stores.callbacks.forResource(id);
        return rows.filter(({ unapplied }) => unapplied !== null).length === 6;
      });
      expect(await storedPayment(setting, id)).toMatchObject({
        status: 'awaiting_customer',
        attention: 'amount_differs',
      });
      expect(await bookOf(setting, account)).toMatchObject({ suspense: 999, clearing: -999 });
    });
  });

  test.each([
    ['what came', {}, 999, ['suspense.late -999', 'balances.main.available 999']],
    [
      'more, as the bank says then',
      { amount: 1_050 },
      1_050,
      ['clearing.BANK -51', 'suspense.late -999', 'balances.main.available 1050'],
    ],
  ])('is credited from suspense: %s', async (_what, more, settled_amount, lines) => {
    await opened(async (of) => {
      const { handle, id, account } = of;
      await reportOther(of, { amount: 999 });
      await act(of, 'mark_settled', more);
      expect(await handle.result()).toMatchObject({ status: 'settled' });
      expect(await storedPayment(setting, id)).toMatchObject({ settled_amount, attention: null });
      expect(await receiptsOf(id)).toMatchObject([{ state: 'credited' }]);
      const entries = await setting.stores.ledger.forResource(id);
      const legs = entries.find(({ kind }) => kind === 'payment_settled')?.legs ?? [];
      const text = legs.map((leg) => `${leg.account} ${leg.amount}`);
      expect(text.map((line) => line.replace(/clearing\.\S+/, 'clearing.BANK'))).toEqual(lines);
      expect(await bookOf(setting, account)).toMatchObject({
        ...{ available: settled_amount, clearing: -settled_amount, suspense: 0 },
      });
      // The bank repeats the same money, now that the payment is settled.
      const again = callback({ bank_reference: 'odd', amount: 999 });
      await reportAfterEnd(setting, id, 'settled', again);
      expect(await storedPayment(setting, id)).toMatchObject({ attention: null });
      expect(await kindsOf(id)).toHaveLength(2);
    });
  });

  test('stays in suspense over a failure, a chargeback and every other reason', async () => {
    await opened(async (of) => {
      const { handle, id, account } = of;
      await reportOther(of, { amount: 999 });
      await act(of, 'mark_failed');
      expect(await handle.result()).toMatchObject({ status: 'failed' });
      const late = callback({ bank_reference: 'late', amount: 1_050 });
      await reportAfterEnd(setting, id, 'settled', late);
      expect(await storedPayment(setting, id)).toMatchObject({ attention: 'amount_differs' });
      expect(await bookOf(setting, account)).toMatchObject({ suspense: 2_049 });
      await actAfterEnd(setting, id, 'mark_reversed');
      expect(await storedPayment(setting, id)).toMatchObject({ attention: null });
      expect(await bookOf(setting, account)).toMatchObject({ suspense: 0, clearing: 0 });
    });
  });
});

describe('a second settlement', () => {
  test.each([
    ['another reference', { bank_reference: 'second' }, true],
    ['no reference', {}, true],
    ['the same reference', { bank_reference: 'first' }, false],
  ])('with %s', async (_which, report, isSecond) => {
    await ended('settled', async ({ id, account }) => {
      const handle = await reportAfterEnd(setting, id, 'settled', callback(report));
      const attention = isSecond ? 'second_settlement' : null;
      expect(await storedPayment(setting, id)).toMatchObject({ status: 'settled', attention });
      const { available, suspense = 0 } = await bookOf(setting, account);
      expect({ available, suspense }).toEqual({ available: 1_050, suspense: isSecond ? 1_050 : 0 });
      if (!isSecond) return;
      await reportAfterEnd(setting, id, 'clawed_back', callback());
      await actAfterEnd(setting, id, 'claw_back');
      expect(await storedPayment(setting, id)).toMatchObject({ attention });
      if ('bank_reference' in report) {
        await reportAfterEnd(setting, id, 'settled', callback(report));
        await actAfterEnd(setting, id, 'mark_reversed');
      } else await reportAfterEnd(setting, id, 'reversed', callback({ bank_reference: 'back' }));
      expect(await storedPayment(setting, id)).toMatchObject({ attention: null });
      expect(await bookOf(setting, account)).toMatchObject({ suspense: 0 });
      expect(await receiptsOf(id)).toMatchObject([
        { reason: 'second_settlement', state: 'returned' },
      ]);
      await saveHistory(handle, 'payment-second-settlement');
    });
  });
});

describe('late funds', () => {
  test('each is posted and sent back by itself, once', async () => {
    const bank = scriptedBank();
    const reversals = () => bank.told.filter((line) => line.startsWith('reversePayment'));
    await ended(
      'cancelled',
      async ({ id, account }) => {
        const late = (name: PaymentCallbackName, report: object) =>
          reportAfterEnd(setting, id, name, callback(report));
        await late('settled', { bank_reference: 'one' });
        await late('settled', { bank_reference: 'two', amount: 700 });
        expect(reversals()).toEqual([
          `reversePayment reversal:${id}`,
          `reversePayment reversal:${id}:two`,
        ]);
        expect(await bookOf(setting, account)).toMatchObject({ suspense: 1_750 });
        await late('reversed', { bank_reference: 'back-two', amount: 700 });
        await late('reversed', { bank_reference: 'back-two', amount: 700 });
        expect(await bookOf(setting, account)).toMatchObject({ suspense: 1_050 });
        await late('reversed', {});
        await late('settled', { bank_reference: 'two', amount: 700 });
        expect(reversals()).toHaveLength(2);
        expect(await receiptsOf(id)).toMatchObject([
          { id: 'one', state: 'returned' },
          { id: 'two', state: 'returned', returned_by: 'back-two' },
        ]);
        expect(await bookOf(setting, account)).toMatchObject({ suspense: 0, clearing: 0 });
        expect((await storedPayment(setting, id)).attention).toBe('late_settlement_reversed');
      },
      bank,
    );
  });

  test('that are back before the bank reports that they came are posted once', async () => {
    await ended('cancelled', async ({ id, account }) => {
      await reportAfterEnd(setting, id, 'reversed', callback({ bank_reference: 'back' }));
      await reportAfterEnd(setting, id, 'settled', callback({ bank_reference: 'one' }));
      expect(await kindsOf(id)).toEqual(['payment_late_received', 'payment_late_reversed']);
      expect(await bookOf(setting, account)).toMatchObject({ suspense: 0, clearing: 0 });
      expect(await receiptsOf(id)).toMatchObject([{ bank_reference: 'one', state: 'returned' }]);
    });
  });
});

describe('an instruction without an answer', () => {
  const signal = (id: string, name: PaymentCallbackName, report: object) =>
    setting.env.client.workflow.signalWithStart('payment', {
      workflowId: `payment:${id}`,
      taskQueue: setting.queues.lifecycle,
      args: [{ payment_id: id, resume: true, request_id: 'late' }],
      signal: name,
      signalArgs: [callback(report)],
    });

  function silentBank() {
    let answer = () => {};
    const silence = new Promise<void>((resolve) => {
      answer = resolve;
    });
    let asked = 0;
    const bank = scriptedBank({
      reversePayment: async () => {
        asked += 1;
        if (asked === 1) await silence;
        return { outcome: 'accepted', bank_reference: 'back' };
      },
    });
    return { bank, answer };
  }

  test('holds up nothing: what the bank reports is applied, an act is refused', async () => {
    const { bank, answer } = silentBank();
    await ended(
      'cancelled',
      async ({ id, account }) => {
        const handle = await signal(id, 'settled', { bank_reference: 'one' });
        await until(id, 'late_money_pending');
        const early = await refusalOf(actAfterEnd(setting, id, 'mark_reversed'));
        expect(early).toMatchObject({ code: 'wrong_state' });
        await handle.signal('reversed', callback());
        await until(id, 'late_settlement_reversed');
        expect(await bookOf(setting, account)).toMatchObject({ suspense: 0, clearing: 0 });
        answer();
        await handle.result();
        expect(await storedPayment(setting, id)).toMatchObject({
          attention: 'late_settlement_reversed',
        });
      },
      bank,
    );
  });

  test('is given again by a new run, with the same id', async () => {
    const { bank, answer } = silentBank();
    await ended(
      'cancelled',
      async ({ id }) => {
        const handle = await signal(id, 'settled', { bank_reference: 'one' });
        const reversals = () => bank.told.filter((line) => line.startsWith('reversePayment'));
        await eventually('the instruction', async () => reversals().length === 1);
        await handle.terminate('a test');
        const again = await resume(setting, id);
        await again.result();
        answer();
        expect(reversals()).toEqual(Array(2).fill(`reversePayment reversal:${id}`));
        expect(await storedPayment(setting, id)).toMatchObject({
          attention: 'late_settlement_reversed',
        });
        await saveHistory(again, 'payment-resumed-reversal');
      },
      bank,
    );
  });
});

test('late funds that the record has back already are not taken for refused', async () => {
  const { mongo, stores, env, queues } = setting;
  const log = createLogger('test', 'silent');
  const deps = { mongo, stores, temporal: env.client, webhookQueue: queues.webhooks, log };
  const bank = scriptedBank({
    // Only the record knows of it, as after a reset of the workflow.
    reversePayment: async ({ payment_id }) => {
      const ids = (await receiptsOf(payment_id)).map(({ id }) => id);
      const booking = { payment_id, at: new Date().toISOString(), ids };
      await createPaymentMoney(deps).recordReversal(booking);
      return { outcome: 'outdated' };
    },
  });
  const story = async ({ id }: Opened) => {
    await reportAfterEnd(setting, id, 'settled', callback({ bank_reference: 'one' }));
    expect(await storedPayment(setting, id)).toMatchObject({
      attention: 'late_settlement_reversed',
    });
  };
  await ended('cancelled', story, bank);
});

test('late funds that an operator has credited meanwhile are not called reversed', async () => {
  const { mongo, stores } = setting;
  const bank = scriptedBank({
    // Only the record knows of it, as after a reset of the workflow.
    reversePayment: async ({ payment_id }) => {
      for (const { id } of await receiptsOf(payment_id)) {
        const before = { id, state: 'suspense' } as const;
        await inTransaction(mongo, (session) =>
          stores.payments.changeReceipt(payment_id, before, { state: 'credited' }, session),
        );
      }
      return { outcome: 'outdated' };
    },
  });
  // No entry credits it here, so the books are not compared.
  await withBank(setting, bank, async (connector) => {
    const input = paymentInput(connector);
    const { handle } = await openPayment(setting, input);
    const id = input.payment_id;
    await handle.executeUpdate<unknown, [object]>('cancel', { args: [{ by: 'merchant' }] });
    await handle.result();
    await reportAfterEnd(setting, id, 'settled', callback({ bank_reference: 'one' }));
    expect(await receiptsOf(id)).toMatchObject([{ state: 'credited' }]);
    expect(await storedPayment(setting, id)).toMatchObject({ attention: null });
  });
});

describe('a late authorization that has settled', () => {
  test.each([
    ['in a known amount', { amount: 1_050, currency: 'EUR' }, 'late_settlement_reversed'],
    ['in an unknown amount', {}, 'late_settlement_not_reversed'],
  ])('%s', async (_which, money, attention) => {
    const voidPayment = async () => ({ outcome: 'already_settled', ...money }) as const;
    const bank = scriptedBank({ voidPayment });
    await ended(
      'cancelled',
      async ({ id, account }) => {
        await reportAfterEnd(setting, id, 'authorized', callback());
        expect(await storedPayment(setting, id)).toMatchObject({ attention });
        expect(await kindsOf(id)).toHaveLength('amount' in money ? 1 : 0);
        // The bank's own report is of the same money.
        await reportAfterEnd(setting, id, 'settled', callback({ bank_reference: 'one' }));
        expect(await receiptsOf(id)).toMatchObject([{ bank_reference: 'one', amount: 1_050 }]);
        expect(await bookOf(setting, account)).toMatchObject({ suspense: 1_050 });
      },
      bank,
    );
  });
});
