import { randomUUID } from 'node:crypto';
import type { PayoutAct } from '../../../src/domain/payout/payout';
import { saveHistory } from '../../support/histories';
import { eventually } from '../../support/http';
import {
  callback,
  eventTypes,
  scriptedBank,
  useWorkflowSetting,
} from '../../support/workflow-setting';
import {
  ACT,
  actAfterEnd,
  MONEY,
  moneyOf,
  type PayingOut,
  payingOut,
  refusalOf,
  storedPayout,
  unawaited,
} from './setting';

const setting = useWorkflowSetting();

const submitting = () =>
  scriptedBank({ sendPayout: async () => ({ outcome: 'submitted', bank_reference: 'queue-1' }) });

/** Runs `story` with a payout that has been submitted, or sent. */
function at(status: 'submitted' | 'sent', story: (paying: PayingOut) => Promise<void>) {
  if (status === 'sent') return payingOut(setting, scriptedBank(), story);
  return unawaited(setting, submitting(), async (paying) => {
    // The details tell of the answer before its move is written.
    await eventually('it to be submitted', async () => {
      const { status } = await paying.handle.query<{ status: string }>('state');
      return status === 'submitted';
    });
    await story(paying);
  });
}

const act = (
  { handle }: Pick<PayingOut, 'handle'>,
  update: PayoutAct,
  args: object | null | undefined = ACT,
) => handle.executeUpdate<object, [unknown]>(update, { args: [args] });

test.each([
  ['submitted', 'mark_failed', 'failed', 3, MONEY.untouched],
  ['submitted', 'mark_completed', 'completed', 4, MONEY.captured],
  ['sent', 'mark_failed', 'failed', 4, MONEY.untouched],
  ['sent', 'mark_completed', 'completed', 4, MONEY.captured],
  ['sent', 'mark_returned', 'returned', 4, MONEY.returned],
] as const)(
  '%s, %s: %s, with who, when, what and why',
  async (from, what, status, version, money) => {
    await at(from, async (paying) => {
      const { handle, id, input } = paying;
      expect(await act(paying, what)).toEqual({ payout_id: id, status, version });
      expect(await handle.result()).toEqual({ payout_id: id, status, version });
      const stored = await storedPayout(setting, id);
      expect(stored.audit).toEqual([
        {
          id: `${id}:${version}`,
          who: 'ada',
          why: 'confirmed by telephone',
          what,
          when: stored.updated_at,
          before: from,
          after: status,
        },
      ]);
      const words = 'The bank reported that the payout ';
      expect(stored).toMatchObject({
        failure:
          status === 'failed' ? { code: 'failed_at_bank', message: `${words}failed.` } : null,
        returned: status === 'returned' ? { code: 'returned', reason: `${words}came back.` } : null,
      });
      const events = await eventTypes(setting, id);
      expect(events).toHaveLength(version - 1);
      expect(events.at(-1)).toBe(`payout.${status}`);
      expect(await moneyOf(setting, input)).toEqual(money);
      await saveHistory(handle, `payout-${from}-${what.replace('_', '-')}`);
    });
  },
);

test('in a wrong state, an act is refused in words and changes nothing', async () => {
  await at('submitted', async (paying) => {
    expect(await refusalOf(act(paying, 'mark_returned'))).toEqual({
      code: 'wrong_state',
      message:
        'The payout is submitted; only one that was sent, and did not fail or return, can come back.',
    });
    expect((await storedPayout(setting, paying.id)).audit).toEqual([]);
  });
  await at('sent', async (paying) => {
    expect(await refusalOf(act(paying, 'resubmit'))).toEqual({
      code: 'wrong_state',
      message: 'The payout is sent; only one that the bank has not sent can be given to it again.',
    });
    expect(await moneyOf(setting, paying.input)).toEqual(MONEY.captured);
  });
});

test('on a rail where nothing comes back, none can be marked as returned', async () => {
  const card = { method: 'card_payout', can_be_returned: false };
  const story = async (paying: PayingOut) => {
    expect(await refusalOf(act(paying, 'mark_returned'))).toEqual({
      code: 'wrong_state',
      message: 'Nothing comes back on the rail card_payout.',
    });
    await act(paying, 'mark_completed');
    expect(await paying.handle.result()).toMatchObject({ status: 'completed' });
    const afterEnd = actAfterEnd(setting, paying.id, 'mark_returned');
    expect(await refusalOf(afterEnd)).toMatchObject({ code: 'wrong_state' });
  };
  await payingOut(setting, scriptedBank(), story, card);
});

describe('after the end, through a start', () => {
  const END = { completed: MONEY.captured, failed: MONEY.untouched, returned: MONEY.returned };
  test.each([
    ['completed', ['resubmit', 'mark_failed', 'mark_completed']],
    ['failed', ['resubmit', 'mark_returned', 'mark_completed', 'mark_failed']],
    ['returned', ['resubmit', 'mark_returned', 'mark_completed', 'mark_failed']],
  ] as const)(
    'a payout that has %s refuses in words, and its workflow ends again',
    async (end, updates) => {
      await at('sent', async ({ handle, id, input }) => {
        await handle.signal(end, callback());
        await handle.result();
        for (const update of updates) {
          expect(await refusalOf(actAfterEnd(setting, id, update))).toEqual({
            code: 'wrong_state',
            message: expect.stringMatching(`^The payout is ${end}; only one that `),
          });
          expect(await handle.result()).toEqual({ payout_id: id, status: end, version: 4 });
        }
        expect((await storedPayout(setting, id)).audit).toEqual([]);
        expect(await moneyOf(setting, input)).toEqual(END[end]);
        await saveHistory(handle, `payout-refused-act-after-${end}`);
      });
    },
  );

  test('a payout that never was: refused, and nothing runs on', async () => {
    const id = randomUUID();
    await expect(actAfterEnd(setting, id, 'mark_returned')).rejects.toThrow();
    const { status } = await setting.env.client.workflow.getHandle(`payout:${id}`).describe();
    expect(status.name).toBe('FAILED');
  });
});

test('updates of no good shape are refused in words that name the field', async () => {
  await at('sent', async (paying) => {
    for (const [update, args, words] of [
      ['mark_failed', { operator: 'ada' }, /reason/],
      ['resubmit', { reason: 'no name' }, /operator/],
      ['mark_completed', null, /must be an object/],
      ['mark_returned', { operator: ' ', reason: 'x' }, /operator/],
      ['snooze', ACT, /hours/],
      ['snooze', { ...ACT, hours: -1 }, /hours/],
    ] as const) {
      expect(await refusalOf(act(paying, update, args))).toEqual({
        code: 'invalid_request',
        message: expect.stringMatching(words),
      });
    }
    expect(await paying.handle.query('state')).toMatchObject({ status: 'sent', version: 3 });
  });
});

test('two operators at once: the second is refused in words, the payout moves once', async () => {
  await at('sent', async ({ handle, id, input }) => {
    // While the payout's document is held, the first move is asked for but not made.
    const session = setting.mongo.startSession();
    session.startTransaction();
    await setting.stores.payouts.update(id, 3, { request_id: 'held' }, { audit: [] }, session);
    const [first, second] = [
      await handle.startUpdate<object, [object]>('mark_completed', {
        args: [ACT],
        waitForStage: 'ACCEPTED',
      }),
      await handle.startUpdate<object, [object]>('mark_failed', {
        args: [ACT],
        waitForStage: 'ACCEPTED',
      }),
    ];
    await session.abortTransaction();
    await session.endSession();
    expect(await first.result()).toEqual({ payout_id: id, status: 'completed', version: 4 });
    expect(await refusalOf(second.result())).toEqual({
      code: 'wrong_state',
      message: 'The payout is completed; only one that is under way can be marked as failed.',
    });
    expect(await handle.result()).toMatchObject({ status: 'completed', version: 4 });
    expect(await moneyOf(setting, input)).toEqual(MONEY.captured);
    await saveHistory(handle, 'payout-two-operators');
  });
});

test('a bank that says nothing: overdue, snoozed, overdue again, moved on, overdue once more', async () => {
  const marked = (id: string, mark: string | null) =>
    eventually(`the mark ${mark}`, async () => {
      const { attention } = await storedPayout(setting, id);
      return attention === mark;
    });
  await at('submitted', async (paying) => {
    const { handle, id } = paying;
    await setting.env.sleep('61s');
    await marked(id, 'not_sent');
    expect(await act(paying, 'snooze', { ...ACT, hours: 2 })).toMatchObject({ version: 2 });
    expect((await storedPayout(setting, id)).attention).toBeNull();
    await setting.env.sleep('119m');
    expect((await storedPayout(setting, id)).attention).toBeNull();
    await setting.env.sleep('2m');
    await marked(id, 'not_sent');
    await handle.signal('sent', callback());
    await marked(id, null);
    await setting.env.sleep('50s');
    expect((await storedPayout(setting, id)).attention).toBeNull();
    await setting.env.sleep('11s');
    await marked(id, 'not_completed');
    await act(paying, 'mark_completed');
    await handle.result();
    const { attention, audit } = await storedPayout(setting, id);
    expect(attention).toBeNull();
    expect(audit).toMatchObject([
      { what: 'snooze', before: 'not_sent', after: 'no attention' },
      { what: 'mark_completed', before: 'sent', after: 'completed' },
    ]);
    await saveHistory(handle, 'payout-overdue-snoozed');
  });
});
