import { WorkflowNotFoundError } from '@temporalio/client';
import { deliverCallback } from '../../../src/callbacks/deliver';
import { signCallback } from '../../../src/callbacks/mac';
import type { PaymentInput } from '../../../src/domain/payment/workflow';
import { taskQueues } from '../../../src/domain/task-queues';
import { Encrypted } from '../../../src/encryption/encrypter';
import { createTemporalClient } from '../../../src/temporal/client';
import { eventually } from '../../support/http';
import { retryUntilDone } from '../../support/insist';
import {
  callback,
  openPayment,
  paymentInput,
  recordPaymentKey,
  scriptedBank,
  useWorkflowSetting,
  withBank,
} from '../../support/workflow-setting';

const setting = useWorkflowSetting('time-skipping', ['sandbox', 'live']);

const queueOf = async (workflowId: string) =>
  (await setting.env.client.workflow.getHandle(workflowId).describe()).taskQueue;

/** A delivery starts after its event is stored. */
const nullIfMissing = (error: unknown): null => {
  if (error instanceof WorkflowNotFoundError) return null;
  throw error;
};

/** Parts of a service that starts workflows, as the API and connectors have them. */
const starting = () => ({
  stores: setting.stores,
  lifecycleQueue: setting.queues.lifecycle,
  now: () => new Date(),
});

/** Waits for the session, for which a busy machine has the bank asked twice. */
const isAwaited = ({ payment_id }: PaymentInput) =>
  eventually('the session', async () => {
    return (await setting.stores.payments.get(payment_id))?.status === 'awaiting_customer';
  });

test.each([
  [false, ''],
  [true, '-live'],
])(
  'with livemode %s a payment, its deliveries and its late callback run on queues%s',
  (livemode, end) =>
    withBank(setting, scriptedBank(), async (connector) => {
      const { stores, queues, env } = setting;
      const input = paymentInput(connector, { livemode });
      const { payment_id, account_id } = input;
      const sealed = Encrypted.parse('a.a.a.a.a');
      const url = 'https://shop.example/';
      await stores.endpoints.set({ account_id, livemode, url, sealed, now: new Date(0) });
      await recordPaymentKey(setting, input);
      const door = createTemporalClient({ ...starting(), client: env.client });
      await retryUntilDone(() => door.openPayment(input));
      const workflowId = `payment:${payment_id}`;
      expect(await queueOf(workflowId)).toBe(`${queues.lifecycle}${end}`);
      await isAwaited(input);
      const deliveryQueue = await eventually('the delivery', async () => {
        const [event] = await stores.events.list({ account_id, livemode, limit: 1 });
        return event && (await queueOf(`webhook:${event._id}`).catch(nullIfMissing));
      });
      expect(deliveryQueue).toBe(`${queues.webhooks}${end}`);

      const key = livemode ? await setting.connectorKey(connector) : undefined;
      const settle = async () => {
        const about = {
          resource: 'payment' as const,
          resource_id: payment_id,
          connector,
          name: 'settled' as const,
        };
        const inbox = { ...starting(), temporal: env.client, key };
        await deliverCallback(inbox, { ...about, callback: callback() });
        await env.client.workflow.getHandle(workflowId).result();
      };
      await settle();
      await settle();
      expect(await queueOf(workflowId)).toBe(`${queues.lifecycle}${end}`);
      expect((await stores.payments.get(payment_id))?.status).toBe('settled');
    }),
);

test('a live payment that an earlier version started goes on where it is', () =>
  withBank(setting, scriptedBank(), async (connector) => {
    const input = paymentInput(connector, { livemode: true });
    const { handle } = await openPayment(setting, input);
    await isAwaited(input);
    expect(await queueOf(handle.workflowId)).toBe(setting.queues.lifecycle);
    const about = { connector, resource: 'payment', resource_id: input.payment_id } as const;
    const settled = { ...about, name: 'settled', callback: callback() } as const;
    const mac = signCallback(await setting.connectorKey(connector), settled);
    await handle.signal('settled', { ...settled.callback, mac });
    expect(await handle.result()).toMatchObject({ status: 'settled' });
  }));

test('with a prefix the bank is asked on the queue of its own installation', async () => {
  const prefix = setting.queues.lifecycle.replace('lifecycle-', 'shop-');
  const { lifecycleQueue } = taskQueues(prefix);
  const stop = await setting.startWorkers(lifecycleQueue);
  const bank = scriptedBank();
  const connector = `own-${prefix}`;
  await withBank(
    setting,
    bank,
    async () => {
      const input = paymentInput(connector);
      await recordPaymentKey(setting, input);
      const { client } = setting.env;
      const door = createTemporalClient({ ...starting(), lifecycleQueue, client });
      await retryUntilDone(() => door.openPayment(input));
      await isAwaited(input);
      expect(new Set(bank.told)).toEqual(new Set(['openSession']));
      await client.workflow.getHandle(`payment:${input.payment_id}`).terminate('end of test');
    },
    connector,
    prefix,
  );
  await stop();
});
