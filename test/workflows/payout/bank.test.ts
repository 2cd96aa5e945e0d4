import { ApplicationFailure } from '@temporalio/common';
import type { ConnectorActivities } from '../../../connectors/contract/activities';
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
  answered,
  changing,
  lost,
  MONEY,
  moneyOf,
  payingOut,
  sent,
  shows,
  storedPayout,
  unawaited,
} from './setting';

const setting = useWorkflowSetting();

test('an instruction without an answer had arrived: it is looked up, not sent again', async () => {
  const bank = scriptedBank({
    sendPayout: lost,
    lookUpPayout: async () => ({ outcome: 'sent', bank_reference: 'known' }),
  });
  await payingOut(setting, bank, async ({ handle, opened, id, input }) => {
    expect(opened).toMatchObject({ status: 'sent', version: 3 });
    expect(bank.told).toEqual([`sendPayout ${id}`, `lookUpPayout ${id}`]);
    expect((await storedPayout(setting, id)).bank_reference).toBe('known');
    expect(await moneyOf(setting, input)).toEqual(MONEY.captured);
    await handle.signal('completed', callback());
    expect(await handle.result()).toMatchObject({ status: 'completed' });
    await saveHistory(handle, 'payout-looked-up');
  });
});

test('an instruction that the bank refused without our hearing it: looked up, it fails', async () => {
  const bank = scriptedBank({
    sendPayout: lost,
    lookUpPayout: async () => ({ outcome: 'refused', code: 'no', message: 'No.' }),
  });
  await payingOut(setting, bank, async ({ opened, id, input }) => {
    expect(opened).toMatchObject({ status: 'failed', version: 2 });
    expect((await storedPayout(setting, id)).failure).toEqual({ code: 'no', message: 'No.' });
    expect(await moneyOf(setting, input)).toEqual(MONEY.untouched);
  });
});

test('an instruction that never arrived is sent again, under the same id', async () => {
  const bank = scriptedBank({ sendPayout: changing(lost, sent) });
  await payingOut(setting, bank, async ({ handle, opened, id, input }) => {
    expect(opened).toMatchObject({ status: 'sent', version: 3 });
    expect(bank.told).toEqual([`sendPayout ${id}`, `lookUpPayout ${id}`, `sendPayout ${id}`]);
    expect(await moneyOf(setting, input)).toEqual(MONEY.captured);
    await handle.signal('completed', callback());
    expect(await handle.result()).toMatchObject({ status: 'completed' });
    await saveHistory(handle, 'payout-sent-again');
  });
});

describe('resubmit', () => {
  const resubmit = 'resubmit';
  /** The first instruction was lost, and the connector could not look it up: it waits a minute. */
  const stuck = (changes: Partial<ConnectorActivities>) =>
    scriptedBank({
      sendPayout: changing(lost, sent),
      lookUpPayout: changing<object, { outcome: 'not_found' }>(
        () => Promise.reject(ApplicationFailure.nonRetryable('unexpected answer')),
        async () => ({ outcome: 'not_found' }),
      ),
      ...changes,
    });

  test('the bank does not know it: it is sent again at once, under the same id', async () => {
    const bank = stuck({});
    await unawaited(setting, bank, async ({ handle, id, input }) => {
      await shows(handle, 'looked up again later');
      const said = await handle.executeUpdate<unknown, [object]>(resubmit, { args: [ACT] });
      expect(said).toEqual({ payout_id: id, status: 'sent', version: 3, bank: 'sent' });
      const round = [`sendPayout ${id}`, `lookUpPayout ${id}`];
      expect(bank.told).toEqual([...round, `lookUpPayout ${id}`, `sendPayout ${id}`]);
      const { audit, bank_reference } = await storedPayout(setting, id);
      expect(bank_reference).toBe(`again-${id}`);
      expect(audit).toMatchObject([
        {
          who: 'ada',
          what: 'resubmit',
          why: 'confirmed by telephone',
          when: expect.any(String),
          before: 'no attention',
          after: 'no attention',
        },
      ]);
      expect(await eventTypes(setting, id)).toEqual(['payout.submitted', 'payout.sent']);
      expect(await moneyOf(setting, input)).toEqual(MONEY.captured);
      await setting.env.sleep('2h');
      await handle.signal('completed', callback());
      expect(await handle.result()).toMatchObject({ status: 'completed' });
      expect(bank.told).toHaveLength(4);
      await saveHistory(handle, 'payout-resubmitted');
    });
  });

  test('the bank has it queued: nothing is sent again, and the operator is told so', async () => {
    const bank = scriptedBank({
      sendPayout: async () => ({ outcome: 'submitted', bank_reference: 'queue-1' }),
      lookUpPayout: async () => ({ outcome: 'submitted', bank_reference: 'queue-1' }),
    });
    await unawaited(setting, bank, async ({ handle, id, input }) => {
      await answered(handle, 'submitted');
      const said = await handle.executeUpdate<unknown, [object]>(resubmit, { args: [ACT] });
      expect(said).toEqual({ payout_id: id, status: 'submitted', version: 2, bank: 'submitted' });
      expect(bank.told).toEqual([`sendPayout ${id}`, `lookUpPayout ${id}`]);
      expect(await moneyOf(setting, input)).toEqual(MONEY.reserved);
    });
  });

  test('the bank has refused it: it fails', async () => {
    const bank = stuck({
      lookUpPayout: changing<object, { outcome: 'refused'; code: string; message: string }>(
        () => Promise.reject(ApplicationFailure.nonRetryable('unexpected answer')),
        async () => ({ outcome: 'refused', code: 'no', message: 'No.' }),
      ),
    });
    await unawaited(setting, bank, async ({ handle, id, input }) => {
      await shows(handle, 'looked up again later');
      const said = await handle.executeUpdate<unknown, [object]>(resubmit, { args: [ACT] });
      expect(said).toEqual({ payout_id: id, status: 'failed', version: 2, bank: 'refused' });
      expect(await moneyOf(setting, input)).toEqual(MONEY.untouched);
    });
  });
});

/** Last: an activity under way, even one left by its workflow, keeps this server from skipping time. */
describe('ended before the bank has answered', () => {
  const gate = () => {
    let release = () => {};
    const opened = new Promise<void>((resolve) => {
      release = resolve;
    });
    return { opened, release };
  };

  test('by a callback: nothing waits for the answer, neither does the operator', async () => {
    const { opened, release } = gate();
    const bank = scriptedBank({
      sendPayout: lost,
      lookUpPayout: async () => {
        await opened;
        return { outcome: 'not_found' };
      },
    });
    await unawaited(setting, bank, async ({ handle, id, input }) => {
      await eventually('the question', async () => bank.told.includes(`lookUpPayout ${id}`));
      const waits = await handle.startUpdate<object, [object]>('resubmit', {
        args: [ACT],
        waitForStage: 'ACCEPTED',
      });
      await shows(handle, 'operator ada: resubmit');
      await handle.signal('completed', callback({ bank_reference: 'from-callback' }));
      expect(await waits.result()).toEqual({ payout_id: id, status: 'completed', version: 4 });
      expect(await handle.result()).toMatchObject({ status: 'completed', version: 4 });
      release();
      expect(bank.told.filter((line) => line.startsWith('sendPayout'))).toHaveLength(1);
      expect(await moneyOf(setting, input)).toEqual(MONEY.captured);
      await saveHistory(handle, 'payout-callback-first');
    });
  });

  test('by an operator: it is not sent again', async () => {
    const { opened, release } = gate();
    const bank = scriptedBank({
      sendPayout: lost,
      lookUpPayout: async () => {
        await opened;
        return { outcome: 'not_found' };
      },
    });
    await unawaited(setting, bank, async ({ handle, id, input }) => {
      await eventually('the question', async () => bank.told.includes(`lookUpPayout ${id}`));
      await handle.executeUpdate('mark_failed', { args: [ACT] });
      expect(await handle.result()).toMatchObject({ status: 'failed', version: 2 });
      release();
      expect(bank.told).toEqual([`sendPayout ${id}`, `lookUpPayout ${id}`]);
      expect(await moneyOf(setting, input)).toEqual(MONEY.untouched);
    });
  });
});
