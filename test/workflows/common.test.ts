import { readBalances } from '../support/book';
import { saveHistory } from '../support/histories';
import { readAccountRows } from '../support/trial-balance';
import { callback, openRefund, refundInput, scriptedBank } from '../support/workflow-setting';
import {
  ACT,
  MONEY,
  refusalOf,
  submittingBank,
  type Tracked,
  type TrackedPayout,
  type TrackedRefund,
  useLifecycles,
} from './lifecycles';

/** Rules of payments, refunds and payouts alike, and of refunds and payouts, which instruct a bank. */
const { setting, withRefund, withPayout, withUnsentPayout, withStatus } = useLifecycles();

// A machine that stalls for the 4 s of a session has the bank asked for it twice.
jest.retryTimes(3, { logErrorsBeforeRetry: true });

type Story = (subject: Tracked) => Promise<void>;

const REFUNDED = { refunded: 1_050, available: 0 };

/** Otherwise `open` answers 5 s after the start, before a busy machine has done all this. */
const withWaitingCaller = (story: Story) =>
  withUnsentPayout(
    submittingBank(),
    async (payout) => {
      await payout.shows('instruction at the bank: submitted');
      await story(payout);
    },
    { caller_waits: true },
  );

test.each([
  ['payment', withStatus.authorized, { status: 'authorized', version: 3 }, 'mark_settled', 4],
  ['refund', withStatus.processing, { status: 'processing', version: 2 }, 'mark_settled', 3],
  ['payout', withWaitingCaller, { status: 'completed', version: 4 }, 'mark_completed', 4],
] as const)(
  'a cancel request from the Temporal UI ends no %s, and updates are still answered',
  (kind, reach, opened, act, version) =>
    reach(async (subject: Tracked) => {
      const { id, handle } = subject;
      const opening = handle.executeUpdate('open');
      await handle.cancel();
      const state = { [`${kind}_id`]: id, status: act.replace('mark_', ''), version };
      expect(await subject.act(act)).toEqual(state);
      expect(await opening).toMatchObject({ [`${kind}_id`]: id, ...opened });
      expect(await handle.result()).toEqual(state);
      await saveHistory(handle, `${kind}-ui-cancel`);
    }),
);

test.each([
  ['payment', withStatus.authorized, '23h', '2h', 'settlement_overdue', 'settled'],
  ['refund', withStatus.processing, '71h', '2h', 'refund_overdue', 'settled'],
  ['payout', withStatus.submitted, '1s', '60s', 'not_sent', 'completed'],
] as const)('a %s is overdue, again after a snooze, until it is marked', (...row) => {
  const [kind, reach, early, rest, reason, last] = row;
  return reach(async (subject: Tracked) => {
    const { handle, stored, signal, act, attention, becomes } = subject;
    const { sleep } = setting.env;
    const { status, transition } = await stored();
    await sleep(early);
    expect(await attention()).toBeNull();
    await sleep(rest);
    await becomes({ status, attention: reason });
    expect(await act('snooze', { ...ACT, hours: 2 })).toMatchObject({ status });
    expect(await stored()).toMatchObject({ transition, attention: null });
    await sleep('119m');
    expect(await attention()).toBeNull();
    await sleep('2m');
    await becomes({ attention: reason });
    if (kind === 'payout') {
      await signal('sent');
      await becomes({ attention: null });
      await sleep('25s');
      expect(await attention()).toBeNull();
      await sleep('36s');
      await becomes({ attention: 'not_completed' });
    }
    await act(`mark_${last}`);
    expect(await handle.result()).toMatchObject({ status: last });
    const before = kind === 'payout' ? 'sent' : status;
    expect(await stored()).toMatchObject({
      attention: null,
      audit: [
        { who: 'ada', what: 'snooze', before: reason, after: 'no attention' },
        { who: 'ada', what: `mark_${last}`, before, after: last },
      ],
    });
    const history = kind === 'payout' ? 'overdue-snoozed' : 'overdue-marked-settled';
    await saveHistory(handle, `${kind}-${history}`);
  });
});

/** Ends a refund of 1,050 under the reference `first`, and runs the story of what is reported then. */
const endedRefund =
  (how: 'settled' | 'failed') => (story: (refund: TrackedRefund) => Promise<void>) =>
    withRefund(scriptedBank(), async (refund) => {
      await refund.endBy(how, { bank_reference: 'first' });
      await story(refund);
      expect(await refund.differences()).toEqual([]);
      expect(await refund.differences(refund.payment.payment_id)).toEqual([]);
    });

const completedPayout = (story: (payout: TrackedPayout) => Promise<void>) =>
  withPayout(scriptedBank(), async (payout) => {
    await payout.endBy('completed', { bank_reference: 'first' });
    await story(payout);
    expect(await payout.differences()).toEqual([]);
  });

describe('a failed refund that settles', () => {
  const failed = endedRefund('failed');
  const expectNoMore = async ({ payment }: TrackedRefund) => {
    const more = await refusalOf(openRefund(setting, refundInput(payment, { amount: 1 })));
    expect(more).toMatchObject({ code: 'refund_amount_exceeds_balance' });
  };

  test('is debited again, once, and the customer gets no second one', () =>
    failed(async (refund) => {
      for (const _ of ['first', 'repeat']) {
        await refund.report('settled', { bank_reference: 'sent' });
      }
      expect(await refund.money()).toEqual(REFUNDED);
      expect(await readAccountRows(setting, refund.account_id)).toEqual({});
      expect(await refund.stored()).toMatchObject({
        ...{ status: 'failed', attention: 'settled_after_failed' },
        late_amount: 1_050,
      });
      await expectNoMore(refund);
      await saveHistory(refund.handle, 'refund-resumed-settled-after-failed');
    }));

  test('is owed where the balance is gone, and another refund that fails releases nothing', () =>
    failed(async (refund) => {
      const { payment, account_id, money } = refund;
      const { handle } = await openRefund(setting, refundInput(payment, { amount: null }));
      await refund.report('settled');
      expect(await money()).toEqual(REFUNDED);
      const { payments, ledger } = setting.stores;
      expect(await payments.get(payment.payment_id)).toMatchObject({ refunded_over: 1_050 });
      const owed = [{ currency: 'EUR', owed: 1_050 }];
      expect((await ledger.balancesAndReceivables(account_id, false)).receivables).toEqual(owed);
      await handle.signal('failed', callback());
      await handle.result();
      expect(await money()).toEqual({ refunded: 1_050, available: 1_050 });
      await expectNoMore(refund);
    }));
});

const { available, atBank } = MONEY.captured;
const PAID = { available, atBank };
const PAID_TWICE = { available, atBank: atBank + 1_000 };

describe.each([
  ['refund', 'settled', endedRefund('settled'), REFUNDED, REFUNDED, -1_050],
  ['payout', 'completed', completedPayout, PAID, PAID_TWICE, -1_000],
] as const)('a %s that is %s again', (resource, status, withEnded, once, twice, owed) => {
  test.each([
    ['another reference', { bank_reference: 'second' }, true],
    ['the same reference', { bank_reference: 'first' }, false],
    ['no reference', {}, false],
  ])('with %s is in suspense unless it is a repeat', (_which, facts, isSecond) =>
    withEnded(async (subject: Tracked) => {
      const { account_id, report } = subject;
      const readOwed = async () =>
        (await readBalances(setting.stores, `${account_id}:sandbox:EUR`))('suspense.sent') ?? 0;
      await report(status, facts);
      await report(status, facts);
      const attention = isSecond ? 'second_completion' : null;
      expect(await subject.stored()).toMatchObject({ status, attention });
      expect(await readOwed()).toBe(isSecond ? owed : 0);
      expect(await subject.money()).toMatchObject(isSecond ? twice : once);
      expect(await subject.entryKinds()).toHaveLength(isSecond ? 3 : 2);
      if (!isSecond) return;
      await saveHistory(subject.handle, `${resource}-second-completion`);
      if (resource === 'payout') return;
      await subject.actAfterEnd('resolve_movement', { ...ACT, as: 'bank' });
      expect(await readOwed()).toBe(0);
      expect(await subject.money()).toMatchObject(once);
      await report('failed', { bank_reference: 'back' });
      expect(await subject.entryKinds()).toHaveLength(4);
    }),
  );
});
