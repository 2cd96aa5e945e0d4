import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Collection } from 'mongodb';
import { checkConnector } from '../../../connectors/conformance/check';
import type { ConnectorActivities } from '../../../connectors/contract/activities';
import type { InstructionGuard } from '../../../connectors/contract/guard';
import { startFakeBank } from '../../../connectors/example/fake-bank';
import { type RunConfig, startConnector } from '../../../connectors/kit/connector';
import type { ConnectorDefinition, Settings } from '../../../connectors/kit/definition';
import { AttemptInProgress, type InstructionRecord } from '../../../connectors/kit/instructions';
import type { connectProcess } from '../../../connectors/kit/process';
import type { RestoreGuard } from '../../../connectors/kit/restore-guard';
import { startSepa } from '../../../connectors/sepa/connector';
import { connectMongo } from '../../../src/base/mongo';
import { omitUndefined } from '../../../src/domain/defined';
import { ensureKeys } from '../../../src/encryption/ensure-keys';
import type {
  CheckAddresses,
  CheckInput,
  CheckReport,
} from '../../../src/service/banks/connector-check';
import { createOperatorDeps, createReadDeps } from '../../../src/service/operators/deps';
import { connectTemporal } from '../../../src/temporal/access';
import { freePort } from '../../../stack/ports';
import { commandsIn } from '../../cli/cli';
import { retryUntilDone } from '../../support/eventually';
import { quietTemporal } from '../../support/quiet';
import { mongodbUri, temporalAddress } from '../../support/servers';
import { connectConnector, type Place } from '../process';

export const SECRET = 'secret-of-the-example-bank';

export type Activities = Partial<ConnectorActivities>;

/** Wait for a report that a mutant never makes: a check lasts at least that long. */
const MUTANT_WAIT_MS = 30_000;
/** Wait for a report that is sure to come, also on a busy machine. */
export const PATIENT_WAIT_MS = 90_000;

/** Servers, keys and names of one check. */
export async function openBench(connector: string, waitMs = MUTANT_WAIT_MS) {
  quietTemporal();
  const id = randomUUID().slice(0, 8);
  const database = `test_check_${id}`;
  const prefix = `check-${id}`;
  const folder = mkdtempSync(join(tmpdir(), 'check-keys-'));
  const { KEYS_DIR: keysDir } = ensureKeys(folder);
  const mongo = await connectMongo(mongodbUri(), 'connector-check');
  const access = { address: temporalAddress(), namespace: 'default' };
  const temporal = connectTemporal(access);
  const deps = await createOperatorDeps(createReadDeps(mongo, database, { keysDir }));
  return {
    ...{ mongo, database, prefix, keysDir, temporal, stores: deps.stores },
    check: (
      input: CheckAddresses & Pick<CheckInput, 'only'>,
      methods: CheckInput['methods'] = [],
    ): Promise<CheckReport> =>
      checkConnector(
        {
          ...{ ...deps, temporal, access, database, keysDir, taskQueuePrefix: prefix },
          progress: () => undefined,
        },
        { connector, methods, rails: ['sepa_credit_transfer'], waitMs, ...input },
      ),
    /** Command line on the servers of the check. */
    commands: (changes: NodeJS.ProcessEnv = {}) =>
      commandsIn({
        ...{ MONGODB_URI: mongodbUri(), MONGODB_DB: database, KEYS_DIR: keysDir },
        ...{ TEMPORAL_ADDRESS: temporalAddress(), TASK_QUEUE_PREFIX: prefix, DATA_DIR: '/none' },
        ...changes,
      }),
    stop: async (): Promise<void> => {
      for (const name of [database, `${database}_${connector}`, `${database}_sandbox_bank`]) {
        await retryUntilDone(() => mongo.db(name).dropDatabase());
      }
      await temporal.connection.close();
      await mongo.close();
      rmSync(folder, { recursive: true });
    },
  };
}

/** Replaces parts of a connector on the kit. */
interface Parts {
  /** Changes what the kit registers, as a connector without the kit might have it. */
  activities?: (activities: Activities) => Activities;
  guard?: Pick<InstructionGuard, 'findOutdated'>;
  /** By default one that compares. */
  restoreGuard?: Pick<RestoreGuard, 'confirm' | 'check' | 'onChange' | 'protect'>;
}

interface Change<S extends Settings> extends Parts {
  definition?: (definition: ConnectorDefinition<S>) => ConnectorDefinition<S>;
  /** Handles the webhooks of the bank, in front of the connector. */
  webhooks?: (url: string) => Promise<Front>;
  /** Handles what the check asks of the bank’s desk. */
  desk?: (url: string) => Promise<Front>;
  /** Wait for a report; by default what is enough for a mutant. */
  waitMs?: number;
  /** Names of promises; by default all. */
  only?: readonly string[];
  /** The connector and its bank have all: what does not apply to them was only late. */
  isWhole?: true;
}

interface Front {
  url: string;
  stop: () => Promise<void>;
}

/** How often a check is made where each time Temporal gave up an activity. */
const TRIES = 3;

/**
 * Checks a connector on the kit between the product's stores and the fake bank. Temporal gives up an
 * activity that no worker takes for 20 seconds, which happens on a busy machine whatever the
 * connector does: such a check says nothing about it, and is made again.
 */
export async function checkOnKit<S extends Settings>(
  definition: ConnectorDefinition<S>,
  settings: unknown,
  change: Change<S> = {},
  tries = TRIES,
): Promise<CheckReport> {
  const report = await checkOnce(definition, settings, change);
  const isLate =
    listBroken(report).some((each) => each.endsWith('Activity task timed out')) ||
    (change.isWhole === true && report.not_applicable > 0);
  return isLate && tries > 1 ? await checkOnKit(definition, settings, change, tries - 1) : report;
}

async function checkOnce<S extends Settings>(
  definition: ConnectorDefinition<S>,
  settings: unknown,
  change: Change<S>,
): Promise<CheckReport> {
  const bench = await openBench(definition.name, change.waitMs);
  const [bankPort, webhookPort] = [await freePort(), await freePort()];
  const bank = await startFakeBank(SECRET, {
    webhookUrl: `http://127.0.0.1:${webhookPort}/webhooks`,
  });
  const connector = await startOnKit(
    change.definition?.(definition) ?? definition,
    {
      ...bench,
      settings: { ...Object(settings), EXAMPLE_API_URL: `http://127.0.0.1:${bankPort}` },
    },
    change,
  );
  const url = String(connector.url).replace('/webhooks', '');
  const front = await change.webhooks?.(url);
  const desk = await change.desk?.(bank.url);
  try {
    return await bench.check(
      {
        ...{ deskUrl: `${desk?.url ?? bank.url}/desk`, bankUrl: bank.url, bankPort },
        ...{ webhookUrl: front?.url ?? url, webhookPort, only: change.only },
      },
      definition.openSession === undefined ? [] : ['ideal'],
    );
  } finally {
    await connector.stop();
    await front?.stop();
    await desk?.stop();
    await bank.stop();
    await bench.stop();
  }
}

/** Starts a connector on the kit whose failed attempts end at once. */
export async function startOnKit<S extends Settings>(
  definition: ConnectorDefinition<S>,
  { name = definition.name, ...place }: Place<RunConfig<S>['settings']> & { name?: string },
  { activities: change = (same) => same, guard, restoreGuard }: Parts = {},
) {
  const { config, own } = await connectConnector(name, place);
  const records = own.mongo
    .db(`${place.database}_${name}`)
    .collection<InstructionRecord>('instructions');
  const changed = {
    ...{ ...own, guard: { ...own.guard, ...guard } },
    createWorker: (activities: object, options?: Parameters<typeof own.createWorker>[1]) =>
      own.createWorker(change(endFailedAttempts(activities, records)), options),
  };
  const connector = await startConnector(
    definition,
    config,
    changed,
    omitUndefined({ restoreGuard }),
  );
  connector.finished.catch(() => undefined);
  return { url: connector.url, stop: () => connector.stop().then(own.close) };
}

/**
 * Ends the 25 seconds of an attempt once it has failed, since none outlasts its activity in this
 * process: a look-up then says at once that nothing arrived.
 */
function endFailedAttempts(
  activities: Activities,
  records: Collection<InstructionRecord>,
): Activities {
  const { sendPayout, sendRefund, submitEvidence, acceptDispute } = activities;
  const end =
    <I, A>(send: (input: I) => Promise<A>, makeId: (input: I) => string) =>
    async (input: I): Promise<A> => {
      try {
        return await send(input);
      } catch (error) {
        const isOver = !(error instanceof AttemptInProgress);
        const change = { $set: { deadline: new Date(0) } };
        if (isOver) await records.updateOne({ _id: makeId(input), answer: null }, change);
        throw error;
      }
    };
  return {
    ...activities,
    ...(sendPayout && { sendPayout: end(sendPayout, ({ payout_id: id }) => `payout:${id}`) }),
    ...(sendRefund && { sendRefund: end(sendRefund, ({ refund_id: id }) => `refund:${id}`) }),
    ...(submitEvidence && { submitEvidence: end(submitEvidence, (input) => input.instruction_id) }),
    ...(acceptDispute && { acceptDispute: end(acceptDispute, (input) => input.instruction_id) }),
  };
}

interface SepaChange {
  /** Parts of the connector that a mutant replaces. */
  parts?: Parameters<typeof startSepa>[2];
  /** Changes what it delivers. */
  deliver?: (deliver: Deliver) => Deliver;
}

type Deliver = Awaited<ReturnType<typeof connectProcess>>['deliver'];

/** Starts the connector of SEPA files between two folders, on servers of a check. */
export async function openSepaBench({ parts, deliver = (same) => same }: SepaChange = {}) {
  const bench = await openBench('sepa');
  const makeFolder = (name: string) => mkdtempSync(join(tmpdir(), `check-${name}-`));
  const folders = { out: makeFolder('out'), in: makeFolder('in') };
  const { config, own } = await connectConnector('sepa', {
    ...bench,
    settings: {
      ...{ SEPA_OUT_DIR: folders.out, SEPA_IN_DIR: folders.in, SEPA_IBAN: 'NL41MOCK0000000001' },
      ...{ SEPA_NAME: 'Connector check', SEPA_CUT_OFF: 15 * 60, SEPA_POLL_SECONDS: 0.1 },
      ...{
        SEPA_FILE_MIN: 1,
        SEPA_VERIFIED_DIR: '',
        SEPA_INSTANT: '' as const,
        SEPA_INSTANT_SECONDS: 5,
      },
      ...{ SEPA_INSTANT_FINAL: 'status' as const, SEPA_INSTANT_OVERDUE_SECONDS: 60 },
    },
  });
  const changed = { ...own, deliver: deliver(own.deliver) };
  const connector = await startSepa(config, changed, { growsMs: 500, ...parts });
  connector.finished.catch(() => undefined);
  return {
    ...{ ...bench, folders },
    check: (only?: readonly string[]) => bench.check({ folders, only }),
    stop: async (): Promise<void> => {
      await connector.stop();
      await own.close();
      await bench.stop();
      for (const folder of Object.values(folders)) rmSync(folder, { recursive: true });
    },
  };
}

/** Promises that a report says were broken, and what was seen. */
export function listBroken({ promises }: CheckReport): string[] {
  return promises
    .filter(({ result }) => result === 'failed')
    .map(({ id, seen }) => `${id}: ${seen}`);
}
