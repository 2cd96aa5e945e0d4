import { saveHistory } from '../../support/histories';
import {
  callback,
  eventTypes,
  scriptedBank,
  useWorkflowSetting,
} from '../../support/workflow-setting';
import { differencesOf } from '../payment/setting';
import { accepted, moneyOf, postingsOf, refunding, shows, storedRefund } from './setting';

const setting = useWorkflowSetting();

test('a malformed callback never throws: it is shown, and the refund goes on', async () => {
  await refunding(setting, scriptedBank(), async ({ handle, id }) => {
    await accepted(handle);
    await handle.signal('settled', { callback_id: 7 });
    await handle.signal('failed');
    const details = await shows(handle, 'unreadable callback `failed`');
    expect(details).toContain('malformed_callback');
    await handle.signal('settled', callback());
    expect(await handle.result()).toMatchObject({ status: 'settled', version: 2 });
    expect((await storedRefund(setting, id)).attention).toBe('malformed_callback');
    await saveHistory(handle, 'refund-malformed-callback');
  });
});

test('a bank that sent less: an operator books it, and the rest is given back', async () => {
  await refunding(setting, scriptedBank(), async ({ handle, id, payment }) => {
    await accepted(handle);
    await handle.signal('settled', callback({ amount: 1_000 }));
    await shows(handle, 'amount_differs');
    expect(await storedRefund(setting, id)).toMatchObject({ status: 'processing' });
    const act = { operator: 'ada', reason: 'asked the bank' };
    const mark = (amount: number) =>
      handle.executeUpdate<unknown, [object]>('mark_settled', { args: [{ ...act, amount }] });
    await expect(mark(1_051)).rejects.toMatchObject({ cause: { type: 'invalid_request' } });
    expect(await mark(1_000)).toEqual({ refund_id: id, status: 'settled', version: 2 });
    expect(await moneyOf(setting, payment)).toEqual({ refunded: 1_000, available: 50 });
    expect(await storedRefund(setting, id)).toMatchObject({ attention: null });
    expect(await differencesOf(setting, id)).toEqual([]);
    expect(await differencesOf(setting, payment.payment_id)).toEqual([]);
    await saveHistory(handle, 'refund-amount-differs');
  });
});

test('the same callback_id counts once', async () => {
  await refunding(setting, scriptedBank(), async ({ handle, id, payment }) => {
    const settled = callback();
    await handle.signal('settled', settled);
    await handle.signal('settled', settled).catch(() => 'it has ended already');
    expect(await handle.result()).toMatchObject({ status: 'settled', version: 2 });
    expect(await setting.stores.callbacks.forResource(id)).toEqual([]);
    expect(await eventTypes(setting, payment.payment_id, id)).toHaveLength(1);
  });
});

test('a cancel request from the Temporal UI ends nothing, and updates are still answered', async () => {
  await refunding(setting, scriptedBank(), async ({ handle, id }) => {
    await accepted(handle);
    await handle.cancel();
    const act = { operator: 'ada', reason: 'confirmed by telephone' };
    const marked = await handle.executeUpdate<unknown, [object]>('mark_settled', { args: [act] });
    expect(marked).toEqual({ refund_id: id, status: 'settled', version: 2 });
    expect(await handle.result()).toMatchObject({ status: 'settled' });
    await saveHistory(handle, 'refund-ui-cancel');
  });
});

describe('a callback after the end', () => {
  const reopen = (id: string, signal: string) =>
    setting.env.client.workflow.signalWithStart('refund', {
      workflowId: `refund:${id}`,
      taskQueue: setting.queues.lifecycle,
      signal,
      signalArgs: [callback()],
      args: [{ refund_id: id, resume: true, request_id: 'late' }],
    });

  test('settled after failed: moves nothing, operators see it', async () => {
    const bank = scriptedBank();
    await refunding(setting, bank, async ({ handle, id, payment }) => {
      await accepted(handle);
      await handle.signal('failed', callback());
      await handle.result();
      const late = await reopen(id, 'settled');
      expect(await late.result()).toEqual({ refund_id: id, status: 'failed', version: 2 });
      expect(await storedRefund(setting, id)).toMatchObject({
        status: 'failed',
        attention: 'settled_after_failed',
      });
      expect(await setting.stores.callbacks.forResource(id)).toMatchObject([
        { resource: 'refund', name: 'settled', unapplied: expect.stringMatching(/never settles/) },
      ]);
      expect(await postingsOf(setting, id)).toEqual(['refund_accepted', 'refund_failed']);
      expect(await moneyOf(setting, payment)).toEqual({ refunded: 0, available: 1_050 });
      expect(bank.told.filter((line) => line.startsWith('sendRefund'))).toHaveLength(1);
      await saveHistory(late, 'refund-resumed-settled-after-failed');
    });
  });

  test('failed after settled: moves nothing, operators see it', async () => {
    await refunding(setting, scriptedBank(), async ({ handle, id, payment }) => {
      await handle.signal('settled', callback());
      await handle.result();
      await (await reopen(id, 'failed')).result();
      expect(await storedRefund(setting, id)).toMatchObject({
        status: 'settled',
        attention: 'failed_after_settled',
      });
      expect(await moneyOf(setting, payment)).toEqual({ refunded: 1_050, available: 0 });
    });
  });

  test('settled once more: kept with its reason, nobody is bothered', async () => {
    await refunding(setting, scriptedBank(), async ({ handle, id }) => {
      await handle.signal('settled', callback());
      await handle.result();
      await (await reopen(id, 'settled')).result();
      expect((await storedRefund(setting, id)).attention).toBeNull();
      expect(await setting.stores.callbacks.forResource(id)).toMatchObject([
        { unapplied: 'the refund is settled already' },
      ]);
    });
  });
});
