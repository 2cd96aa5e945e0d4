import { reverseOperation } from '../../../src/service/balances/reverse';
import { operatorsAudit } from '../../support/audit';
import { readBalances } from '../../support/book';
import { saveHistory } from '../../support/histories';
import { callback, openRefund, refundInput, scriptedBank } from '../../support/workflow-setting';
import {
  MONEY,
  refusalOf,
  type Tracked,
  type TrackedPayout,
  type TrackedRefund,
  useLifecycles,
} from '../lifecycles';

const { setting, withRefund, withPayout } = useLifecycles();

/** Ends a refund of 1,050 under the reference `first`, and tells the story of what is reported then. */
const endedRefund =
  (how: 'settled' | 'failed') => (story: (refund: TrackedRefund) => Promise<void>) =>
    withRefund(scriptedBank(), async (refund) => {
      await refund.endBy(how, { bank_reference: 'first' });
      await story(refund);
      const { id, payment, account_id, differences } = refund;
      for (const subject of [id, payment.payment_id, account_id]) {
        expect(await differences(subject)).toEqual([]);
      }
    });

const completedPayout = (story: (payout: TrackedPayout) => Promise<void>) =>
  withPayout(scriptedBank(), async (payout) => {
    await payout.endBy('completed', { bank_reference: 'first' });
    await story(payout);
    expect(await payout.differences()).toEqual([]);
  });

type Report = Parameters<Tracked['signalAfterEnd']>;

async function report({ handle, signalAfterEnd }: Tracked, ...what: Report): Promise<void> {
  await signalAfterEnd(...what);
  await handle.result();
}

describe('a failed refund that settles', () => {
  const failed = endedRefund('failed');
  const noMore = async ({ payment }: TrackedRefund) => {
    const more = await refusalOf(openRefund(setting, refundInput(payment, { amount: 1 })));
    expect(more).toMatchObject({ code: 'refund_amount_exceeds_balance' });
  };

  test('is debited again, once, and the customer gets no second one', () =>
    failed(async (refund) => {
      const { handle, money, stored } = refund;
      await report(refund, 'settled', { bank_reference: 'sent' });
      await report(refund, 'settled', { bank_reference: 'sent' });
      expect(await money()).toEqual({ refunded: 1_050, available: 0 });
      expect(await stored()).toMatchObject({
        ...{ status: 'failed', attention: 'settled_after_failed' },
        sent_late: { id: 'sent', amount: 1_050, held: 1_050, owed: 0 },
      });
      await noMore(refund);
      await saveHistory(handle, 'refund-resumed-settled-after-failed');
    }));

  test('is owed where the balance is gone; another refund that fails releases nothing', () =>
    failed(async (refund) => {
      const { payment, account_id, money } = refund;
      const { handle } = await openRefund(setting, refundInput(payment, { amount: null }));
      await report(refund, 'settled');
      expect(await money()).toEqual({ refunded: 1_050, available: 0 });
      const { payments, ledger } = setting.stores;
      expect(await payments.get(payment.payment_id)).toMatchObject({ refunded_over: 1_050 });
      expect(await ledger.receivables(account_id, false)).toEqual([
        { currency: 'EUR', owed: 1_050 },
      ]);
      await handle.signal('failed', callback());
      await handle.result();
      expect(await money()).toEqual({ refunded: 1_050, available: 1_050 });
      await noMore(refund);
    }));
});

const REFUNDED = { refunded: 1_050, available: 0 };
const { available, atBank } = MONEY.captured;
const PAID = { available, atBank };
const PAID_TWICE = { available, atBank: atBank + 1_000 };

describe.each([
  ['refund', 'settled', endedRefund('settled'), REFUNDED, REFUNDED, -1_050],
  ['payout', 'completed', completedPayout, PAID, PAID_TWICE, -1_000],
] as const)('a %s that is %s again', (resource, status, ended, once, twice, owed) => {
  test.each([
    ['another reference', { bank_reference: 'second' }, true],
    ['the same reference', { bank_reference: 'first' }, false],
    ['no reference', {}, false],
  ])('with %s', (_which, facts, isSecond) =>
    ended(async (subject: Tracked) => {
      const { id, account_id, handle, stored, money, entryKinds } = subject;
      const owedByBank = async () => {
        const read = await readBalances(setting.stores, `${account_id}:sandbox:EUR`);
        return read('receivable.bank') ?? 0;
      };
      await report(subject, status, facts);
      await report(subject, status, facts);
      const attention = isSecond ? 'second_completion' : null;
      expect(await stored()).toMatchObject({ status, attention });
      expect(await owedByBank()).toBe(isSecond ? owed : 0);
      expect(await money()).toMatchObject(isSecond ? twice : once);
      expect(await entryKinds()).toHaveLength(isSecond ? 3 : 2);
      if (!isSecond) return;
      await saveHistory(handle, `${resource}-second-completion`);
      if (resource === 'payout') return;
      const deps = { ...setting, now: () => new Date(), audit: operatorsAudit(setting.stores) };
      const by = { operator: 'ana', reason: 'the bank has it back' };
      await reverseOperation(deps, `refund_sent_again:${id}:second`, by);
      expect(await owedByBank()).toBe(0);
    }),
  );
});
