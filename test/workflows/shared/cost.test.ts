import { randomUUID } from 'node:crypto';
import type { CommandStartedEvent } from 'mongodb';
import { countHistories } from '../../../bench/measure/histories';
import { deliverCallback, type ResourceCallback } from '../../../src/callbacks/deliver';
import { createCallbackMemory } from '../../../src/callbacks/memory';
import { paymentWorkflowId } from '../../../src/domain/payment/payment';
import { payoutWorkflowId } from '../../../src/domain/payout/payout';
import { webhookWorkflowId } from '../../../src/domain/webhook/event';
import { createEncrypter } from '../../../src/encryption/encrypter';
import { endpointOwner } from '../../../src/store/endpoints';
import type { EventDocument } from '../../../src/store/events';
import { fund } from '../../api/fund';
import { call, eventually, idealPayment } from '../../support/http';
import { useService } from '../../support/service';

// Each command is counted; a machine that stalls adds some.
jest.retryTimes(3);

const service = useService({ economical: true });
let account: { account_id: string; key: string };
/** Commands of the API, the worker, the bank's session and its callbacks, by name and collection. */
const commands = new Map<string, number>();

/** These come by the clock, the notes of signalled callbacks among them. */
const APART = [
  'getMore',
  'update bank_callbacks',
  'heartbeats',
  'outbox',
  'sandbox_reports',
  'chain_transactions',
  'insert requests',
  'update api_keys',
  'endSessions',
];

beforeAll(() => {
  service.mongo.on('commandStarted', count);
});

// For each try of a test: a later one may come when the caches of an earlier one have expired.
beforeEach(async () => {
  account = await service.account();
  const { account_id } = account;
  const owner = endpointOwner(account_id, false);
  // Nobody listens there: the first attempt of each delivery ends at once.
  await service.stores.endpoints.set({
    account_id,
    livemode: false,
    url: 'http://127.0.0.1:9/',
    sealed: await createEncrypter(service.keys.seal).encrypt('whsec_x', owner),
    now: new Date(),
  });
  await fillCaches();
});

// They would try again after 42 s, and be counted by another try of a test.
afterEach(async () => {
  const terminate = (id: string) =>
    service.temporal.workflow.getHandle(webhookWorkflowId(id)).terminate('end of test');
  await Promise.all((await attemptedEvents()).map(terminate));
});

/** Waits until the first attempts are stored: one in progress would still be counted. */
async function attemptedEvents(): Promise<string[]> {
  const { account_id } = account;
  return await eventually('each first attempt', async () => {
    const events = await service.collection<EventDocument>('events').find({ account_id }).toArray();
    return events.every(({ delivery }) => delivery.attempts > 0) && events.map(({ _id }) => _id);
  });
}

function count({ commandName, command }: CommandStartedEvent): void {
  const collection: unknown = command[commandName];
  const name = commandName === 'commitTransaction' ? 'commit' : `${commandName} ${collection}`;
  if (APART.some((word) => name.includes(word))) return;
  commands.set(name, (commands.get(name) ?? 0) + 1);
}

/** Reads the settings of the account as under load, where one read serves many requests. */
async function fillCaches(): Promise<void> {
  const { account_id } = account;
  await service.stores.accounts.getCached(account_id);
  await service.stores.routingRules.readCached();
  await service.stores.connectorPauses.readCached();
  await service.stores.endpoints.getCached(account_id, false);
}

function bank() {
  const { stores, temporal, queues, connector } = service;
  const memory = createCallbackMemory(stores.callbacks, { warn: () => {} });
  const inbox = { stores, temporal, memory, lifecycleQueue: queues.lifecycle };
  const now = () => new Date();
  return {
    memory,
    report: async (about: Pick<ResourceCallback, 'resource' | 'resource_id' | 'name'>) => {
      const callback = { callback_id: `cb_${randomUUID()}`, occurred_at: now().toISOString() };
      const report = { connector, ...about, callback };
      expect(await deliverCallback({ ...inbox, now }, report)).toBe('delivered');
    },
  };
}

test('a settled payment', async () => {
  const { stores, temporal, connector } = service;
  const { memory, report } = bank();
  commands.clear();
  const created = await call(service.url, 'POST', '/v1/payments', {
    key: account.key,
    body: idealPayment(),
  });
  expect(created.body.status).toBe('awaiting_customer');
  const resource_id = String(created.body.id);
  memory.rememberConnector('payment', resource_id, connector);
  await report({ resource: 'payment', resource_id, name: 'authorized' });
  await authorized(resource_id);
  await report({ resource: 'payment', resource_id, name: 'settled' });
  const workflowId = paymentWorkflowId(resource_id);
  await temporal.workflow.getHandle(workflowId).result();
  await memory.close();
  await eventually('the attempts', async () => commands.get('update events') === DELIVERIES);

  const total = [...commands.values()].reduce((sum, n) => sum + n, 0);
  expect({ total, ...Object.fromEntries(commands) }).toEqual(PAYMENT_COMMANDS);
  expect((await stores.payments.get(resource_id))?.status).toBe('settled');
  const figures = await countHistories(temporal, [[workflowId]]);
  expect(figures).toMatchObject({ history_events: 27, workflow_tasks: 4, actions: 11 });
});

/** Waits by the workflow, which reads nothing. */
async function authorized(id: string): Promise<void> {
  const handle = service.temporal.workflow.getHandle(paymentWorkflowId(id));
  await eventually('the authorisation', async () => {
    const history = await handle.fetchHistory();
    const markers = history.events?.filter((event) => event.markerRecordedEventAttributes);
    return (markers?.length ?? 0) >= 2;
  });
}

const DELIVERIES = 3;

const PAYMENT_COMMANDS = {
  total: 20,
  'find api_keys': 1,
  'find accounts': 1,
  'update idempotency': 1,
  'findAndModify idempotency': 1,
  'insert sessions': 1,
  'insert payments': 1,
  'insert bank_callbacks': 2,
  'findAndModify payments': 2,
  'insert events': 3,
  'update events': DELIVERIES,
  'insert ledger_postings': 1,
  commit: 3,
};

test('a completed payout', async () => {
  const { temporal } = service;
  const { report } = bank();
  await fund(service, account, 10_000);
  const recipient = await call(service.url, 'POST', '/v1/payout-recipients', {
    key: account.key,
    body: RECIPIENT,
  });
  const body = {
    method: 'sepa_instant',
    amount: 1_050,
    currency: 'EUR',
    recipient_id: recipient.body.id,
  };
  const created = await call(service.url, 'POST', '/v1/payouts', { key: account.key, body });
  expect(created.body.status).toBe('sent');
  const resource_id = String(created.body.id);
  await report({ resource: 'payout', resource_id, name: 'completed' });
  const workflowId = payoutWorkflowId(resource_id);
  await temporal.workflow.getHandle(workflowId).result();
  const figures = await countHistories(temporal, [[workflowId]]);
  expect(figures).toMatchObject({ history_events: 23, workflow_tasks: 3, actions: 10 });
});

const RECIPIENT = {
  type: 'bank_account',
  first_name: 'Jan',
  last_name: 'Jansen',
  iban: 'NL91ABNA0417164300',
  address_line1: 'Damrak 1',
  city: 'Amsterdam',
  postal_code: '1012 LG',
};
