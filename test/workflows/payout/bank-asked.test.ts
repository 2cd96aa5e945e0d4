import type { ConnectorActivities, PayoutLookup } from '../../../connectors/contract/activities';
import { gate } from '../../support/gate';
import { saveHistory } from '../../support/histories';
import { eventually } from '../../support/http';
import { callback, scriptedBank } from '../../support/workflow-setting';
import {
  ACT,
  MONEY,
  refusalOf,
  type TrackedPayout,
  unlessUnreachable,
  useLifecycles,
} from '../lifecycles';

const { setting, withUnsentPayout } = useLifecycles('real');

// A machine that stalls while the bank is asked uses up the seconds that an operator waits.
jest.retryTimes(3, { logErrorsBeforeRetry: true });

const CONFIRMED = { ...ACT, bank_confirmed_not_executed: true };

/** An instruction without an answer. */
const lost = async () => {
  throw new Error('connection reset');
};

type CancelOutcome = 'cancelled' | 'too_late' | 'unknown';

/** A bank that has queued a payout; with `cancel` it can cancel one. */
function queueing(changes: Partial<ConnectorActivities>, cancel?: CancelOutcome) {
  const bank = scriptedBank({
    sendPayout: async () => ({ outcome: 'submitted', bank_reference: 'queue-1' }),
    ...changes,
  });
  const cancelPayout = async ({ payout_id }: { payout_id: string }) => {
    bank.told.push(`cancelPayout ${payout_id}`);
    return { outcome: cancel };
  };
  const activities = { ...bank.activities, ...(cancel === undefined ? {} : { cancelPayout }) };
  return { ...bank, activities };
}

const knows = (answer: PayoutLookup) => ({ lookUpPayout: async () => answer });
const NOT_FOUND = { outcome: 'not_found' } as const;
const REFUSED = { outcome: 'refused', code: 'closed', message: 'Closed.' } as const;
const QUEUED = { outcome: 'submitted', bank_reference: 'queue-1' } as const;
const SENT = { outcome: 'sent', bank_reference: 'queue-1' } as const;

/** Runs `story` with a payout that the bank has queued. */
function queued(
  bank: ReturnType<typeof queueing>,
  story: (paying: TrackedPayout) => Promise<void>,
): Promise<void> {
  return withUnsentPayout(bank, async (paying) => {
    await becomes(paying, 'submitted');
    await story(paying);
  });
}

const becomes = ({ id }: TrackedPayout, status: string) =>
  eventually(status, async () => (await setting.stores.payouts.get(id))?.status === status);

const markFailedOnce = ({ handle }: TrackedPayout) =>
  handle.executeUpdate<object, [object]>('mark_failed', { args: [ACT] });
const markFailed = ({ handle }: TrackedPayout, act: object = ACT) =>
  unlessUnreachable(() => handle.executeUpdate<object, [object]>('mark_failed', { args: [act] }));

test.each([
  ['does not know it', queueing(knows(NOT_FOUND))],
  ['has refused it', queueing(knows(REFUSED))],
  ['cancels it', queueing(knows(QUEUED), 'cancelled')],
  [
    'cannot say whether it is cancelled, and does not know it',
    queueing(knows(NOT_FOUND), 'unknown'),
  ],
])('a payout is marked as failed where the bank %s', async (_case, bank) => {
  await queued(bank, async (paying) => {
    expect(await markFailed(paying)).toMatchObject({ status: 'failed', version: 3 });
    expect(await paying.handle.result()).toMatchObject({ status: 'failed' });
    expect(await paying.money()).toEqual(MONEY.untouched);
    const { audit, attention } = await paying.stored();
    expect(audit).toMatchObject([{ who: 'ada', what: 'mark_failed', after: 'failed' }]);
    expect(audit[0]).not.toHaveProperty('bank_confirmed_not_executed');
    expect(attention).toBeNull();
  });
});

test.each([
  ['has it in its queue', queueing(knows(QUEUED)), 'submitted'],
  ['has handed it on', queueing(knows(SENT)), 'sent'],
  ['says that it is too late', queueing(knows(NOT_FOUND), 'too_late'), 'submitted'],
  ['cannot cancel it, and has it', queueing(knows(QUEUED), 'unknown'), 'submitted'],
])('a payout is not marked as failed where the bank %s', async (_case, bank, status) => {
  await queued(bank, async (paying) => {
    expect(await refusalOf(markFailed(paying))).toEqual({
      code: 'held_by_bank',
      message: expect.stringMatching(/^The bank holds the payout.*bank_confirmed_not_executed/),
    });
    expect(await paying.stored()).toMatchObject({ status, audit: [] });
    expect(bank.told.filter((line) => line === `sendPayout ${paying.id}`)).toHaveLength(1);
    expect(await markFailed(paying, CONFIRMED)).toMatchObject({ status: 'failed' });
    await paying.handle.result();
  });
});

test('an operator who knows it from the bank does not ask it, and the audit trail says so', async () => {
  const bank = queueing(knows(QUEUED), 'too_late');
  await queued(bank, async (paying) => {
    expect(await markFailed(paying, CONFIRMED)).toMatchObject({ status: 'failed' });
    await paying.handle.result();
    expect(bank.told).toEqual([`sendPayout ${paying.id}`]);
    const { audit, account_id } = await paying.stored();
    expect(audit).toMatchObject([{ what: 'mark_failed', bank_confirmed_not_executed: true }]);
    const lines = await setting.stores.auditLog.list({ account_id, limit: 10 });
    expect(lines).toMatchObject([
      { after: { what: 'mark_failed', bank_confirmed_not_executed: true } },
    ]);
  });
});

test('the confirmation is true or false, and of no other act', async () => {
  await queued(queueing(knows(QUEUED)), async (paying) => {
    const invalid = markFailed(paying, { ...ACT, bank_confirmed_not_executed: 'yes' });
    expect(await refusalOf(invalid)).toEqual({
      code: 'invalid_request',
      message: 'bank_confirmed_not_executed: must be true or false',
    });
    const misplaced = paying.handle.executeUpdate('mark_completed', { args: [CONFIRMED] });
    expect(await refusalOf(misplaced)).toMatchObject({ code: 'invalid_request' });
    expect(
      await refusalOf(markFailed(paying, { ...ACT, bank_confirmed_not_executed: false })),
    ).toMatchObject({ code: 'held_by_bank' });
    await markFailed(paying, CONFIRMED);
    await paying.handle.result();
  });
});

test('while the bank is asked, its callbacks are applied and count more than its answer', async () => {
  const { opened, release } = gate();
  const bank = queueing({
    lookUpPayout: async () => {
      await opened;
      return NOT_FOUND;
    },
  });
  await queued(bank, async (paying) => {
    const refusals = [refusalOf(markFailedOnce(paying)), refusalOf(markFailedOnce(paying))];
    await eventually('the question', async () => bank.told.includes(`lookUpPayout ${paying.id}`));
    await paying.handle.signal('sent', callback());
    await becomes(paying, 'sent');
    release();
    for (const refusal of await Promise.all(refusals)) {
      expect(refusal).toMatchObject({
        code: 'held_by_bank',
        message: expect.stringMatching(/became sent meanwhile/),
      });
    }
    expect(bank.told.filter((line) => line.startsWith('lookUpPayout'))).toHaveLength(1);
    await paying.handle.signal('completed', callback());
    expect(await paying.handle.result()).toMatchObject({ status: 'completed' });
    await saveHistory(paying.handle, 'payout-mark-failed-held');
  });
});

test('a bank that cannot be asked refuses the act, and the instruction goes on', async () => {
  let isAway = true;
  const bank = queueing({
    sendPayout: lost,
    lookUpPayout: async () => {
      if (isAway) throw new Error('The bank is away.');
      return SENT;
    },
  });
  await withUnsentPayout(bank, async (paying) => {
    await eventually('a look-up', async () => bank.told.includes(`lookUpPayout ${paying.id}`));
    expect(await refusalOf(markFailedOnce(paying))).toEqual({
      code: 'bank_unreachable',
      message: expect.stringMatching(/did not answer in time.*bank_confirmed_not_executed/),
    });
    expect(await paying.stored()).toMatchObject({ status: 'created', audit: [] });
    isAway = false;
    await becomes(paying, 'sent');
    expect(bank.told.filter((line) => line.startsWith('sendPayout'))).toHaveLength(1);
    await paying.handle.signal('completed', callback());
    await paying.handle.result();
    expect(await paying.money()).toEqual(MONEY.captured);
    await saveHistory(paying.handle, 'payout-mark-failed-unreachable');
  });
});

test('after a restart, a bank that does not know it may still get the earlier instruction', async () => {
  const { opened, release } = gate();
  const bank = queueing({
    sendPayout: async () => {
      await opened;
      return QUEUED;
    },
    ...knows(NOT_FOUND),
  });
  await withUnsentPayout(bank, async (paying) => {
    const { handle } = paying;
    await eventually('the connector to begin', async () => bank.told.length === 1);
    await handle.terminate('by mistake');
    await paying.restart();
    await paying.shows('restarted_in_flight');
    expect(await refusalOf(markFailed(paying))).toMatchObject({
      code: 'wrong_state',
      message: expect.stringMatching(/an earlier instruction may still arrive/),
    });
    release();
    await markFailed(paying, CONFIRMED);
    await handle.result();
  });
});

test('each resubmit cancels the look-up of the one before', async () => {
  const bank = queueing({
    sendPayout: lost,
    lookUpPayout: async () => {
      throw new Error('The bank is away.');
    },
  });
  await withUnsentPayout(bank, async (paying) => {
    const { handle } = paying;
    const lookUps = async () => {
      const { raw } = await handle.describe();
      const pending = raw.pendingActivities ?? [];
      return pending.filter((each) => each.activityType?.name === 'lookUpPayout').length;
    };
    await eventually('a look-up', async () => (await lookUps()) === 1);
    const [first, second] = [0, 1].map(() => handle.executeUpdate('resubmit', { args: [ACT] }));
    await eventually('both acts', async () => {
      return (await paying.stored()).audit.length === 2;
    });
    await eventually('one look-up', async () => (await lookUps()) === 1);
    await markFailed(paying, CONFIRMED);
    expect(await Promise.all([first, second])).toMatchObject([
      { status: 'failed' },
      { status: 'failed' },
    ]);
    await handle.result();
  });
});
