import { gate } from '../../support/gate';
import { eventually } from '../../support/http';
import { callback, scriptedBank, useWorkflowSetting } from '../../support/workflow-setting';
import { moneyOf, refunding, refusalOf, shows, storedRefund } from './setting';

/** Giving the amount back while the instruction may still arrive would pay it twice. */
const ACT = { operator: 'ada', reason: 'confirmed by telephone' };

// The time-skipping server loses an activity that ends while its cancellation is on the way.
const setting = useWorkflowSetting('real');

test('an instruction that a connector has begun is waited for; what the bank took is not failed', async () => {
  const { opened, release } = gate();
  const bank = scriptedBank({
    sendRefund: async () => {
      await opened;
      return { outcome: 'accepted', bank_reference: 'taken' };
    },
  });
  await refunding(setting, bank, async ({ handle, id, payment }) => {
    await eventually('the instruction', async () => bank.told.includes(`sendRefund ${id}`));
    const marked = refusalOf(handle.executeUpdate('mark_failed', { args: [ACT] }));
    await shows(handle, 'mark_failed');
    release();
    expect(await marked).toMatchObject({ code: 'wrong_state' });
    await handle.signal('settled', callback());
    await handle.result();
    expect(await storedRefund(setting, id)).toMatchObject({ status: 'settled', failure: null });
    expect(await moneyOf(setting, payment)).toMatchObject({ available: 0 });
  });
});

test('an instruction that ends without an answer lets the operator decide', async () => {
  const { opened, release } = gate();
  const bank = scriptedBank({
    sendRefund: async () => {
      await opened;
      throw new Error('connection reset');
    },
  });
  await refunding(setting, bank, async ({ handle, id, payment }) => {
    await eventually('the instruction', async () => bank.told.includes(`sendRefund ${id}`));
    const marked = handle.executeUpdate('mark_failed', { args: [ACT] });
    await shows(handle, 'mark_failed');
    release();
    expect(await marked).toMatchObject({ status: 'failed' });
    await handle.result();
    expect(bank.told.filter((line) => line.startsWith('sendRefund'))).toHaveLength(1);
    expect(await moneyOf(setting, payment)).toEqual({ refunded: 0, available: 1_050 });
  });
});
