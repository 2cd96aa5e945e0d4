import { ApplicationFailure } from '@temporalio/common';
import { saveHistory } from '../../support/histories';
import { eventually } from '../../support/http';
import { callback, scriptedBank, useWorkflowSetting } from '../../support/workflow-setting';
import {
  answered,
  changing,
  late,
  lost,
  MONEY,
  moneyOf,
  payingOut,
  sent,
  shows,
  storedPayout,
  unawaited,
} from './setting';

/** A workflow that was ended from outside while its payout was in flight. */
const setting = useWorkflowSetting();

test('before the bank has sent it: the next callback starts it again, the bank is asked first', async () => {
  const bank = scriptedBank({
    sendPayout: async () => ({ outcome: 'submitted', bank_reference: 'queue-1' }),
    lookUpPayout: async () => ({ outcome: 'sent', bank_reference: 'queue-1' }),
  });
  await unawaited(setting, bank, async ({ handle, id, input }) => {
    await answered(handle, 'submitted');
    await handle.terminate('by hand');
    const again = await late(setting, id, 'submitted');
    const details = await answered(again, 'sent');
    expect(details).toContain('restarted_in_flight');
    expect(bank.told).toEqual([`sendPayout ${id}`, `lookUpPayout ${id}`]);
    await again.signal('completed', callback());
    expect(await again.result()).toEqual({ payout_id: id, status: 'completed', version: 4 });
    // The mark was of a payout in flight.
    expect((await storedPayout(setting, id)).attention).toBeNull();
    expect(await moneyOf(setting, input)).toEqual(MONEY.captured);
    await saveHistory(again, 'payout-resumed-submitted');
  });
});

test('before the bank was told of it: it is told, under the same id', async () => {
  const bank = scriptedBank({
    sendPayout: changing(lost, sent),
    lookUpPayout: changing<object, { outcome: 'not_found' }>(
      () => Promise.reject(ApplicationFailure.nonRetryable('unexpected answer')),
      async () => ({ outcome: 'not_found' }),
    ),
  });
  await unawaited(setting, bank, async ({ handle, id, input }) => {
    await shows(handle, 'looked up again later');
    await handle.terminate('by hand');
    await setting.env.client.workflow.start('payout', {
      workflowId: `payout:${id}`,
      taskQueue: setting.queues.lifecycle,
      args: [{ payout_id: id, resume: true, request_id: 'operator' }],
    });
    const round = [`sendPayout ${id}`, `lookUpPayout ${id}`];
    await eventually('the bank to be asked', async () => bank.told.length === 3);
    // A connector might still be at what the run that was ended had sent.
    await setting.env.sleep('31s');
    await eventually('the payout to be sent', async () => {
      const { status } = await storedPayout(setting, id);
      return status === 'sent';
    });
    const asked = [`lookUpPayout ${id}`, `lookUpPayout ${id}`];
    expect(bank.told).toEqual([...round, ...asked, `sendPayout ${id}`]);
    expect(await moneyOf(setting, input)).toEqual(MONEY.captured);
    await handle.signal('completed', callback());
    expect(await handle.result()).toMatchObject({ status: 'completed', version: 4 });
    await saveHistory(handle, 'payout-resumed-created');
  });
});

test('after it was sent: the bank is not told again', async () => {
  const bank = scriptedBank();
  await payingOut(setting, bank, async ({ handle, id }) => {
    await handle.terminate('by hand');
    const again = await late(setting, id, 'completed');
    expect(await again.result()).toMatchObject({ status: 'completed', version: 4 });
    expect(bank.told).toEqual([`sendPayout ${id}`]);
    await saveHistory(again, 'payout-resumed-sent');
  });
});
