import { assertNotBehind } from '../../../src/temporal/reopening';
import { saveHistory } from '../../support/histories';
import { scriptedBank } from '../../support/workflow-setting';
import { MONEY, useLifecycles } from '../lifecycles';

/** A workflow that was ended from outside while its payout was in flight. */
const { setting, withUnsentPayout, withStatus } = useLifecycles();

test('before the bank has sent it: the next callback starts it again, the bank is asked first', async () => {
  const bank = scriptedBank({
    sendPayout: async () => ({ outcome: 'submitted', bank_reference: 'queue-1' }),
    lookUpPayout: async () => ({ outcome: 'sent', bank_reference: 'queue-1' }),
  });
  await withUnsentPayout(bank, async (payout) => {
    const { id, handle, shows } = payout;
    await shows('instruction at the bank: submitted');
    await handle.terminate('by hand');
    await payout.signalAfterEnd('submitted');
    expect(await shows('instruction at the bank: sent')).toContain('restarted_in_flight');
    expect(payout.told).toEqual([`sendPayout ${id}`, `lookUpPayout ${id}`]);
    const state = { payout_id: id, status: 'completed', version: 4 };
    expect(await payout.endBy('completed')).toEqual(state);
    // It was the attention reason of a payout in flight.
    expect(await payout.attention()).toBeNull();
    expect(await payout.money()).toEqual(MONEY.captured);
    await saveHistory(handle, 'payout-resumed-submitted');
  });
});

test('after it was sent: the bank is not told again', async () => {
  await withStatus.sent(async ({ id, handle, signalAfterEnd, attention, told }) => {
    await handle.terminate('by hand');
    await signalAfterEnd('completed');
    expect(await handle.result()).toMatchObject({ status: 'completed', version: 4 });
    expect(await attention()).toBeNull();
    expect(told).toEqual([`sendPayout ${id}`]);
    await saveHistory(handle, 'payout-resumed-sent');
  });
});

test('a document that was read before the run ended is not behind', async () => {
  await withStatus.sent(async ({ id, endBy, attention }) => {
    await endBy('completed');
    const temporal = setting.env.client;
    const { stores } = setting;
    await assertNotBehind({ temporal, stores }, 'payout', { _id: id, version: 3 });
    expect(await attention()).toBeNull();
  });
});
