import { randomBytes, randomUUID } from 'node:crypto';
import { WithStartWorkflowOperation, type WorkflowHandle } from '@temporalio/client';
import { temporal } from '@temporalio/proto';
import { TestWorkflowEnvironment } from '@temporalio/testing';
import { Worker } from '@temporalio/worker';
import type { ConnectorActivities } from '../../connectors/contract/activities';
import type { PaymentInput, PaymentState } from '../../src/domain/payment-workflow';
import { SEARCH_ATTRIBUTES } from '../../src/domain/search-attributes';
import { connectorQueue } from '../../src/domain/task-queues';
import { createLogger } from '../../src/log';
import { connectMongo } from '../../src/mongo';
import { createStores, ensureIndexes } from '../../src/store';
import { createWorkers } from '../../worker/create-worker';
import { openUpdate } from '../../workflows/payment-messages';
import { workflowBundle } from './bundle';
import { quietTemporal } from './quiet';

/** A bank that says yes to everything and remembers what it was told. */
export function scriptedBank(changes: Partial<ConnectorActivities> = {}) {
  const told: string[] = [];
  const remember =
    <Input extends object, Answer>(name: string, act: (input: Input) => Promise<Answer>) =>
    (input: Input): Promise<Answer> => {
      told.push('instruction_id' in input ? `${name} ${input.instruction_id}` : name);
      return act(input);
    };
  const bank: ConnectorActivities = {
    openSession: async ({ payment_id }) => ({
      outcome: 'opened',
      bank_reference: `ref-${payment_id}`,
      session_url: `https://bank.example/${payment_id}`,
    }),
    closeSession: async () => ({ outcome: 'closed' }),
    voidPayment: async () => ({ outcome: 'voided' }),
    reversePayment: async () => ({ outcome: 'accepted', bank_reference: 'back' }),
    ...changes,
  };
  return {
    told,
    activities: {
      openSession: remember('openSession', bank.openSession),
      closeSession: remember('closeSession', bank.closeSession),
      voidPayment: remember('voidPayment', bank.voidPayment),
      reversePayment: remember('reversePayment', bank.reversePayment),
    } satisfies ConnectorActivities,
  };
}

export type ScriptedBank = ReturnType<typeof scriptedBank>;

/** The payment workflow with its real activities and stores, on the time-skipping server. */
export async function openWorkflowSetting() {
  quietTemporal();
  const path = process.env['TEST_TIME_SKIPPING_SERVER'] ?? '';
  const env = await TestWorkflowEnvironment.createTimeSkipping({
    server: { executable: { type: 'existing-path', path } },
  });
  await registerSearchAttributes(env);
  const name = randomUUID().slice(0, 8);
  const mongo = await connectMongo(process.env['TEST_MONGODB_URI'] ?? '', name);
  const db = mongo.db(`workflows_${name}`);
  const stores = createStores(db);
  await ensureIndexes(stores);
  const queues = { lifecycle: `lifecycle-${name}`, webhooks: `webhooks-${name}` };
  const workers = await createWorkers({
    connection: env.nativeConnection,
    namespace: env.namespace ?? 'default',
    ...{ mongo, stores, queues },
    keys: {
      pay_token: randomBytes(32),
      fingerprint: randomBytes(32),
      seal: { current: 'k1', keys: { k1: randomBytes(32) } },
    },
    allowPrivateWebhooks: true,
    log: createLogger(name, 'silent'),
    workflowBundle: await workflowBundle(),
  });
  const running = workers.run();
  const close = async () => {
    workers.shutdown();
    await running;
    await env.teardown();
    await db.dropDatabase();
    await mongo.close();
  };
  return { env, stores, queues, close };
}

const INDEXED = temporal.api.enums.v1.IndexedValueType;
const TYPES = {
  Keyword: INDEXED.INDEXED_VALUE_TYPE_KEYWORD,
  Bool: INDEXED.INDEXED_VALUE_TYPE_BOOL,
  Int: INDEXED.INDEXED_VALUE_TYPE_INT,
};

/** This server knows none of its own. */
async function registerSearchAttributes(env: TestWorkflowEnvironment): Promise<void> {
  const searchAttributes = Object.fromEntries(
    Object.entries(SEARCH_ATTRIBUTES).map(([name, type]) => [name, TYPES[type]]),
  );
  const namespace = env.namespace ?? 'default';
  await env.connection.operatorService.addSearchAttributes({ namespace, searchAttributes });
}

export type WorkflowSetting = Awaited<ReturnType<typeof openWorkflowSetting>>;

/** Runs `test` with a bank of its own behind the connector's queue. */
export async function withBank<T>(
  { env }: WorkflowSetting,
  bank: ScriptedBank,
  test: (connector: string) => Promise<T>,
): Promise<T> {
  const connector = `scripted-${randomUUID().slice(0, 8)}`;
  const worker = await Worker.create({
    connection: env.nativeConnection,
    taskQueue: connectorQueue(connector),
    activities: bank.activities,
  });
  return await worker.runUntil(() => test(connector));
}

export function paymentInput(connector: string, changes: Partial<PaymentInput> = {}): PaymentInput {
  const payment_id = randomUUID();
  return {
    payment_id,
    account_id: `acct_${payment_id}`,
    livemode: false,
    amount: 1_050,
    currency: 'EUR',
    method: 'ideal',
    country: 'NL',
    connector,
    return_url: 'https://pay.example/return',
    expires_in_seconds: 1_800,
    settlement_due_seconds: 86_400,
    request_id: 'req-1',
    ...changes,
  };
}

/** As the API does it: the claim first, then update-with-start. */
export async function openPayment(
  { env, stores, queues }: WorkflowSetting,
  input: PaymentInput,
): Promise<{ handle: WorkflowHandle; opened: PaymentState }> {
  const { payment_id, return_url, request_id, ...routing } = input;
  const { account_id, livemode } = input;
  const stored = {
    reference: 'order-1',
    customer: { email: null, first_name: null, last_name: null, reference: null },
    metadata: '{}',
    success_url: 'https://shop.example/thanks',
    error_url: 'https://shop.example/sorry',
  };
  await stores.idempotency.claim(
    {
      ...{ account_id, livemode, operation: 'createPayment', key: payment_id },
      ...{ fingerprint: 'f', resource_id: payment_id, request: { stored, routing }, request_id },
    },
    new Date(),
  );
  const workflowId = `payment:${payment_id}`;
  const startWorkflowOperation = new WithStartWorkflowOperation('payment', {
    workflowId,
    taskQueue: queues.lifecycle,
    args: [input],
    workflowIdConflictPolicy: 'USE_EXISTING',
    workflowIdReusePolicy: 'REJECT_DUPLICATE',
  });
  const opened = await env.client.workflow.executeUpdateWithStart(openUpdate, {
    updateId: 'open',
    startWorkflowOperation,
  });
  return { handle: env.client.workflow.getHandle(workflowId), opened };
}

let callbacks = 0;

/** A callback with an id of its own. */
export function callback(more: object = {}) {
  callbacks += 1;
  return { callback_id: `cb-${callbacks}`, occurred_at: '2026-03-01T12:00:00.000Z', ...more };
}

/** The types of a payment's events, oldest first. */
export async function eventTypes({ stores }: WorkflowSetting, payment_id: string) {
  const rows = await stores.events.list({
    account_id: `acct_${payment_id}`,
    livemode: false,
    resource_id: payment_id,
    limit: 50,
  });
  return rows.map(({ type }) => type).reverse();
}
