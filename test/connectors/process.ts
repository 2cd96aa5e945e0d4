import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectProcess } from '../../connectors/kit/process';
import { createLogger } from '../../src/base/log';
import { mongodbUri, temporalAddress } from '../support/servers';

export interface Place<S> {
  database: string;
  prefix: string;
  keysDir: string;
  environment?: 'sandbox' | 'live';
  settings: S;
  namespace?: string;
  log?: ReturnType<typeof createLogger>;
  /** By default a new one, which ends with the connection. */
  stateDir?: string;
}

/** Connects a connector that runs in the process of the tests, next to the product of a database. */
export async function connectConnector<S>(name: string, place: Place<S>) {
  const { database, prefix, keysDir, environment = 'sandbox', settings, log } = place;
  const { namespace = 'default' } = place;
  // The connector makes it, once its process is connected.
  const stateDir = place.stateDir ?? join(tmpdir(), `connector-state-${randomUUID()}`);
  const config = {
    ...{ LOG_LEVEL: 'silent', METRICS_HOST: '127.0.0.1', CONNECTOR_KEY_FILE: '' },
    ...{ MONGODB_URI: mongodbUri(), MONGODB_DB: database, TASK_QUEUE_PREFIX: prefix },
    ...{ name, environment, isLive: false, settings },
    ...{ KEYS_DIR: keysDir, HOST: '127.0.0.1', CONNECTOR_PORT: undefined },
    CONNECTOR_STATE_DIR: stateDir,
    temporal: { address: temporalAddress(), namespace },
  };
  const quiet = createLogger(name, process.env['TEST_LOG_LEVEL'] ?? 'silent');
  const own = await connectProcess({ connector: name }, config, log ?? quiet);
  const close = async () => {
    await own.close();
    if (place.stateDir === undefined) rmSync(stateDir, { recursive: true, force: true });
  };
  return { config, own: { ...own, close } };
}
