import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { example } from '../../../connectors/example/example';
import { startFakeBank } from '../../../connectors/example/fake-bank';
import { startConnector } from '../../../connectors/kit/connector';
import { connectProcess } from '../../../connectors/kit/process';
import { createLogger } from '../../../src/base/log';
import { useFixture } from '../../support/fixture';
import { retryUntilDone } from '../../support/insist';
import { mongodbUri, temporalAddress } from '../../support/servers';
import type { Service } from '../../support/service';

export const SECRET = 'secret-of-the-example-bank';
const POLL_SECONDS = 0.1;

export type ExampleWorld = Awaited<ReturnType<typeof startExample>>;

/** The example connector between the product and a small bank. */
async function startExample(
  service: Service,
  prefix: string,
  environment: 'sandbox' | 'live' = 'sandbox',
) {
  const bank = await startFakeBank(SECRET);
  const temporal = { address: temporalAddress(), namespace: 'default' };
  const log = createLogger('example', process.env['TEST_LOG_LEVEL'] ?? 'silent');
  const config = {
    ...{ LOG_LEVEL: 'silent', METRICS_HOST: '127.0.0.1', CONNECTOR_KEY_FILE: '', temporal },
    ...{ MONGODB_URI: mongodbUri(), MONGODB_DB: service.database, TASK_QUEUE_PREFIX: prefix },
    ...({ name: 'example', environment, isLive: false } as const),
    ...{ KEYS_DIR: service.keysDir, HOST: '127.0.0.1', CONNECTOR_PORT: undefined },
    settings: { EXAMPLE_API_URL: bank.url, EXAMPLE_KEY_FILE: SECRET },
  };
  const own = await connectProcess({ connector: 'example' }, config, log);
  const { poll } = example;
  const definition = { ...example, ...(poll && { poll: { ...poll, seconds: POLL_SECONDS } }) };
  const connector = await startConnector(definition, config, own);
  connector.finished.catch(() => undefined);
  const db = own.mongo.db(`${service.database}_example`);
  return {
    bank,
    connector,
    own,
    url: z.string().parse(connector.url),
    /** The connector's own database. */
    db,
    /** Ends the time in which the last attempt of a payout may reach the bank. */
    endAttempt: async (payout_id: string): Promise<void> => {
      const records = db.collection<{ _id: string }>('instructions');
      await records.updateOne({ _id: `payout:${payout_id}` }, { $set: { deadline: new Date(0) } });
    },
    stop: async () => {
      await connector.stop();
      await retryUntilDone(() => db.dropDatabase());
      await own.close();
      await bank.stop();
    },
  };
}

export function useExample(
  service: Service,
  prefix: string,
  environment?: 'sandbox' | 'live',
): ExampleWorld {
  return useFixture(
    () => startExample(service, prefix, environment),
    (world) => world.stop(),
  );
}

export function makePrefix(): string {
  return `example-${randomUUID().slice(0, 8)}`;
}
