import { resolveSentHeld } from '../../../src/service/balances/resolve';
import { operatorsAudit } from '../../support/audit';
import { saveHistory } from '../../support/histories';
import { readAccountRows } from '../../support/trial-balance';
import { MONEY, type Tracked, type TrackedPayout, useLifecycles } from '../lifecycles';

/** Holds docs/ledger.md#money-that-goes-wrong for what a bank sends otherwise than instructed. */
const { setting, withStatus } = useLifecycles();
const BY = { operator: 'ada', reason: 'asked the bank' };

const trialBalance = ({ account_id }: Tracked) => readAccountRows(setting, account_id);

const resolve = (
  { id }: Tracked,
  kind: string,
  step: string,
  as: 'merchant' | 'loss' | 'returned',
) =>
  resolveSentHeld(
    { ...setting, now: () => new Date(), audit: operatorsAudit(setting.stores) },
    { id: `${kind}_sent_held:${id}:${step}`, as },
    BY,
  );

const OTHER = { amount: 900, currency: 'EUR', bank_reference: 'S-1' };

describe('a refund of 1,050', () => {
  test('of which the bank sent less: in suspense until an operator settles it', async () => {
    await withStatus.processing(async (refund) => {
      await refund.signal('settled', OTHER);
      await refund.becomes({ attention: 'amount_differs' });
      // Once, whatever is reported of it.
      await refund.signal('settled', OTHER);
      await refund.signal('settled');
      const held = { 'transit.refunds': 1_050, 'suspense.sent': -900, clearing: -150 };
      expect(await trialBalance(refund)).toEqual(held);
      expect(await refund.refusal('acknowledge')).toMatchObject({ code: 'money_in_suspense' });
      await refund.act('mark_settled', { ...BY, amount: 900 });
      expect(await trialBalance(refund)).toEqual({
        'balances.main.available': 150,
        clearing: -150,
      });
      expect(await refund.stored()).toMatchObject({ status: 'settled', attention: null });
      const kinds = ['refund_accepted', 'refund_sent_held', 'refund_settled'];
      expect(await refund.entryKinds()).toEqual(kinds);
      expect(await refund.differences()).toEqual([]);
      expect(await refund.differences(refund.payment.payment_id)).toEqual([]);
      await refund.handle.result();
      await saveHistory(refund.handle, 'refund-sent-otherwise');
    });
  });

  test('of which the bank sent more: the rest waits until the merchant owes it', async () => {
    await withStatus.processing(async (refund) => {
      await refund.signal('settled', { ...OTHER, amount: 1_200 });
      await refund.becomes({ attention: 'amount_differs' });
      await refund.act('mark_settled');
      await refund.handle.result();
      expect(await refund.stored()).toMatchObject({ attention: 'amount_differs' });
      expect(await trialBalance(refund)).toEqual({ 'suspense.sent': -150, clearing: 150 });
      await expect(resolve(refund, 'refund', 'none', 'loss')).rejects.toMatchObject({
        code: 'operation_not_found',
      });
      for (const _ of ['first', 'repeat']) await resolve(refund, 'refund', 'S-1', 'merchant');
      await expect(resolve(refund, 'refund', 'S-1', 'loss')).rejects.toMatchObject({
        code: 'not_in_suspense',
      });
      expect(await trialBalance(refund)).toEqual({ 'receivable.merchant': -150, clearing: 150 });
      const { payment_id } = refund.payment;
      const payment = await setting.stores.payments.get(payment_id);
      expect(payment).toMatchObject({ refunded: 1_050, refunded_over: 150 });
      for (const id of [refund.id, payment_id, refund.account_id]) {
        expect(await refund.differences(id)).toEqual([]);
      }
      await refund.actAfterEnd('acknowledge');
      expect(await refund.attention()).toBeNull();
    });
  });

  test('of which the bank sent dollars, and then says that it failed: they are back', async () => {
    await withStatus.processing(async (refund) => {
      await refund.signal('settled', { ...OTHER, currency: 'USD' });
      await refund.becomes({ attention: 'amount_differs' });
      expect(await trialBalance(refund)).toMatchObject({
        ...{ 'suspense.sent USD': -900, 'clearing USD': 900, 'transit.refunds': 1_050 },
      });
      await refund.endBy('failed');
      const whole = { 'balances.main.available': 1_050, clearing: -1_050 };
      expect(await trialBalance(refund)).toEqual(whole);
      expect(await refund.differences()).toEqual([]);
      await refund.actAfterEnd('acknowledge');
    });
  });
});

describe('a payout of 1,000', () => {
  test('that the bank sends otherwise, before it has taken it: nobody captures it twice', async () => {
    await withStatus.submitted(async (payout) => {
      await payout.signal('sent', OTHER);
      await payout.becomes({ attention: 'amount_differs' });
      await payout.signal('completed', OTHER);
      expect(await payout.money()).toEqual({ ...MONEY.reserved, atBank: 900 });
      expect(await trialBalance(payout)).toMatchObject({ 'suspense.sent': -900 });
      await payout.act('mark_completed');
      await payout.handle.result();
      expect(await payout.money()).toEqual(MONEY.captured);
      expect(await trialBalance(payout)).not.toHaveProperty('suspense.sent');
      expect(await payout.stored()).toMatchObject({ status: 'completed', attention: null });
      expect(await payout.differences()).toEqual([]);
    });
  });

  const failedThenSent = (story: (payout: TrackedPayout & { step: string }) => Promise<void>) =>
    withStatus.sent(async (payout) => {
      await payout.endBy('failed', { bank_reference: 'S-1' });
      const kinds = await payout.entryKinds();
      // One movement, however the bank reports it.
      for (const name of ['sent', 'completed', 'completed'] as const) {
        await payout.signalAfterEnd(name);
        await payout.handle.result();
      }
      expect(await payout.entryKinds()).toEqual([...kinds, 'payout_sent_held']);
      const { status, attention, sent_held = [] } = await payout.stored();
      expect([status, attention]).toEqual(['failed', 'moved_after_failed']);
      expect(await payout.money()).toEqual({ ...MONEY.untouched, atBank: 1_000 });
      expect(await payout.refusalAfterEnd('acknowledge')).toMatchObject({
        code: 'money_in_suspense',
      });
      await story({ ...payout, step: sent_held[0]?.id ?? '' });
      expect(await payout.differences()).toEqual([]);
      expect(await payout.differences(payout.account_id)).toEqual([]);
    });

  test.each([
    ['merchant', { available: 9_000, atBank: 1_000 }],
    ['loss', { available: 10_000, atBank: 1_000 }],
    ['returned', { available: 10_000, atBank: 0 }],
  ] as const)('that failed, and that the bank pays all the same: as %s', (as, money) =>
    failedThenSent(async (payout) => {
      if (as === 'loss') await saveHistory(payout.handle, 'payout-sent-after-failed');
      await resolve(payout, 'payout', payout.step, as);
      expect(await payout.money()).toMatchObject(money);
      expect(await trialBalance(payout)).not.toHaveProperty('suspense.sent');
      await payout.actAfterEnd('acknowledge');
      expect(await payout.attention()).toBeNull();
    }),
  );

  test('that failed, was paid, and is back by the bank’s own report', () =>
    failedThenSent(async (payout) => {
      await payout.signalAfterEnd('returned', { amount: 999 });
      await payout.handle.result();
      expect(await payout.money()).toEqual({ ...MONEY.untouched, atBank: 1_000 });
      for (const name of ['failed', 'failed'] as const) {
        await payout.signalAfterEnd(name);
        await payout.handle.result();
      }
      expect(await payout.money()).toEqual(MONEY.untouched);
      expect(await payout.stored()).toMatchObject({
        sent_held: [{ resolved: { as: 'returned' } }],
      });
    }));
});
