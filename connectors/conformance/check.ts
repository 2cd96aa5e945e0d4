import { createGate } from '../../src/base/gate';
import { ServiceError } from '../../src/domain/errors';
import { connectorQueue, taskQueues } from '../../src/domain/task-queues';
import { LIFECYCLES } from '../../src/lifecycles';
import { SANDBOX_CONNECTOR } from '../../src/routing';
import type {
  CheckConnector,
  CheckDeps,
  CheckInput,
  PromiseResult,
} from '../../src/service/banks/connector-check';
import { sandboxBankDatabase } from '../../src/service/banks/sandbox';
import { openSepaBook, sepaDatabase } from '../../src/service/banks/sepa/book';
import { requestCut, resendFile } from '../../src/service/banks/sepa/files';
import { createAccount, setFrozen } from '../../src/service/merchants/accounts';
import { ensureIndexes } from '../../src/store';
import { connectNative } from '../../src/temporal/native';
import { readTaskQueue } from '../../src/temporal/status';
import { createHttpDesk, createSandboxDesk, QUIET_AMOUNTS } from './desk';
import { createDocuments, type Documents } from './documents';
import { startFaultProxy } from './faults';
import { startFileBank } from './file-bank';
import { startInstructor } from './instructor';
import { CALLBACK_PROMISES, POLL_PROMISES, WEBHOOK_PROMISES } from './promises/callbacks';
import { DISPUTE_PROMISES } from './promises/disputes';
import { FILE_PROMISES } from './promises/files';
import { listOutages, listOutgoing, PAYOUT, REFUND, SESSION_OUTAGE } from './promises/outgoing';
import { PAYOUT_PROMISES, RESTORE_PROMISES } from './promises/payouts';
import { SESSION_PROMISES } from './promises/sessions';
import { startWebhookProxy } from './proxy';
import { Broken, NotApplicable } from './verdict';
import type { ContractPromise, World } from './world';

const ACCOUNT = 'Connector check';
const AT_ONCE = 8;
const FUNDING_TRIES = 6;

const PROMISES: readonly ContractPromise[] = [
  ...listOutgoing(PAYOUT),
  ...listOutages(PAYOUT),
  ...PAYOUT_PROMISES,
  ...listOutgoing(REFUND),
  ...listOutages(REFUND),
  ...SESSION_PROMISES,
  SESSION_OUTAGE,
  ...DISPUTE_PROMISES,
  ...CALLBACK_PROMISES,
  ...WEBHOOK_PROMISES,
  ...POLL_PROMISES,
  ...RESTORE_PROMISES,
];

export const checkConnector: CheckConnector = async (deps, input) => {
  const promises = selectPromises(input);
  await assertReady(deps, input.connector);
  await ensureIndexes(deps.stores);
  const [open, frozen] = [await makeAccount(deps), await makeAccount(deps)];
  const freeze = { freeze: true, reason: 'The check of a connector.' };
  await setFrozen(deps, frozen.account_id, freeze);
  const accounts = { open: open.account_id, frozen: frozen.account_id };
  const documents = createDocuments(deps, input, accounts);
  const world = await openWorld(deps, input, documents);
  try {
    const results = new Map<ContractPromise, PromiseResult>();
    const run = async (each: ContractPromise, isRepeat = false): Promise<void> => {
      const { id, promise, check } = each;
      const end = (result: PromiseResult['result'], seen: string) => {
        deps.progress(`${result} ${id}: ${seen}`);
        results.set(each, { id, promise, result, seen });
      };
      try {
        end('passed', await check(world));
      } catch (error) {
        const text = error instanceof Error ? error.message : String(error);
        if (error instanceof NotApplicable) end('not_applicable', text);
        else if (error instanceof Broken) end('failed', text);
        // A busy machine may keep the check from its own work, which says nothing of the connector.
        else if (!isRepeat) await run(each, true);
        else end('failed', `The check itself failed: ${text}`);
      }
    };
    const withinLimit = createGate(AT_ONCE);
    const together = promises.filter(({ alone }) => alone !== true);
    await Promise.all(together.map((promise) => withinLimit(() => run(promise))));
    for (const promise of promises) if (promise.alone === true) await run(promise);
    const all = promises.flatMap((promise) => results.get(promise) ?? []);
    const count = (result: PromiseResult['result']) =>
      all.filter((each) => each.result === result).length;
    return {
      connector: input.connector,
      passed: count('passed'),
      failed: count('failed'),
      not_applicable: count('not_applicable'),
      promises: all,
    };
  } finally {
    await world.close();
  }
};

/** @throws ServiceError `invalid_usage` for a name that no promise has */
function selectPromises({ folders, only }: CheckInput): readonly ContractPromise[] {
  const all = folders === undefined ? PROMISES : [...PROMISES, ...FILE_PROMISES];
  if (only === undefined) return all;
  const unknown = only.filter((name) => !all.some(({ id }) => id === name));
  if (unknown.length === 0) return all.filter(({ id }) => only.includes(id));
  const names = all.map(({ id }) => id).join(', ');
  const message = `--only takes names of promises, not ${unknown.join(', ')}. They are ${names}.`;
  throw new ServiceError('invalid_usage', message);
}

/** @throws ServiceError unless the connector runs, on servers that nobody else uses */
async function assertReady(deps: CheckDeps, connector: string): Promise<void> {
  const { mongo, database, temporal, access, taskQueuePrefix: prefix } = deps;
  const accounts = mongo.db(database).collection('accounts');
  if ((await accounts.findOne({ name: { $ne: ACCOUNT } })) !== null) {
    const message = `The database ${database} has accounts. Give check and connector a MONGODB_DB of their own, such as connector_check.`;
    throw new ServiceError('check_database_used', message);
  }
  const hasPoller = async (name: string, type: 'workflow' | 'activity') =>
    (await readTaskQueue(temporal, { namespace: access.namespace, name, type })).pollers > 0;
  if (await hasPoller(taskQueues(prefix).lifecycleQueue, 'workflow')) {
    const message =
      'A worker of the service takes what the connector reports. Give check and connector a TASK_QUEUE_PREFIX of their own.';
    throw new ServiceError('check_queue_used', message);
  }
  const queue = connectorQueue(connector, prefix);
  if (await hasPoller(queue, 'activity')) return;
  const message = `No connector takes instructions from the task queue ${queue}: start it with the same TEMPORAL_ADDRESS and TASK_QUEUE_PREFIX.`;
  throw new ServiceError('connector_not_running', message);
}

/** An account that a busy MongoDB did not fund is left without keys, and another one is made. */
async function makeAccount(
  deps: CheckDeps,
  triesLeft = FUNDING_TRIES - 1,
): ReturnType<typeof createAccount> {
  try {
    return await createAccount(deps, { name: ACCOUNT });
  } catch (error) {
    const isBusy = error instanceof ServiceError && error.code === 'funding_failed';
    if (!isBusy || triesLeft === 0) throw error;
    return await makeAccount(deps, triesLeft - 1);
  }
}

async function openWorld(deps: CheckDeps, input: CheckInput, documents: Documents) {
  const { mongo, stores, database, temporal, access, taskQueuePrefix } = deps;
  const { connector, bankUrl, webhookUrl, deskUrl } = input;
  deps.installRuntime?.();
  const connection = await connectNative(access);
  const instructor = await startInstructor({
    ...{ temporal, connection, namespace: access.namespace },
    connectorQueue: connectorQueue(connector, taskQueuePrefix),
  });
  const bank = bankUrl === undefined ? undefined : await startFaultProxy(bankUrl, input.bankPort);
  const webhooks =
    webhookUrl === undefined ? undefined : await startWebhookProxy(webhookUrl, input.webhookPort);
  const own = { ...deps, connector };
  const { files: sent } = openSepaBook(mongo.db(sepaDatabase(database, connector)));
  const files =
    input.folders &&
    (await startFileBank({
      ...input.folders,
      waitMs: input.waitMs,
      cut: () => requestCut(own, input.waitMs),
      isOurs: async (_id) => (await sent.findOne({ _id })) !== null,
      resend: (file_id) => resendFile(own, file_id, { bank_confirmed_not_executed: true }),
    }));
  const isSandbox = connector === SANDBOX_CONNECTOR && deskUrl === undefined;
  const sandbox = mongo.db(sandboxBankDatabase(database));
  const ownDesk = isSandbox
    ? createSandboxDesk(sandbox, connector, stores.sandboxReports)
    : undefined;
  const world: World = {
    ...{ connector, instructor, documents, stores, temporal, bank, webhooks, files },
    desk: files?.desk ?? (deskUrl === undefined ? ownDesk : createHttpDesk(deskUrl)),
    waitMs: input.waitMs,
    ...(isSandbox ? { quietAmounts: QUIET_AMOUNTS } : {}),
    withoutCallbacks: async (run) => {
      const change = (validator: object) =>
        mongo.db(database).command({ collMod: 'bank_callbacks', validator });
      await change({ $expr: false });
      return await run().finally(() => change({}));
    },
  };
  const close = async (): Promise<void> => {
    await Promise.all([bank?.stop(), webhooks?.stop()]);
    const handles = (['payout', 'refund', 'payment'] as const).flatMap((resource) =>
      documents.ids[resource].map((id) =>
        temporal.workflow.getHandle(LIFECYCLES[resource].workflowId(id)),
      ),
    );
    await Promise.allSettled(handles.map((handle) => handle.terminate('The check has ended.')));
    await instructor.stop();
    await connection.close();
  };
  return { ...world, close };
}
