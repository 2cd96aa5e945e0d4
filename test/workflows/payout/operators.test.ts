import { randomUUID } from 'node:crypto';
import { saveHistory } from '../../support/histories';
import { payoutInput } from '../../support/workflow-setting';
import { ACT, MONEY, trackPayout, useLifecycles } from '../lifecycles';

const { setting, withStatus } = useLifecycles();

test('in a wrong state, an act is refused in words and changes nothing', async () => {
  await withStatus.submitted(async ({ refusal, stored }) => {
    expect(await refusal('mark_returned')).toEqual({
      code: 'wrong_state',
      message:
        'The payout is submitted; only one that was sent, and did not fail or return, can come back.',
    });
    expect((await stored()).audit).toEqual([]);
  });
  await withStatus.sent(async ({ refusal, money }) => {
    expect(await refusal('resubmit')).toEqual({
      code: 'wrong_state',
      message: 'The payout is sent; only one that the bank has not sent can be given to it again.',
    });
    expect(await money()).toEqual(MONEY.captured);
  });
});

describe('after the end, through a start', () => {
  test.each([
    ['completed', ['resubmit', 'mark_failed', 'mark_completed'], MONEY.captured],
    ['failed', ['resubmit', 'mark_returned', 'mark_completed', 'mark_failed'], MONEY.untouched],
    ['returned', ['resubmit', 'mark_returned', 'mark_completed', 'mark_failed'], MONEY.returned],
  ] as const)(
    'a payout that has %s refuses %j in words, and its workflow ends again',
    async (end, updates, expected) => {
      await withStatus.sent(async ({ id, handle, endBy, refusalAfterEnd, stored, money }) => {
        await endBy(end);
        for (const update of updates) {
          expect(await refusalAfterEnd(update)).toEqual({
            code: 'wrong_state',
            message: expect.stringMatching(`^The payout is ${end}; only one that `),
          });
          expect(await handle.result()).toEqual({ payout_id: id, status: end, version: 4 });
        }
        expect((await stored()).audit).toEqual([]);
        expect(await money()).toEqual(expected);
        await saveHistory(handle, `payout-refused-act-after-${end}`);
      });
    },
  );

  test('a payout that never was: refused, and nothing runs on', async () => {
    const { handle, actAfterEnd } = trackPayout(setting, payoutInput(randomUUID()));
    await expect(actAfterEnd('mark_returned')).rejects.toThrow();
    expect((await handle.describe()).status.name).toBe('FAILED');
  });
});

test('a bank that says nothing: overdue, snoozed, overdue again, moved on, overdue once more', async () => {
  await withStatus.submitted(async ({ handle, signal, becomes, attention, stored, act }) => {
    const { env } = setting;
    await env.sleep('61s');
    await becomes({ attention: 'not_sent' });
    expect(await act('snooze', { ...ACT, hours: 2 })).toMatchObject({ version: 2 });
    expect(await attention()).toBeNull();
    await env.sleep('119m');
    expect(await attention()).toBeNull();
    await env.sleep('2m');
    await becomes({ attention: 'not_sent' });
    await signal('sent');
    await becomes({ attention: null });
    await env.sleep('25s');
    expect(await attention()).toBeNull();
    await env.sleep('36s');
    await becomes({ attention: 'not_completed' });
    await act('mark_completed');
    await handle.result();
    expect(await stored()).toMatchObject({
      attention: null,
      audit: [
        { what: 'snooze', before: 'not_sent', after: 'no attention' },
        { what: 'mark_completed', before: 'sent', after: 'completed' },
      ],
    });
    await saveHistory(handle, 'payout-overdue-snoozed');
  });
});
