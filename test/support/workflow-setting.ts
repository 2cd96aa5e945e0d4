import { randomUUID } from 'node:crypto';
import { WithStartWorkflowOperation, type WorkflowHandle } from '@temporalio/client';
import type { UpdateDefinition } from '@temporalio/common';
import { TestWorkflowEnvironment } from '@temporalio/testing';
import { Worker } from '@temporalio/worker';
import { connectLongReader, connectMongo } from '../../src/base/mongo';
import { createConnectorKey } from '../../src/callbacks/keys';
import type { CallbackResource } from '../../src/domain/banks/callback';
import type { Env } from '../../src/domain/environment';
import type { PaymentInput, PaymentState } from '../../src/domain/payment/payment';
import type { PayoutInput, PayoutState } from '../../src/domain/payout/payout';
import type { RefundInput, RefundState } from '../../src/domain/refund/refund';
import { connectorQueue } from '../../src/domain/task-queues';
import { createEncrypter } from '../../src/encryption/encrypter';
import { ENTRY_LINES } from '../../src/ledger/entry-lines';
import { createStores, ensureIndexes, type Stores } from '../../src/store';
import { createWorkers } from '../../worker/create-worker';
import { messages as paymentMessages } from '../../workflows/payment/state';
import { messages as payoutMessages } from '../../workflows/payout/state';
import { messages as refundMessages } from '../../workflows/refund/lifecycle';
import { operatorsAudit } from './audit';
import { workflowBundles } from './bundle';
import { retryUntilDone } from './eventually';
import { useFixture } from './fixture';
import { newServiceKeys } from './key-rings';
import { createTestLogger, quietTemporal } from './quiet';
import { payoutInput, recordKey } from './records';
import { runWhile } from './run-while';
import { mongodbUri, temporalAddress } from './servers';
import { askTwice, skippingServer } from './skipping-server';
import { postOnce } from './write-once';

const now = () => new Date();

export { type ScriptedBank, scriptedBank } from './scripted-bank';
export { payoutInput };

/**
 * The lifecycle workflows with their real activities and stores, on the time-skipping server or, for
 * what that one does not do as the real one does, on the shared one.
 */
export async function openWorkflowSetting(
  server: 'time-skipping' | 'real' = 'time-skipping',
  environments: Env[] = ['sandbox'],
) {
  const uri = mongodbUri();
  quietTemporal();
  const env = await (server === 'real'
    ? TestWorkflowEnvironment.createFromExistingServer({ address: temporalAddress() })
    : skippingServer());
  const name = randomUUID().slice(0, 8);
  const mongo = await connectMongo(uri, name);
  const db = mongo.db(`workflows_${name}`);
  const stores = createStores(db);
  await retryUntilDone(() => ensureIndexes(stores));
  const queues = { lifecycle: `lifecycle-${name}`, webhooks: `webhooks-${name}` };
  const keys = newServiceKeys();
  const startWorkers = async (
    lifecycle: string,
    own: Stores = stores,
  ): Promise<() => Promise<void>> => {
    const webhooks = lifecycle === queues.lifecycle ? queues.webhooks : `webhooks-of-${lifecycle}`;
    const workers = await createWorkers({
      connection: env.nativeConnection,
      namespace: env.namespace ?? 'default',
      databases: new Map(environments.map((each) => [each, { mongo, stores: own }])),
      queues: { lifecycle, webhooks },
      keys,
      allowPrivateWebhooks: true,
      openLongReader: () => connectLongReader(mongodbUri(), name),
      log: createTestLogger(name),
      workflowBundles: await workflowBundles(),
    });
    const running = workers.run();
    return async () => {
      workers.shutdown();
      await running;
    };
  };
  const stopWorkers = await startWorkers(queues.lifecycle);
  const close = async () => {
    await stopWorkers();
    await env.teardown();
    await retryUntilDone(() => db.dropDatabase());
    await mongo.close();
  };
  /** A key of a connector, which may be revoked by its id. */
  const connectorKey = (connector: string) =>
    createConnectorKey(
      { mongo, stores, audit: operatorsAudit(stores), encrypter: createEncrypter(keys.seal), now },
      connector,
    );
  /** `startWorkers` serves one more queue, on other stores if need be, until its answer is called. */
  const database = db.databaseName;
  return { env, mongo, stores, database, queues, startWorkers, connectorKey, close };
}

export type WorkflowSetting = Awaited<ReturnType<typeof openWorkflowSetting>>;

export function useWorkflowSetting(
  ...args: Parameters<typeof openWorkflowSetting>
): WorkflowSetting {
  return useFixture(
    () => openWorkflowSetting(...args),
    (setting) => setting.close(),
  );
}

/** Runs `test` with a bank of its own behind the connector's queue. */
export async function withBank<T>(
  { env }: WorkflowSetting,
  bank: { activities: object },
  test: (connector: string) => Promise<T>,
  connector = `scripted-${randomUUID().slice(0, 8)}`,
  prefix = '',
): Promise<T> {
  const worker = await Worker.create({
    connection: env.nativeConnection,
    taskQueue: connectorQueue(connector, prefix),
    activities: bank.activities,
  });
  return await runWhile(worker, () => test(connector));
}

export function paymentInput(connector: string, changes: Partial<PaymentInput> = {}): PaymentInput {
  const payment_id = randomUUID();
  return {
    ...{ payment_id, account_id: `acct_${payment_id}`, livemode: false, amount: 1_050 },
    ...{ currency: 'EUR', method: 'ideal', country: 'NL', connector, request_id: 'req-1' },
    return_url: 'https://pay.example/return',
    ...{ expires_in_seconds: 1_800, settlement_due_seconds: 86_400 },
    ...changes,
  };
}

/** As the API does it: the idempotency record first, then update-with-start. */
export async function openPayment(
  setting: WorkflowSetting,
  input: PaymentInput,
): Promise<{ handle: WorkflowHandle; opened: PaymentState }> {
  await recordPaymentKey(setting, input);
  return await open(setting, 'payment', input.payment_id, input, paymentMessages.open);
}

export async function recordPaymentKey(setting: WorkflowSetting, input: PaymentInput) {
  const { payment_id, return_url, request_id, ...routing } = input;
  const stored = {
    reference: 'order-1',
    customer: { reference: null, ciphertext: null },
    metadata: '{}',
    success_url: 'https://shop.example/thanks',
    error_url: 'https://shop.example/sorry',
  };
  await recordKey(setting.stores, 'createPayment', payment_id, input, { stored, routing });
}

export async function settledPayment(
  setting: WorkflowSetting,
  connector: string,
  changes: Partial<PaymentInput> = {},
): Promise<PaymentInput> {
  const input = paymentInput(connector, changes);
  const { handle } = await openPayment(setting, input);
  await handle.signal('settled', callback());
  await handle.result();
  return input;
}

export function refundInput(
  { payment_id, account_id, livemode, amount, currency, method, connector }: PaymentInput,
  changes: Partial<RefundInput> = {},
): RefundInput {
  return {
    ...{ refund_id: randomUUID(), payment_id, account_id, livemode, amount, currency, method },
    ...{ connector, accepted_at: new Date().toISOString(), due_seconds: 259_200 },
    request_id: 'req-2',
    ...changes,
  };
}

/** As the API does it: the idempotency record first, then update-with-start. Fails when it is refused. */
export async function openRefund(
  setting: WorkflowSetting,
  input: RefundInput,
): Promise<{ handle: WorkflowHandle; opened: RefundState }> {
  const { refund_id, request_id, ...routing } = input;
  const refund = { reason: 'returned goods' };
  await recordKey(setting.stores, 'createRefund', refund_id, input, { refund, routing });
  return await open(setting, 'refund', refund_id, input, refundMessages.open);
}

export async function fund(
  setting: WorkflowSetting,
  { account_id, livemode, currency }: Pick<PayoutInput, 'account_id' | 'livemode' | 'currency'>,
  amount = 10_000,
): Promise<void> {
  const at = new Date().toISOString();
  const lines = ENTRY_LINES.funded('main', amount);
  const entry = { kind: 'funded', resource_id: randomUUID(), account_id, livemode } as const;
  await postOnce(setting, { ...entry, currency, at, lines });
}

/** As the API does it: the idempotency record first, then update-with-start. Fails when it is refused. */
export async function openPayout(
  setting: WorkflowSetting,
  input: PayoutInput,
  taskQueue?: string,
): Promise<{ handle: WorkflowHandle; opened: PayoutState }> {
  await recordPayoutKey(setting, input);
  return await open(setting, 'payout', input.payout_id, input, payoutMessages.open, taskQueue);
}

export async function recordPayoutKey(setting: WorkflowSetting, input: PayoutInput): Promise<void> {
  const { payout_id, request_id, ...routing } = input;
  const payout = { reference: 'order-7', metadata: '{}' };
  await recordKey(setting.stores, 'createPayout', payout_id, input, { payout, routing });
}

export async function open<State>(
  { env, queues }: WorkflowSetting,
  type: CallbackResource,
  id: string,
  input: object,
  update: UpdateDefinition<State>,
  taskQueue: string = queues.lifecycle,
): Promise<{ handle: WorkflowHandle; opened: State }> {
  const workflowId = `${type}:${id}`;
  const ask = () =>
    env.client.workflow.executeUpdateWithStart(update, {
      updateId: 'open',
      startWorkflowOperation: new WithStartWorkflowOperation(type, {
        workflowId,
        taskQueue,
        args: [input],
        workflowIdConflictPolicy: 'USE_EXISTING',
        workflowIdReusePolicy: 'REJECT_DUPLICATE',
      }),
    });
  // A repeat finds the workflow.
  const opened = await askTwice(ask);
  return { handle: env.client.workflow.getHandle(workflowId), opened };
}

let callbacks = 0;

export function callback(more: object = {}) {
  callbacks += 1;
  return { callback_id: `cb-${callbacks}`, occurred_at: '2026-03-01T12:00:00.000Z', ...more };
}

export async function eventTypes(
  { stores }: WorkflowSetting,
  payment_id: string,
  resource_id = payment_id,
) {
  const account_id = `acct_${payment_id}`;
  const rows = await stores.events.list({ account_id, livemode: false, resource_id, limit: 50 });
  return rows.map(({ type }) => type).reverse();
}
