import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import type { Db } from 'mongodb';
import { closeServer, createHttpServer } from '../../src/api/server';
import { createDetailsDecrypter } from '../../src/encryption/recipient-keys';
import { checkTemporal } from '../../src/temporal/attributes';
import { runWorker } from '../../src/temporal/native';
import type { ConnectorActivities } from '../contract/activities';
import { createEvidenceDecrypter } from '../contract/evidence';
import { createRecipientDecrypter, createReferenceReader } from '../contract/recipients';
import { createKitActivities } from './activities';
import type { ActivityDeps } from './activity-deps';
import { countSlots, createBankClient } from './bank-client';
import { addCapabilities, listCapabilities, reportCapabilities } from './capabilities';
import { type KitConfig, readKitConfig } from './config';
import type { ConnectorDefinition, Settings, Tools } from './definition';
import { createInstructionStore } from './instructions';
import { createListener } from './listener';
import { startLoop } from './loop';
import { createKitMeter } from './metrics';
import { createPage, isForPage } from './page/app';
import { createStepLog, type StepLog } from './page/steps';
import { createPoller } from './poller';
import { beginProcess, type ConnectorProcess } from './process';
import { createReportDelivery, type DeliverReports } from './reports';
import { openRestoreGuard, type RestoreGuard } from './restore-guard';
import { createStatementMaker } from './statements';

const WEBHOOK_TIMEOUTS = { headersTimeout: 5_000, requestTimeout: 10_000 };
const LISTENER_GRACE_MS = 5_000;
const POLL_GRACE_MS = 5_000;
const POLL_TROUBLE_MS_MAX = 60_000;
/** Far below the first wait of a report that was set aside. */
const RETRY_POLL_MS = 10_000;
const STATEMENT_POLL_MS = 600_000;

/** Serves a bank with the variables of this process, until the process is stopped. */
export async function serveConnector<S extends Settings>(
  definition: ConnectorDefinition<S>,
): Promise<void> {
  const config = readKitConfig(definition);
  const { log, onStop, connect } = beginProcess({ connector: config.name }, config);
  const own = await connect();
  await checkTemporal(own, log, config.isLive);
  const connector = await startConnector(definition, config, own);
  const metrics = await own.serveMetrics(connector.isReady);
  log.info({ connector: config.name, address: connector.url }, 'the connector serves its bank');
  onStop(connector.stop);
  await connector.finished;
  await metrics.close();
  await own.close();
}

/** Configuration that a connector needs once its process is connected. */
export type RunConfig<S extends Settings> = Pick<
  KitConfig<S>,
  | 'settings'
  | 'environment'
  | 'isLive'
  | 'name'
  | 'KEYS_DIR'
  | 'HOST'
  | 'CONNECTOR_PORT'
  | 'CONNECTOR_STATE_DIR'
> & { MONGODB_DB: string };

type OwnProcess = Omit<ConnectorProcess, 'serveMetrics' | 'close'>;

/** Parts of a connector that its definition does not name. */
export interface ConnectorParts<A extends object = Partial<ConnectorActivities>> {
  /** Opened by a connector whose own book says what it has sent. */
  restoreGuard?: Pick<RestoreGuard, 'confirm' | 'check' | 'onChange' | 'protect'>;
  /** Own database; `{MONGODB_DB}_{name}` by default. */
  db?: Db;
  /** Adds activities of the contract for which a definition has no functions. */
  addActivities?: (activities: Partial<ConnectorActivities>) => A;
  /** Methods that the added activities serve. */
  alsoServes?: readonly string[];
  /** Replaces what is read of a payout’s recipient and of a dispute’s evidence. */
  recipients?: Pick<
    ActivityDeps<Settings>,
    'decryptRecipient' | 'readReference' | 'decryptEvidence'
  >;
}

/**
 * Starts a connector over its connections.
 * @returns `finished` resolves when everything has ended, and rejects if the worker broke
 */
export async function startConnector<
  S extends Settings,
  A extends object = Partial<ConnectorActivities>,
>(
  definition: ConnectorDefinition<S>,
  config: RunConfig<S>,
  own: OwnProcess,
  parts: ConnectorParts<A> = {},
) {
  const { log, now } = own;
  const { db = own.mongo.db(`${config.MONGODB_DB}_${config.name}`) } = parts;
  const meter = createKitMeter(own.registry, config.name);
  const { limits, statements } = definition;
  const livemode = config.environment === 'live';
  const client = createBankClient({ limits, needsTls: config.isLive, count: meter.called });
  const { settings } = config;
  await definition.prepare?.({ db, settings, livemode, now });
  const listens = definition.webhook !== undefined || config.CONNECTOR_PORT !== undefined;
  const steps =
    config.environment === 'sandbox' && listens ? createStepLog({ now, log }) : undefined;
  const buildTools = (attempt?: Parameters<typeof client>[0]): Tools<S> => {
    const call = client(attempt);
    return { settings, call: steps?.watchCall(call) ?? call, log, now };
  };
  const instructions = createInstructionStore(db, now);
  await instructions.ensureIndexes();
  const { environment, CONNECTOR_STATE_DIR: dir } = config;
  const restoreGuard =
    parts.restoreGuard ??
    (await openRestoreGuard(own, { environment, dir, db, book: instructions }));
  const { sendPayout, submitEvidence } = definition;
  const { decryptRecipient, readReference, decryptEvidence } =
    parts.recipients ?? createReaders(config, own, (sendPayout ?? submitEvidence) !== undefined);
  const bare = createKitActivities({
    ...{ definition, buildTools, now },
    instructions,
    findOutdated: async (...instruction) => {
      // Again: the bank may have been slow to look it up.
      await restoreGuard.confirm();
      return await own.guard.findOutdated(...instruction);
    },
    decryptRecipient: steps?.watchRecipient(decryptRecipient) ?? decryptRecipient,
    readReference,
    decryptEvidence,
    livemode,
  });
  const guarded = restoreGuard.protect(bare);
  const bank = steps?.watchActivities(guarded) ?? guarded;
  // Without more of them, the type is that of the bank's.
  const activities = parts.addActivities?.(bank) ?? (bank as A);
  const delivery = createReportDelivery({ ...own, db, meter });
  await delivery.ensureIndexes();
  const deliver = steps?.watchDelivery(delivery.deliver) ?? delivery.deliver;
  const tools = buildTools();
  const listener = await startListener(definition, config, { tools, deliver, log, steps });
  const options = { maxConcurrentActivityTaskExecutions: countSlots(limits ?? {}) };
  const worker = await own.createWorker(activities, options);
  const poll = definition.poll && (steps?.watchPoll(definition.poll) ?? definition.poll);
  const loop =
    poll &&
    startLoop({
      round: createPoller({ db, poll, tools, deliver, setAside: delivery.setAside, meter }),
      pollMs: poll.seconds * 1_000,
      troubleMsMax: Math.min(POLL_TROUBLE_MS_MAX, 10_000 * poll.seconds),
      graceMs: POLL_GRACE_MS,
      failureText: 'the bank’s reports could not be read, tried again later',
      log,
    });
  const makeStatements =
    statements && createStatementMaker({ ...own, statements, db, tools, livemode });
  const making =
    makeStatements &&
    startLoop({
      round: makeStatements,
      pollMs: STATEMENT_POLL_MS,
      graceMs: POLL_GRACE_MS,
      failureText: 'a statement of the balance could not be made, tried again later',
      log,
    });
  const retries = startLoop({
    round: delivery.retry,
    pollMs: RETRY_POLL_MS,
    graceMs: POLL_GRACE_MS,
    failureText: 'reports that were set aside could not be delivered, tried again later',
    log,
  });
  const served = addCapabilities(listCapabilities(definition), {
    serves: parts.alsoServes ?? [],
    functions: Object.keys(activities).filter((name) => !(name in bank)),
  });
  const { countSetAside } = delivery;
  const report = reportCapabilities(own, served, { restoreGuard, countSetAside });
  const finished = runWorker(worker).finally(() =>
    Promise.all([loop?.stop(), making?.stop(), retries.stop(), listener?.close(), report.stop()]),
  );
  return {
    url: listener?.url,
    activities,
    finished,
    isReady: () => worker.getState() === 'RUNNING',
    /** Reads the bank's reports now. */
    poll: () => loop?.wake(),
    makeStatements,
    stop: async (): Promise<void> => {
      if (worker.getState() === 'RUNNING') worker.shutdown();
      await finished;
    },
  };
}

/** Reads the recipient of a payout, and the text for their statement. */
function createReaders(
  {
    KEYS_DIR,
    environment,
    name,
  }: { KEYS_DIR: string; environment: 'live' | 'sandbox'; name: string },
  { stores, log, now }: OwnProcess,
  isSecret: boolean,
): Pick<ActivityDeps<Settings>, 'decryptRecipient' | 'readReference' | 'decryptEvidence'> {
  // A process that pays nobody, and answers no dispute, needs no key.
  const encrypter = isSecret
    ? createDetailsDecrypter(KEYS_DIR, environment, name)
    : { decrypt: () => Promise.reject(new Error('This connector decrypts nothing.')) };
  return {
    decryptRecipient: createRecipientDecrypter({ ...stores, encrypter, connector: name, log }),
    readReference: createReferenceReader({ payouts: stores.payouts }),
    decryptEvidence: createEvidenceDecrypter({ ...stores, encrypter, connector: name, log, now }),
  };
}

interface ListenerParts<S extends Settings> {
  tools: Tools<S>;
  deliver: DeliverReports;
  log: ConnectorProcess['log'];
  steps: StepLog | undefined;
}

/** Listens for webhooks, and in the sandbox serves the page, for which the port must be set. */
async function startListener<S extends Settings>(
  { webhook }: ConnectorDefinition<S>,
  { HOST, CONNECTOR_PORT, name }: Pick<KitConfig<S>, 'HOST' | 'CONNECTOR_PORT' | 'name'>,
  { steps, ...deps }: ListenerParts<S>,
) {
  if (webhook === undefined && steps === undefined) return undefined;
  const receive = createListener({
    ...deps,
    webhook: webhook && (steps?.watchWebhook(webhook) ?? webhook),
  });
  const page = steps && createPage(name, steps);
  const server = createHttpServer((request, response) => {
    if (page !== undefined && isForPage(request)) page(request, response);
    else receive(request, response);
  }, WEBHOOK_TIMEOUTS);
  server.listen(CONNECTOR_PORT ?? 0, HOST);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://${HOST}:${port}${webhook?.path ?? ''}`,
    close: () => closeServer(server, LISTENER_GRACE_MS),
  };
}
