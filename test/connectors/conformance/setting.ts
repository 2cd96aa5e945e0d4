import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkConnector } from '../../../connectors/conformance/check';
import type { ConnectorActivities } from '../../../connectors/contract/activities';
import type { InstructionGuard } from '../../../connectors/contract/guard';
import { startFakeBank } from '../../../connectors/example/fake-bank';
import { startConnector } from '../../../connectors/kit/connector';
import type { ConnectorDefinition, Settings } from '../../../connectors/kit/definition';
import { connectProcess } from '../../../connectors/kit/process';
import { createLogger } from '../../../src/base/log';
import { connectMongo } from '../../../src/base/mongo';
import type { PaymentMethodId } from '../../../src/domain/payment/catalog';
import type { RailId } from '../../../src/domain/payout/rails';
import { ensureKeys } from '../../../src/encryption/ensure-keys';
import type { CheckAddresses, CheckReport } from '../../../src/service/connector-check';
import { createOperatorDeps, createReadDeps } from '../../../src/service/operators/deps';
import { connectTemporal } from '../../../src/temporal/connect';
import { freePort } from '../../../stack/ports';
import { retryUntilDone } from '../../support/insist';
import { quietTemporal } from '../../support/quiet';
import { mongodbUri, temporalAddress } from '../../support/servers';

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
  const deps = await createOperatorDeps(createReadDeps(mongo, database));
  return {
    ...{ mongo, database, prefix, keysDir, access, temporal, stores: deps.stores },
    check: (
      addresses: CheckAddresses,
      { methods, rails }: { methods: PaymentMethodId[]; rails: RailId[] },
    ): Promise<CheckReport> =>
      checkConnector(
        {
          ...{ ...deps, temporal, access, database, keysDir, taskQueuePrefix: prefix },
          progress: () => undefined,
        },
        { connector, methods, rails, waitMs, ...addresses },
      ),
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

interface Change<S extends Settings> {
  definition?: (definition: ConnectorDefinition<S>) => ConnectorDefinition<S>;
  /** Changes what the kit registers, as a connector without the kit might have it. */
  activities?: (activities: Activities) => Activities;
  guard?: Pick<InstructionGuard, 'findOutdated'>;
  /** Handles the webhooks of the bank, in front of the connector. */
  webhooks?: (url: string) => Promise<Front>;
  /** Handles what the check asks of the bank’s desk. */
  desk?: (url: string) => Promise<Front>;
  /** Wait for a report; by default what is enough for a mutant. */
  waitMs?: number;
}

interface Front {
  url: string;
  stop: () => Promise<void>;
}

/** Checks a connector on the kit between the product's stores and the fake bank. */
export async function checkOnKit<S extends Settings>(
  definition: ConnectorDefinition<S>,
  settings: unknown,
  change: Change<S> = {},
): Promise<CheckReport> {
  const { name } = definition;
  const bench = await openBench(name, change.waitMs);
  const [bankPort, webhookPort] = [await freePort(), await freePort()];
  const bank = await startFakeBank(SECRET, {
    webhookUrl: `http://127.0.0.1:${webhookPort}/webhooks`,
  });
  const log = createLogger(name, process.env['TEST_LOG_LEVEL'] ?? 'silent');
  const config = {
    ...{ LOG_LEVEL: 'silent', METRICS_HOST: '127.0.0.1', CONNECTOR_KEY_FILE: '' },
    ...{ MONGODB_URI: mongodbUri(), MONGODB_DB: bench.database, TASK_QUEUE_PREFIX: bench.prefix },
    ...({ temporal: bench.access, name, environment: 'sandbox', isLive: false } as const),
    ...{ KEYS_DIR: bench.keysDir, HOST: '127.0.0.1', CONNECTOR_PORT: undefined },
    settings: { ...Object(settings), EXAMPLE_API_URL: `http://127.0.0.1:${bankPort}` },
  };
  const own = await connectProcess({ connector: name }, config, log);
  const { activities: changeActivities = (same) => same } = change;
  const connector = await startConnector(change.definition?.(definition) ?? definition, config, {
    ...own,
    guard: { ...own.guard, ...change.guard },
    createWorker: (activities, options) => own.createWorker(changeActivities(activities), options),
  });
  connector.finished.catch(() => undefined);
  const url = String(connector.url).replace('/webhooks', '');
  const front = await change.webhooks?.(url);
  const desk = await change.desk?.(bank.url);
  try {
    return await bench.check(
      {
        ...{ deskUrl: `${desk?.url ?? bank.url}/desk`, bankUrl: bank.url, bankPort },
        ...{ webhookUrl: front?.url ?? url, webhookPort },
      },
      {
        methods: definition.openSession === undefined ? [] : ['ideal'],
        rails: ['sepa_credit_transfer'],
      },
    );
  } finally {
    await connector.stop();
    await front?.stop();
    await desk?.stop();
    await own.close();
    await bank.stop();
    await bench.stop();
  }
}

/** Promises that a report says were broken, and what was seen. */
export function listBroken({ promises }: CheckReport): string[] {
  return promises
    .filter(({ result }) => result === 'failed')
    .map(({ id, seen }) => `${id}: ${seen}`);
}
