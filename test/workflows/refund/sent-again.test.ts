import { verifyLedger } from '../../../src/ledger-check/verify';
import { reverseOperation } from '../../../src/service/balances/adjust';
import { operatorsAudit } from '../../support/audit';
import { readBalances } from '../../support/book';
import { saveHistory } from '../../support/histories';
import {
  callback,
  openRefund,
  refundInput,
  scriptedBank,
  useWorkflowSetting,
} from '../../support/workflow-setting';
import { moneyOf, postingsOf, type Refunding, refunding, refusalOf, storedRefund } from './setting';

const setting = useWorkflowSetting();

async function report(id: string, name: 'settled' | 'failed', facts: object = {}) {
  const handle = await setting.env.client.workflow.signalWithStart('refund', {
    workflowId: `refund:${id}`,
    taskQueue: setting.queues.lifecycle,
    signal: name,
    signalArgs: [callback(facts)],
    args: [{ refund_id: id, resume: true, request_id: 'again' }],
  });
  await handle.result();
  return handle;
}

/** Ends the refund, tells the story, and holds the ledger against it. */
async function ended(how: 'settled' | 'failed', story: (of: Refunding) => Promise<void>) {
  await refunding(setting, scriptedBank(), async (of) => {
    await of.handle.signal(how, callback({ bank_reference: 'first' }));
    await of.handle.result();
    await story(of);
    const { dbName } = setting.stores.ledger.collections.books;
    const { differences } = await verifyLedger(setting.mongo, dbName);
    const { payment_id, account_id } = of.payment;
    const own = differences.filter(({ subject }) =>
      [of.id, payment_id, account_id].some((id) => subject.includes(id)),
    );
    expect(own).toEqual([]);
  });
}

async function owedByBank({ payment }: Refunding): Promise<number> {
  const read = await readBalances(setting.stores, `${payment.account_id}:sandbox:EUR`);
  return read('receivable.bank') ?? 0;
}

describe('a failed refund that settles', () => {
  test('is debited again, once, and the customer gets no second one', async () => {
    await ended('failed', async ({ id, payment }) => {
      const handle = await report(id, 'settled', { bank_reference: 'sent' });
      await report(id, 'settled', { bank_reference: 'sent' });
      expect(await moneyOf(setting, payment)).toEqual({ refunded: 1_050, available: 0 });
      expect(await storedRefund(setting, id)).toMatchObject({
        ...{ status: 'failed', attention: 'settled_after_failed' },
        sent_late: { id: 'sent', amount: 1_050, held: 1_050, owed: 0 },
      });
      const again = await refusalOf(openRefund(setting, refundInput(payment, { amount: 1 })));
      expect(again).toMatchObject({ code: 'refund_amount_exceeds_balance' });
      await saveHistory(handle, 'refund-resumed-settled-after-failed');
    });
  });

  test('is owed where the balance is gone; another refund that fails releases nothing', async () => {
    await ended('failed', async (of) => {
      const { id, payment } = of;
      const second = refundInput(payment, { amount: null });
      const { handle } = await openRefund(setting, second);
      await report(id, 'settled');
      expect(await moneyOf(setting, payment)).toEqual({ refunded: 1_050, available: 0 });
      expect(await setting.stores.payments.get(payment.payment_id)).toMatchObject({
        refunded_over: 1_050,
      });
      expect(await setting.stores.ledger.receivables(payment.account_id, false)).toEqual([
        { currency: 'EUR', owed: 1_050 },
      ]);
      await handle.signal('failed', callback());
      await handle.result();
      expect(await moneyOf(setting, payment)).toEqual({ refunded: 1_050, available: 1_050 });
      const third = await refusalOf(openRefund(setting, refundInput(payment, { amount: 1 })));
      expect(third).toMatchObject({ code: 'refund_amount_exceeds_balance' });
    });
  });
});

test.each([
  ['another reference', { bank_reference: 'second' }, true],
  ['the same reference', { bank_reference: 'first' }, false],
  ['no reference', {}, false],
])('a settled refund that settles again with %s', async (_which, facts, isSecond) => {
  await ended('settled', async (of) => {
    const { id, payment } = of;
    const handle = await report(id, 'settled', facts);
    await report(id, 'settled', facts);
    const { attention } = await storedRefund(setting, id);
    expect(attention).toBe(isSecond ? 'second_completion' : null);
    expect(await owedByBank(of)).toBe(isSecond ? -1_050 : 0);
    expect(await moneyOf(setting, payment)).toEqual({ refunded: 1_050, available: 0 });
    if (!isSecond) return;
    expect(await postingsOf(setting, id)).toHaveLength(3);
    await saveHistory(handle, 'refund-second-completion');
    const audit = operatorsAudit(setting.stores);
    const deps = { ...setting, now: () => new Date(), audit };
    const by = { operator: 'ana', reason: 'the bank has it back' };
    await reverseOperation(deps, `refund_sent_again:${id}:second`, by);
    expect(await owedByBank(of)).toBe(0);
  });
});
