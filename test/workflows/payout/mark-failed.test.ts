import { eventually } from '../../support/http';
import {
  callback,
  openWorkflowSetting,
  scriptedBank,
  type WorkflowSetting,
} from '../../support/workflow-setting';
import {
  ACT,
  late,
  moneyOf,
  payingOut,
  refusalOf,
  shows,
  storedPayout,
  unawaited,
} from './setting';

/**
 * Giving money back while an instruction may still be on its way would pay it twice. On the real
 * server: the other one loses an activity that ends while its cancellation is on the way.
 */
let setting: WorkflowSetting;
beforeAll(async () => {
  setting = await openWorkflowSetting('real');
});
afterAll(async () => setting?.close());

function gate() {
  let release = (): void => {};
  const opened = new Promise<void>((resolve) => {
    release = resolve;
  });
  return { opened, release };
}

test('an instruction that a connector has begun is waited for; what the bank took is not failed', async () => {
  const { opened, release } = gate();
  const bank = scriptedBank({
    sendPayout: async () => {
      await opened;
      return { outcome: 'sent', bank_reference: 'taken' };
    },
  });
  await unawaited(setting, bank, async ({ handle, id }) => {
    await eventually('the connector to begin', async () => bank.told.length === 1);
    const marked = refusalOf(handle.executeUpdate('mark_failed', { args: [ACT] }));
    await shows(handle, 'mark_failed');
    release();
    expect(await marked).toMatchObject({
      code: 'wrong_state',
      message: expect.stringMatching(/just taken/),
    });
    await eventually(
      'it to be sent',
      async () => (await storedPayout(setting, id)).status === 'sent',
    );
    await handle.signal('completed', callback());
    await handle.result();
    expect(await storedPayout(setting, id)).toMatchObject({ status: 'completed', failure: null });
  });
});

test('an instruction that ends without an answer lets the operator decide', async () => {
  const { opened, release } = gate();
  const bank = scriptedBank({
    sendPayout: async () => {
      await opened;
      throw new Error('connection reset');
    },
  });
  await unawaited(setting, bank, async ({ handle, id, input }) => {
    await eventually('the connector to begin', async () => bank.told.length === 1);
    const marked = handle.executeUpdate('mark_failed', { args: [ACT] });
    await shows(handle, 'mark_failed');
    release();
    expect(await marked).toMatchObject({ status: 'failed' });
    await handle.result();
    expect(bank.told).toHaveLength(1);
    expect(await storedPayout(setting, id)).toMatchObject({ status: 'failed', attention: null });
    expect(await moneyOf(setting, input)).toMatchObject({ reserved: 0 });
  });
});

test('a mark of a restart ends with the payout', async () => {
  await payingOut(setting, scriptedBank(), async ({ handle, id }) => {
    await handle.terminate('by mistake');
    await (await late(setting, id, 'completed')).result();
    expect(await storedPayout(setting, id)).toMatchObject({ status: 'completed', attention: null });
  });
});
