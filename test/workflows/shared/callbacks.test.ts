import { saveHistory } from '../../support/histories';
import { eventually } from '../../support/http';
import { readAccountRows } from '../../support/trial-balance';
import {
  callback,
  paymentInput,
  recordPaymentKey,
  scriptedBank,
  withBank,
} from '../../support/workflow-setting';
import {
  ACT,
  MONEY,
  type Tracked,
  type TrackedPayout,
  trackPayment,
  useLifecycles,
} from '../lifecycles';

const { setting, withStatus } = useLifecycles();

const REFUNDED = { refunded: 1_050, available: 0 };
const OTHER = { amount: 900, currency: 'EUR', bank_reference: 'S-1' };

const trialBalance = ({ account_id }: { account_id: string }) =>
  readAccountRows(setting, account_id);

describe('a callback', () => {
  test.each([
    ['refund', withStatus.processing, 'settled', 'failed', 2],
    ['payout', withStatus.sent, 'completed', 'returned', 4],
  ] as const)(
    'that is malformed needs attention, and does not end the workflow of a %s',
    (resource, reach, done, other, transition) =>
      reach(async ({ handle, shows, endBy, stored }) => {
        await handle.signal(done, { callback_id: 7 });
        await handle.signal(other);
        const details = await shows(`unreadable callback \`${other}\``);
        expect(details).toContain('malformed_callback');
        expect(await endBy(done)).toMatchObject({ status: done });
        expect(await stored()).toMatchObject({ transition, attention: 'malformed_callback' });
        await saveHistory(handle, `${resource}-malformed-callback`);
      }),
  );

  test.each([
    ['refund', 'settled', 'settled', null, /: the refund is settled already$/, 2, REFUNDED],
    ['payout', 'failed', 'returned', 'moved_after_failed', /./, 4, MONEY.untouched],
    ['payout', 'completed', 'failed', 'failed_after_completed', /./, 4, MONEY.captured],
    ['payout', 'returned', 'completed', 'moved_after_returned', /./, 4, MONEY.returned],
  ] as const)(
    'about a %s that is %s already changes nothing by %s, and the attention reason is %s',
    (resource, status, name, reason, unapplied, transition, expected) =>
      withStatus[resource === 'refund' ? 'processing' : 'sent'](async (subject: Tracked) => {
        const { id, handle, stored, entryKinds } = subject;
        await subject.endBy(status);
        const before = await entryKinds();
        await subject.signalAfterEnd(name);
        expect(await handle.result()).toMatchObject({ [`${resource}_id`]: id, status });
        expect(await stored()).toMatchObject({ status, transition, attention: reason });
        expect(await subject.unapplied()).toEqual([expect.stringMatching(unapplied)]);
        expect(await entryKinds()).toEqual(before);
        expect(await subject.money()).toEqual(expected);
        expect(subject.told.filter((line) => line.startsWith('send'))).toHaveLength(1);
        const history = `${resource}-${name}-after-${status}`;
        if (resource === 'payout') await saveHistory(handle, history);
      }),
  );

  test('that comes while no worker runs is applied in the order of the bank', async () => {
    const queue = `${setting.queues.lifecycle}-later`;
    await withBank(setting, scriptedBank(), async (connector) => {
      const input = paymentInput(connector);
      const { payment_id } = input;
      await recordPaymentKey(setting, input);
      const handle = await setting.env.client.workflow.start('payment', {
        ...{ workflowId: `payment:${payment_id}`, taskQueue: queue, args: [input] },
      });
      const { signal, becomes } = trackPayment(setting, input, handle);
      await signal('failed');
      await handle.signal('not_ours');
      await signal('settled');
      const stop = await setting.startWorkers(queue);
      const isStored = async () => (await setting.stores.payments.get(payment_id)) !== null;
      await eventually('the payment to be stored', isStored);
      // In the other order it would be settled, and then returned.
      await becomes({ status: 'failed', attention: 'late_settlement_reversed' });
      expect(await setting.stores.movements.forResource(payment_id)).toMatchObject([
        { reason: 'late', amount: 1_050 },
      ]);
      await saveHistory(handle, 'payment-callbacks-in-order');
      await stop();
    });
  });
});

describe('a callback whose signal Temporal has lost', () => {
  /** Stores a callback as signalled, and signals nothing. */
  async function lose(
    { id, stored }: Tracked,
    resource: 'payment' | 'refund' | 'payout',
    name: 'settled' | 'completed' | 'failed' | 'reversal_failed',
  ): Promise<void> {
    const { connector } = await stored();
    const received_at = new Date().toISOString();
    const about = { connector, resource, resource_id: id, name };
    const { callbacks } = setting.stores;
    const { _id } = await callbacks.insertOnce({ ...about, body: callback(), received_at });
    await callbacks.markSignalled({ _id }, received_at);
  }

  test.each([
    ['payment', 'authorized', 'settled'],
    ['refund', 'processing', 'settled'],
    ['payout', 'sent', 'completed'],
    ['payout', 'submitted', 'failed'],
  ] as const)(
    'is applied once when the workflow of a %s that is %s is started again',
    async (kind, at, name) => {
      await withStatus[at](async (subject: Tracked) => {
        const { handle, stored, restart } = subject;
        await lose(subject, kind, name);
        await handle.terminate('in a test');
        await restart();
        expect(await handle.result()).toMatchObject({ status: name });
        const before = await stored();
        await restart();
        await handle.result();
        expect(await stored()).toEqual(before);
      });
    },
  );

  test('and that changes no status is applied once, also after it was acknowledged', async () => {
    await withStatus.awaiting_customer(async (payment) => {
      const { handle, restart, becomes } = payment;
      await payment.act('cancel', { by: 'merchant' });
      await handle.result();
      await lose(payment, 'payment', 'reversal_failed');
      await restart();
      await becomes({ attention: 'late_settlement_not_reversed' });
      await handle.result();
      await payment.actAfterEnd('acknowledge');
      await restart();
      await handle.result();
      expect(await payment.stored()).toMatchObject({ status: 'cancelled', attention: null });
    });
  });
});

/** @see docs/ledger.md#money-that-goes-wrong */
describe('money that a bank moves otherwise than instructed', () => {
  const resolve = (subject: Tracked, as: string) =>
    subject.actAfterEnd('resolve_movement', { ...ACT, as });

  test.each([
    [
      ...(['refund', withStatus.processing, 'settled', 2] as const),
      { 'transit.refunds': 1_050, 'suspense.sent': -900, clearing: -150 },
      { refunded: 900, available: 150 },
      ['refund_accepted', 'refund_held', 'refund_settled'],
    ],
    [
      ...(['payout', withStatus.sent, 'returned', 4] as const),
      { 'balances.main.available': 8_975, 'income.fees': 25, 'suspense.late': 900, clearing: 100 },
      { available: 8_975 + 900, atBank: 100 },
      ['payout_reserved', 'payout_captured', 'payout_held', 'payout_returned'],
    ],
  ] as const)(
    'for a %s in a smaller amount is in suspense until an operator posts that amount',
    (resource, reach, status, transition, held, money, kinds) =>
      reach(async (subject) => {
        const { id, handle, signal, act, refusal, stored, differences } = subject;
        const before = (await stored()).status;
        await signal(status, OTHER);
        expect(await subject.shows('amount_differs')).toContain(`mark_${status}`);
        // A report without an amount does not settle the question.
        await signal(status);
        const both = async () => (await subject.unapplied()).length === 2;
        await eventually('both reports to be stored', both);
        expect(await stored()).toMatchObject({ status: before });
        expect(await trialBalance(subject)).toEqual(held);
        expect(await refusal('acknowledge')).toMatchObject({ code: 'money_in_suspense' });
        const more = { ...ACT, amount: (await stored()).amount + 1 };
        expect(await refusal(`mark_${status}`, more)).toMatchObject({ code: 'invalid_request' });
        const state = { [`${resource}_id`]: id, status };
        expect(await act(`mark_${status}`, { ...ACT, amount: 900 })).toMatchObject(state);
        expect(await subject.money()).toMatchObject(money);
        expect(await stored()).toMatchObject({ transition, attention: null });
        expect(await subject.entryKinds()).toEqual(kinds);
        expect(await differences()).toEqual([]);
        if ('payment' in subject) expect(await differences(subject.payment.payment_id)).toEqual([]);
        await saveHistory(handle, `${resource}-amount-differs`);
      }),
  );

  test('for a refund in a larger amount is in suspense until the merchant owes the rest', async () => {
    await withStatus.processing(async (refund) => {
      await refund.signal('settled', { ...OTHER, amount: 1_200 });
      await refund.becomes({ attention: 'amount_differs' });
      await refund.act('mark_settled');
      await refund.handle.result();
      expect(await refund.stored()).toMatchObject({ attention: 'amount_differs' });
      expect(await trialBalance(refund)).toEqual({ 'suspense.sent': -150, clearing: 150 });
      expect(
        await refund.refusalAfterEnd('resolve_movement', { ...ACT, as: 'loss', amount: 151 }),
      ).toMatchObject({ code: 'wrong_state' });
      await resolve(refund, 'merchant');
      expect(
        await refund.refusalAfterEnd('resolve_movement', { ...ACT, as: 'loss' }),
      ).toMatchObject({
        message: 'No money is in suspense.',
      });
      expect(await trialBalance(refund)).toEqual({ 'receivable.merchant': -150, clearing: 150 });
      const { payment_id } = refund.payment;
      const payment = await setting.stores.payments.get(payment_id);
      expect(payment).toMatchObject({ refunded: 1_050, refunded_over: 150 });
      for (const id of [refund.id, payment_id, refund.account_id]) {
        expect(await refund.differences(id)).toEqual([]);
      }
      expect(await refund.attention()).toBeNull();
    });
  });

  test('for a refund in another currency has come back when the refund fails', async () => {
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

  test('for a payout that the bank has not accepted is captured once', async () => {
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

  const failedThenSent = (story: (payout: TrackedPayout) => Promise<void>) =>
    withStatus.sent(async (payout) => {
      await payout.endBy('failed', { bank_reference: 'S-1' });
      const kinds = await payout.entryKinds();
      // One movement, however the bank reports it.
      for (const name of ['sent', 'completed', 'completed'] as const) {
        await payout.signalAfterEnd(name);
        await payout.handle.result();
      }
      expect(await payout.entryKinds()).toEqual([...kinds, 'payout_held']);
      const stored = { status: 'failed', attention: 'moved_after_failed' };
      expect(await payout.stored()).toMatchObject(stored);
      expect(await payout.money()).toEqual({ ...MONEY.untouched, atBank: 1_000 });
      expect(await payout.refusalAfterEnd('acknowledge')).toMatchObject({
        code: 'money_in_suspense',
      });
      await story(payout);
      expect(await payout.differences()).toEqual([]);
      expect(await payout.differences(payout.account_id)).toEqual([]);
    });

  test.each([
    ['merchant', { available: 9_000, atBank: 1_000 }],
    ['loss', { available: 10_000, atBank: 1_000 }],
    ['bank', { available: 10_000, atBank: 0 }],
    ['never_happened', { available: 10_000, atBank: 0 }],
  ] as const)('for a payout that has failed is resolved by an operator as %s', (as, money) =>
    failedThenSent(async (payout) => {
      if (as === 'loss') await saveHistory(payout.handle, 'payout-sent-after-failed');
      await resolve(payout, as);
      expect(await payout.money()).toMatchObject(money);
      expect(await trialBalance(payout)).not.toHaveProperty('suspense.sent');
      expect(await payout.attention()).toBeNull();
    }),
  );

  test('for a payout that has failed has come back when the bank reports the failure again', () =>
    failedThenSent(async (payout) => {
      await payout.signalAfterEnd('returned', { amount: 999 });
      await payout.handle.result();
      expect(await payout.money()).toEqual({ ...MONEY.untouched, atBank: 1_000 });
      for (const name of ['failed', 'failed'] as const) {
        await payout.signalAfterEnd(name);
        await payout.handle.result();
      }
      expect(await payout.money()).toEqual(MONEY.untouched);
      const movements = await setting.stores.movements.forResource(payout.id);
      expect(movements.filter(({ state }) => state === 'resolved')).toMatchObject([
        { direction: 'out', resolutions: [{ as: 'bank' }] },
      ]);
    }));
});
