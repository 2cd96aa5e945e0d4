import { saveHistory } from '../../support/histories';
import { eventually } from '../../support/http';
import { MONEY, type Tracked, useLifecycles } from '../lifecycles';

const { withStatus } = useLifecycles();

const REFUNDED = { refunded: 1_050, available: 0 };

test.each([
  ['refund', withStatus.processing, 'settled', 'failed', 2],
  ['payout', withStatus.sent, 'completed', 'returned', 4],
] as const)(
  'a malformed callback never throws: it is shown, and the %s goes on',
  (resource, reach, done, other, version) =>
    reach(async ({ handle, shows, endBy, attention }) => {
      await handle.signal(done, { callback_id: 7 });
      await handle.signal(other);
      const details = await shows(`unreadable callback \`${other}\``);
      expect(details).toContain('malformed_callback');
      expect(await endBy(done)).toMatchObject({ status: done, version });
      expect(await attention()).toBe('malformed_callback');
      await saveHistory(handle, `${resource}-malformed-callback`);
    }),
);

test.each([
  ['refund', withStatus.processing, 1_000, 'settled', 2, { refunded: 1_000, available: 50 }],
  ['payout', withStatus.sent, 900, 'returned', 4, { available: 8_975 + 900, atBank: 100 }],
] as const)(
  'a %s of which the bank moved less: an operator posts what was moved',
  (resource, reach, amount, status, version, expected) =>
    reach(async (subject) => {
      const { id, handle, signal, shows, act, refusal, stored, differences } = subject;
      const before = (await stored()).status;
      await signal(status, { amount, currency: 'EUR' });
      expect(await shows('amount_differs')).toContain(`mark_${status}`);
      // A report without an amount does not settle the question.
      await signal(status);
      const both = async () => (await subject.unapplied()).length === 2;
      await eventually('both reports to be stored', both);
      expect(await stored()).toMatchObject({ status: before });
      const more = (await stored()).amount + 1;
      const by = { operator: 'ada', reason: 'asked the bank' };
      expect(await refusal(`mark_${status}`, { ...by, amount: more })).toMatchObject({
        code: 'invalid_request',
      });
      const state = { [`${resource}_id`]: id, status, version };
      expect(await act(`mark_${status}`, { ...by, amount })).toEqual(state);
      expect(await subject.money()).toMatchObject(expected);
      expect(await stored()).toMatchObject({ attention: null });
      expect(await differences()).toEqual([]);
      if ('payment' in subject) expect(await differences(subject.payment.payment_id)).toEqual([]);
      await saveHistory(handle, `${resource}-amount-differs`);
    }),
);

test.each([
  ['refund', 'settled', 'failed', 'failed_after_settled', /./, 2, REFUNDED],
  ['refund', 'settled', 'settled', null, /: the refund is settled already$/, 2, REFUNDED],
  ['payout', 'failed', 'returned', 'moved_after_failed', /./, 4, MONEY.untouched],
  ['payout', 'completed', 'failed', 'failed_after_completed', /./, 4, MONEY.captured],
  ['payout', 'returned', 'completed', 'moved_after_returned', /./, 4, MONEY.returned],
] as const)(
  'a %s has %s, then the bank says %s: it stays, and operators see %s',
  (resource, status, name, mark, reason, version, expected) =>
    withStatus[resource === 'refund' ? 'processing' : 'sent'](async (subject: Tracked) => {
      const { id, handle, endBy, signalAfterEnd, stored, unapplied, entryKinds } = subject;
      await endBy(status);
      const before = await entryKinds();
      await signalAfterEnd(name);
      const state = { [`${resource}_id`]: id, status, version };
      expect(await handle.result()).toEqual(state);
      expect(await stored()).toMatchObject({ status, attention: mark });
      expect(await unapplied()).toEqual([expect.stringMatching(reason)]);
      expect(await entryKinds()).toEqual(before);
      expect(await subject.money()).toEqual(expected);
      expect(subject.told.filter((line) => line.startsWith('send'))).toHaveLength(1);
      const history = `${resource}-${name}-after-${status}`;
      if (resource === 'payout') await saveHistory(handle, history);
    }),
);
