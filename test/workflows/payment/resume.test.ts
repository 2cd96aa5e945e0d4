import { saveHistory } from '../../support/histories';
import { eventually } from '../../support/http';
import {
  callback,
  openPayment,
  paymentInput,
  scriptedBank,
  useWorkflowSetting,
  withBank,
} from '../../support/workflow-setting';
import { resume, storedPayment } from './setting';

const setting = useWorkflowSetting();

test('a payment without a session asks the bank for it again', async () => {
  let isAway = true;
  const bank = scriptedBank({
    openSession: async ({ payment_id, return_url }) => {
      if (isAway) throw new Error('the bank is away');
      return { outcome: 'opened', bank_reference: payment_id, session_url: return_url };
    },
  });
  await withBank(setting, bank, async (connector) => {
    const input = paymentInput(connector);
    const { payment_id: id, return_url } = input;
    const { handle, opened } = await openPayment(setting, input);
    expect(opened).toMatchObject({ status: 'created' });
    await handle.terminate('lost');
    isAway = false;
    const resumed = await resume(setting, id);
    await eventually('the session', async () => {
      return (await storedPayment(setting, id)).status === 'awaiting_customer';
    });
    expect(await storedPayment(setting, id)).toMatchObject({ session_url: return_url });
    await resumed.signal('settled', callback());
    expect(await resumed.result()).toMatchObject({ status: 'settled' });
    await saveHistory(resumed, 'payment-resumed-created');
  });
});

test('a settlement is due from the authorisation, not from the new start', async () => {
  await withBank(setting, scriptedBank(), async (connector) => {
    const input = paymentInput(connector, { method: 'ideal' });
    const { payment_id: id } = input;
    const { handle } = await openPayment(setting, input);
    await handle.signal('authorized', callback());
    await eventually('the authorisation', async () => {
      return (await storedPayment(setting, id)).status === 'authorized';
    });
    await handle.terminate('lost');
    const longAgo = '2026-01-01T00:00:00.000Z';
    const { dbName } = setting.stores.ledger.collections.books;
    const payments = setting.mongo.db(dbName).collection<{ _id: string }>('payments');
    await payments.updateOne({ _id: id }, { $set: { authorized_at: longAgo } });
    const resumed = await resume(setting, id);
    await eventually('the mark', async () => {
      return (await storedPayment(setting, id)).attention === 'settlement_overdue';
    });
    await resumed.signal('settled', callback());
    expect(await resumed.result()).toMatchObject({ status: 'settled' });
    expect((await storedPayment(setting, id)).attention).toBeNull();
  });
});
