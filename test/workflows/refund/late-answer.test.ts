import { gate } from '../../support/gate';
import { saveHistory } from '../../support/histories';
import { withHeldUpdates } from '../../support/hold-updates';
import { eventually } from '../../support/http';
import { scriptedBank } from '../../support/workflow-setting';
import { useLifecycles } from '../lifecycles';

const { setting, withRefund } = useLifecycles('real');

test.each([
  [{ outcome: 'accepted', bank_reference: 'late' } as const, 'moved_after_failed'],
  [{ outcome: 'refused', code: 'closed', message: 'Closed.' } as const, null],
])('a refund marked as failed, and then %j by the bank: %s', async (answer, attention) => {
  const { opened, release } = gate();
  const bank = scriptedBank({
    sendRefund: async () => {
      throw new Error('connection reset');
    },
    lookUpRefund: async () => {
      await opened;
      return answer;
    },
  });
  await withRefund(bank, async ({ handle, id, act, shows, stored }) => {
    await eventually('the look-up', async () => bank.told.includes(`lookUpRefund ${id}`));
    // While its updates are held, the transition is under way.
    const marked = await withHeldUpdates(setting.stores.refunds, async (reached) => {
      const sent = { mark: act('mark_failed') };
      try {
        await shows('operator ada: mark_failed');
        await eventually('the transition', async () => {
          const { raw } = await handle.describe();
          const pending = raw.pendingActivities ?? [];
          return pending.some((each) => each.activityType?.name === 'recordRefundMove');
        });
        await reached;
      } finally {
        release();
      }
      await eventually('the answer', async () => {
        const { raw } = await handle.describe();
        return raw.pendingActivities?.length === 1;
      });
      return sent;
    });
    expect(await marked.mark).toMatchObject({ status: 'failed' });
    expect(await handle.result()).toMatchObject({ status: 'failed' });
    expect(await stored()).toMatchObject({ status: 'failed', attention });
    if (attention !== null) await saveHistory(handle, 'refund-accepted-after-marked-failed');
  });
});
