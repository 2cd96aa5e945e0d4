import type { Db } from 'mongodb';
import { createDetailsDecrypter } from '../../src/encryption/recipient-keys';
import { checkTemporal } from '../../src/temporal/attributes';
import { runWorker } from '../../src/temporal/native';
import type { ConnectorActivities } from '../contract/activities';
import { createEvidenceDecrypter } from '../contract/evidence';
import { createRecipientDecrypter, createReferenceReader } from '../contract/recipients';
import { type ActivityDeps, createKitActivities } from './activities';
import { countSlots, createBankClient } from './bank-client';
import { listCapabilities, reportCapabilities } from './capabilities';
import { type KitConfig, readKitConfig } from './config';
import type { ConnectorDefinition, Settings, Tools } from './definition';
import { createInstructionStore } from './instructions';
import { startListener } from './listener';
import { startLoop } from './loop';
import { createKitMeter } from './metrics';
import { createStepLog } from './page/steps';
import { beginProcess, type ConnectorProcess } from './process';
import { createPoller, createReportDelivery, createStatementMaker } from './reports';
import { openRestoreGuard, type RestoreGuard } from './restore-guard';

const POLL_GRACE_MS = 5_000;
const POLL_TROUBLE_MS_MAX = 60_000;
/** Far below the first wait of a report that was set aside. */
const RETRY_POLL_MS = 10_000;
const STATEMENT_POLL_MS = 600_000;

/**
 * Serves a bank with the variables of this process, until the process is stopped.
 * @param start by default starts the connector as it is defined
 */
export async function serveConnector<S extends Settings>(
  definition: ConnectorDefinition<S>,
  start = (config: KitConfig<S>, own: ConnectorProcess) => startConnector(definition, config, own),
): Promise<void> {
  const config = readKitConfig(definition);
  const { log, onStop, connect } = beginProcess({ connector: config.name }, config);
  const own = await connect();
  await checkTemporal(own, log, config.isLive);
  const connector = await start(config, own);
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
  const repeat = (round: () => Promise<boolean>, pollMs: number, what: string, more = {}) => {
    const failureText = `${what}, tried again later`;
    return startLoop({ round, pollMs, failureText, graceMs: POLL_GRACE_MS, log, ...more });
  };
  const loop =
    poll &&
    repeat(
      createPoller({ db, poll, tools, deliver, setAside: delivery.setAside, meter }),
      poll.seconds * 1_000,
      'the bank’s reports could not be read',
      { troubleMsMax: Math.min(POLL_TROUBLE_MS_MAX, 10_000 * poll.seconds) },
    );
  const makeStatements =
    statements && createStatementMaker({ ...own, statements, db, tools, livemode });
  const unmade = 'a statement of the balance could not be made';
  const making = makeStatements && repeat(makeStatements, STATEMENT_POLL_MS, unmade);
  const undelivered = 'reports that were set aside could not be delivered';
  const retries = repeat(delivery.retry, RETRY_POLL_MS, undelivered);
  const served = listCapabilities(definition);
  const added = Object.keys(activities).filter((name) => !(name in bank));
  const all = {
    ...served,
    serves: [...served.serves, ...(parts.alsoServes ?? [])].toSorted(),
    functions: [...served.functions, ...added].toSorted(),
  };
  const { countSetAside } = delivery;
  const report = reportCapabilities(own, all, { restoreGuard, countSetAside });
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
