import { saveHistory } from '../../support/histories';
import { eventually } from '../../support/http';
import {
  callback,
  openPayment,
  openRefund,
  paymentInput,
  refundInput,
  type ScriptedBank,
  scriptedBank,
  settledPayment,
  useWorkflowSetting,
  withBank,
} from '../../support/workflow-setting';
import { isAt, refusalOf } from '../lifecycles';
import { ACT, actAfterEnd, bookOf, differencesOf, reportAfterEnd, storedPayment } from './setting';

const setting = useWorkflowSetting();

async function opened(bank: ScriptedBank, story: (of: Opened) => Promise<void>): Promise<void> {
  await withBank(setting, bank, async (connector) => {
    const input = paymentInput(connector);
    const { handle } = await openPayment(setting, input);
    await isAt(handle, 'awaiting_customer');
    await story({ handle, id: input.payment_id, account: input.account_id });
  });
}

interface Opened {
  handle: Awaited<ReturnType<typeof openPayment>>['handle'];
  id: string;
  account: string;
}

const attentionOf = async (id: string) => (await storedPayment(setting, id)).attention;
const postingsOf = async (id: string) => await setting.stores.ledger.forResource(id);
const kindsOf = async (id: string) => (await postingsOf(id)).map(({ kind }) => kind);

describe('a bank that speaks of other money', () => {
  test('authorized: nothing is booked, operators are told', async () => {
    await opened(scriptedBank(), async ({ handle, id }) => {
      await handle.signal('authorized', callback({ amount: 1_051, currency: 'EUR' }));
      await eventually('the mark', async () => (await attentionOf(id)) === 'amount_differs');
      expect(await storedPayment(setting, id)).toMatchObject({ status: 'awaiting_customer' });
      expect(await kindsOf(id)).toEqual([]);
      await handle.executeUpdate<unknown, [object]>('mark_failed', { args: [ACT] });
      expect(await attentionOf(id)).toBeNull();
    });
  });

  test('a payment that the bank ends after all keeps the mark, since nobody has looked', async () => {
    await opened(scriptedBank(), async ({ handle, id }) => {
      await handle.signal('settled', callback({ amount: 1_049 }));
      await eventually('the mark', async () => (await attentionOf(id)) === 'amount_differs');
      await handle.signal('settled', callback({ amount: 1_050 }));
      expect(await handle.result()).toMatchObject({ status: 'settled' });
      expect(await attentionOf(id)).toBe('amount_differs');
      await saveHistory(handle, 'payment-amount-differs-unread');
    });
  });

  test('nonsense that comes afterwards hides no mark that says more', async () => {
    await opened(scriptedBank(), async ({ handle, id }) => {
      await handle.signal('settled', callback({ amount: 1_049 }));
      await eventually('the mark', async () => (await attentionOf(id)) === 'amount_differs');
      await handle.signal('settled', { callback_id: 7 });
      await handle.signal('settled', callback({ amount: 1_050 }));
      expect(await handle.result()).toMatchObject({ status: 'settled' });
      expect(await attentionOf(id)).toBe('amount_differs');
      await saveHistory(handle, 'payment-malformed-under-mark');
    });
  });

  test('an operator books what really came; no more than that is refunded', async () => {
    await withBank(setting, scriptedBank(), async (connector) => {
      const input = paymentInput(connector);
      const { payment_id: id, account_id } = input;
      const { handle } = await openPayment(setting, input);
      await handle.signal('settled', callback({ amount: 1_000, value_date: '2026-03-01' }));
      await eventually('the mark', async () => (await attentionOf(id)) === 'amount_differs');
      const args: [object] = [{ ...ACT, amount: 1_000 }];
      await handle.executeUpdate<unknown, [object]>('mark_settled', { args });
      expect(await handle.result()).toMatchObject({ status: 'settled' });
      expect(await storedPayment(setting, id)).toMatchObject({ amount: 1_050, attention: null });
      expect(await bookOf(setting, account_id)).toMatchObject({
        available: 1_000,
        clearing: -1_000,
      });
      const refused = await refusalOf(openRefund(setting, refundInput(input, { amount: 1_001 })));
      expect(refused).toMatchObject({ code: 'refund_amount_exceeds_balance' });
      const { opened } = await openRefund(setting, refundInput(input, { amount: null }));
      const refund = await setting.stores.refunds.get(opened.refund_id);
      expect(refund?.amount).toBe(1_000);
      expect(await differencesOf(setting, id)).toEqual([]);
      await saveHistory(handle, 'payment-amount-differs');
    });
  });

  test('the day of its booking stands on the posting', async () => {
    await opened(scriptedBank(), async ({ handle, id }) => {
      const told = { amount: 1_050, currency: 'EUR', value_date: '2026-02-27' };
      await handle.signal('settled', callback(told));
      expect(await handle.result()).toMatchObject({ status: 'settled' });
      expect(await postingsOf(id)).toMatchObject([{ value_date: '2026-02-27' }]);
    });
  });
});

describe('money that comes after the end', () => {
  async function cancelled(bank: ScriptedBank, story: (of: Opened) => Promise<void>) {
    await opened(bank, async (of) => {
      const args: [object] = [{ by: 'merchant' }];
      await of.handle.executeUpdate<unknown, [object]>('cancel', { args });
      await of.handle.result();
      await story(of);
    });
  }

  test('stands in suspense until the bank has sent it back', async () => {
    const bank = scriptedBank();
    await cancelled(bank, async ({ id, account }) => {
      await reportAfterEnd(setting, id, 'settled', callback({ bank_reference: 'late' }));
      expect(bank.told.at(-1)).toBe(`reversePayment reversal:${id}`);
      expect(await bookOf(setting, account)).toMatchObject({ suspense: 1_050, clearing: -1_050 });
      expect(await differencesOf(setting, id)).toEqual([]);
      // The bank says it once more, under another id.
      await reportAfterEnd(setting, id, 'settled', callback({ bank_reference: 'late' }));
      expect(await bookOf(setting, account)).toMatchObject({ suspense: 1_050 });
      const handle = await reportAfterEnd(
        setting,
        id,
        'reversed',
        callback({ value_date: '2026-03-02' }),
      );
      await reportAfterEnd(setting, id, 'reversed', callback());
      expect(await bookOf(setting, account)).toMatchObject({ suspense: 0, clearing: 0 });
      expect(await kindsOf(id)).toEqual(['payment_late_received', 'payment_late_reversed']);
      expect(await attentionOf(id)).toBe('late_settlement_reversed');
      expect(await differencesOf(setting, id)).toEqual([]);
      expect(await differencesOf(setting, account)).toEqual([]);
      await saveHistory(handle, 'payment-late-reversed');
    });
  });

  test('in the amount that came, whatever was asked for', async () => {
    const sent: number[] = [];
    const bank = scriptedBank({
      reversePayment: async ({ amount }) => {
        sent.push(amount);
        return { outcome: 'accepted', bank_reference: 'back' };
      },
    });
    await cancelled(bank, async ({ id, account }) => {
      await reportAfterEnd(setting, id, 'settled', callback({ amount: 700 }));
      expect(sent).toEqual([700]);
      expect(await bookOf(setting, account)).toMatchObject({ suspense: 700 });
      await reportAfterEnd(setting, id, 'reversed', callback({ amount: 650 }));
      expect(await attentionOf(id)).toBe('amount_differs');
      expect(await bookOf(setting, account)).toMatchObject({ suspense: 700 });
      await reportAfterEnd(setting, id, 'reversed', callback({ amount: 700 }));
      expect(await bookOf(setting, account)).toMatchObject({ suspense: 0 });
      expect(await differencesOf(setting, id)).toEqual([]);
    });
  });

  test('in another currency is left to a person', async () => {
    const bank = scriptedBank();
    await cancelled(bank, async ({ id }) => {
      await reportAfterEnd(setting, id, 'settled', callback({ currency: 'USD' }));
      expect(await attentionOf(id)).toBe('amount_differs');
      expect(bank.told).not.toContain(`reversePayment reversal:${id}`);
      expect(await postingsOf(id)).toMatchObject([
        { kind: 'payment_receipt_held', book: expect.stringMatching(/:USD$/) },
      ]);
    });
  });

  test('that is said to be back in another currency stays in suspense, for a person', async () => {
    await cancelled(scriptedBank(), async ({ id, account }) => {
      await reportAfterEnd(setting, id, 'settled', callback());
      await reportAfterEnd(setting, id, 'reversed', callback({ amount: 1_050, currency: 'USD' }));
      expect(await attentionOf(id)).toBe('amount_differs');
      expect(await bookOf(setting, account)).toMatchObject({ suspense: 1_050 });
      expect(await differencesOf(setting, id)).toEqual([]);
    });
  });

  test('that the bank could not send back is sent by hand, and then booked', async () => {
    await cancelled(scriptedBank(), async ({ id, account }) => {
      const none = await refusalOf(actAfterEnd(setting, id, 'mark_reversed'));
      expect(none).toEqual({
        code: 'wrong_state',
        message: 'No money of the payment is in suspense.',
      });
      await reportAfterEnd(setting, id, 'settled', callback());
      await reportAfterEnd(setting, id, 'reversal_failed', callback());
      expect(await attentionOf(id)).toBe('late_settlement_not_reversed');
      expect(await bookOf(setting, account)).toMatchObject({ suspense: 1_050 });
      await actAfterEnd(setting, id, 'mark_reversed');
      expect(await bookOf(setting, account)).toMatchObject({ suspense: 0 });
      const { attention, audit } = await storedPayment(setting, id);
      expect(attention).toBeNull();
      expect(audit).toMatchObject([{ who: 'mia', what: 'mark_reversed' }]);
      expect(await differencesOf(setting, id)).toEqual([]);
    });
  });
});

describe('a settled payment that the bank takes back', () => {
  test.each(['failed', 'clawed_back'] as const)(
    '%s: it is disputed, and nothing is refunded',
    async (name) => {
      await withBank(setting, scriptedBank(), async (connector) => {
        const input = await settledPayment(setting, connector);
        const { payment_id: id, account_id } = input;
        const handle = await reportAfterEnd(setting, id, name, callback());
        const mark = name === 'failed' ? 'failed_after_settled' : 'clawed_back';
        expect(await storedPayment(setting, id)).toMatchObject({
          status: 'settled',
          attention: mark,
          disputed_at: expect.any(String),
        });
        expect(await bookOf(setting, account_id)).toMatchObject({ available: 1_050 });
        const refused = await refusalOf(openRefund(setting, refundInput(input, { amount: 1 })));
        expect(refused).toMatchObject({ code: 'payment_disputed' });
        await saveHistory(handle, `payment-disputed-${name.replace('_', '-')}`);
      });
    },
  );

  test('the balance gives what it holds, the merchant owes the rest; once', async () => {
    await withBank(setting, scriptedBank(), async (connector) => {
      const input = await settledPayment(setting, connector);
      const { payment_id: id, account_id } = input;
      await openRefund(setting, refundInput(input, { amount: 300 }));
      const more = await refusalOf(
        actAfterEnd(setting, id, 'claw_back', { ...ACT, amount: 1_051 }),
      );
      expect(more).toMatchObject({ message: expect.stringContaining('has brought 1050') });
      const answer = await actAfterEnd(setting, id, 'claw_back');
      expect(answer).toEqual({ payment_id: id, status: 'settled', version: 4 });
      expect(await bookOf(setting, account_id)).toMatchObject({ available: 0, receivable: -300 });
      expect(await storedPayment(setting, id)).toMatchObject({
        attention: null,
        disputes: [{ kind: 'clawed_back', amount: 1_050, held: 750, owed: 300, state: 'lost' }],
        disputed_at: expect.any(String),
        audit: [{ who: 'mia', what: 'claw_back', why: ACT.reason }],
      });
      const again = await refusalOf(actAfterEnd(setting, id, 'claw_back'));
      expect(again).toMatchObject({ message: expect.stringContaining('posted already') });
      expect(await bookOf(setting, account_id)).toMatchObject({ available: 0, receivable: -300 });
      expect(await setting.stores.ledger.receivables(account_id, false)).toEqual([
        { currency: 'EUR', owed: 300 },
      ]);
      expect(await differencesOf(setting, id)).toEqual([]);
      expect(await differencesOf(setting, account_id)).toEqual([]);
    });
  });
});
