import { readFileSync } from 'node:fs';
import { WorkflowNotFoundError } from '@temporalio/client';
import type { WorkflowBundleOption } from '@temporalio/worker';
import { deliverCallback } from '../../../src/callbacks/deliver';
import { signCallback } from '../../../src/callbacks/mac';
import type { PaymentInput } from '../../../src/domain/payment/workflow';
import { taskQueues } from '../../../src/domain/task-queues';
import { Encrypted } from '../../../src/encryption/encrypter';
import { createTemporalClient } from '../../../src/temporal/client';
import { workflowBundles } from '../../support/bundle';
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

const readQueue = async (workflowId: string) =>
  (await setting.env.client.workflow.getHandle(workflowId).describe()).taskQueue;

/** Opens a payment as the API does, and waits for the session. */
async function openByApi(input: PaymentInput, lifecycleQueue = setting.queues.lifecycle) {
  await recordPaymentKey(setting, input);
  const { stores, env } = setting;
  const now = () => new Date();
  const api = createTemporalClient({ stores, now, lifecycleQueue, client: env.client });
  await retryUntilDone(() => api.openPayment(input));
  await waitForSession(input);
}

/** A busy machine has the bank instructed twice. */
const waitForSession = ({ payment_id }: PaymentInput) =>
  eventually('the session', async () => {
    return (await setting.stores.payments.get(payment_id))?.status === 'awaiting_customer';
  });

/** Builds the report that a payment has settled, with the key of its connector. */
async function buildSettled({ payment_id, connector }: PaymentInput) {
  const about = { resource: 'payment', resource_id: payment_id, connector } as const;
  const report = { ...about, name: 'settled', callback: callback() } as const;
  return { report, key: await setting.connectorKey(connector) };
}

test.each([
  [false, ''],
  [true, '-live'],
])(
  'with livemode %s a payment, its deliveries and its late callbacks run on the queues%s',
  (livemode, end) =>
    withBank(setting, scriptedBank(), async (connector) => {
      const { stores, queues, env } = setting;
      const input = paymentInput(connector, { livemode });
      const { payment_id, account_id } = input;
      const sealed = Encrypted.parse('a.a.a.a.a');
      const url = 'https://shop.example/';
      await stores.endpoints.set({ account_id, livemode, url, sealed, now: new Date(0) });
      await openByApi(input);
      const workflowId = `payment:${payment_id}`;
      expect(await readQueue(workflowId)).toBe(`${queues.lifecycle}${end}`);
      const deliveryQueue = await eventually('the delivery', async () => {
        const [event] = await stores.events.list({ account_id, livemode, limit: 1 });
        // A delivery starts after its event is stored.
        return event && (await readQueue(`webhook:${event._id}`).catch(nullIfMissing));
      });
      expect(deliveryQueue).toBe(`${queues.webhooks}${end}`);
      for (const _ of ['settlement', 'repeat after the end']) {
        const { report, key } = await buildSettled(input);
        const inbox = { stores, temporal: env.client, lifecycleQueue: queues.lifecycle };
        const now = () => new Date();
        await deliverCallback({ ...inbox, now, key: livemode ? key : undefined }, report);
        await env.client.workflow.getHandle(workflowId).result();
      }
      expect(await readQueue(workflowId)).toBe(`${queues.lifecycle}${end}`);
      expect((await stores.payments.get(payment_id))?.status).toBe('settled');
    }),
);

function nullIfMissing(error: unknown): null {
  if (error instanceof WorkflowNotFoundError) return null;
  throw error;
}

test('a live payment that an earlier version started continues on the queue of the sandbox', () =>
  withBank(setting, scriptedBank(), async (connector) => {
    const input = paymentInput(connector, { livemode: true });
    const { handle } = await openPayment(setting, input);
    await waitForSession(input);
    expect(await readQueue(handle.workflowId)).toBe(setting.queues.lifecycle);
    const { report, key } = await buildSettled(input);
    await handle.signal('settled', { ...report.callback, mac: signCallback(key, report) });
    expect(await handle.result()).toMatchObject({ status: 'settled' });
  }));

test('with a prefix the bank is instructed on the queue of its own installation', async () => {
  const prefix = setting.queues.lifecycle.replace('lifecycle-', 'shop-');
  const { lifecycleQueue } = taskQueues(prefix);
  const stop = await setting.startWorkers(lifecycleQueue);
  const bank = scriptedBank();
  const story = async (connector: string) => {
    const input = paymentInput(connector);
    await openByApi(input, lifecycleQueue);
    expect(new Set(bank.told)).toEqual(new Set(['openSession']));
    const handle = setting.env.client.workflow.getHandle(`payment:${input.payment_id}`);
    await handle.terminate('end of test');
  };
  await withBank(setting, bank, story, `own-${prefix}`, prefix);
  await stop();
});

describe('a bundle of workflows, whose modules are evaluated for each run,', () => {
  function listModules(bundle: WorkflowBundleOption): string[] {
    const code = 'code' in bundle ? bundle.code : readFileSync(bundle.codePath, 'utf8');
    const names = [...code.matchAll(/!\*{3} (\.\/\S+)/g)].map(([, name = '']) => name);
    return [...new Set(names)];
  }

  test('has for deliveries the modules that a delivery needs, and no other', async () => {
    const names = listModules((await workflowBundles()).webhooks);
    const isOwn = (name: string) => /^\.\/(src|workflows|activities|connectors)\//.test(name);
    const own = names.filter((name) => isOwn(name) && !name.includes('autogenerated'));
    expect(own.sort()).toEqual([
      './src/domain/search-attributes.ts',
      './src/domain/webhook/delivery.ts',
      './src/domain/webhook/schedule.ts',
      './workflows/webhook/delivery.ts',
    ]);
  });

  test('has for lifecycles no delivery, and nowhere the schema library', async () => {
    const { lifecycle, webhooks } = await workflowBundles();
    const names = listModules(lifecycle);
    expect(names).toContain('./workflows/payment/lifecycle.ts');
    expect(names).toContain('./workflows/schedules/audit.ts');
    expect(names.filter((name) => name.includes('workflows/webhook/'))).toEqual([]);
    const isSchema = (name: string) => name.includes('node_modules/zod/');
    expect([...names, ...listModules(webhooks)].filter(isSchema)).toEqual([]);
  });
});
