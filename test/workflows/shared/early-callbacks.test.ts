import { saveHistory } from '../../support/histories';
import { eventually } from '../../support/http';
import {
  paymentInput,
  recordPaymentKey,
  scriptedBank,
  withBank,
} from '../../support/workflow-setting';
import { trackPayment, useLifecycles } from '../lifecycles';

const { setting } = useLifecycles();

test('what the bank says while no worker runs is applied in its order', async () => {
  const queue = `${setting.queues.lifecycle}-later`;
  await withBank(setting, scriptedBank(), async (connector) => {
    const input = paymentInput(connector);
    await recordPaymentKey(setting, input);
    const handle = await setting.env.client.workflow.start('payment', {
      ...{ workflowId: `payment:${input.payment_id}`, taskQueue: queue, args: [input] },
    });
    const { signal, becomes, stored } = trackPayment(setting, input, handle);
    await signal('failed');
    await handle.signal('not_ours');
    await signal('settled');
    const stop = await setting.startWorkers(queue);
    const isStored = async () => (await setting.stores.payments.get(input.payment_id)) !== null;
    await eventually('the payment to be stored', isStored);
    // In the other order it would be settled, and then taken back.
    await becomes({ status: 'failed', attention: 'late_settlement_reversed' });
    expect(await stored()).toMatchObject({ receipts: [{ reason: 'late', amount: 1_050 }] });
    await saveHistory(handle, 'payment-callbacks-in-order');
    await stop();
  });
});
