import { MongoClient } from 'mongodb';
import { describeError, OperationalError } from '../src/base/errors';
import { RUNTIME_ADAPTERS } from '../src/base/runtime-adapters';
import { readServers } from '../src/config';
import type { TemporalAccess } from '../src/temporal/access';
import { registerAttributes } from '../src/temporal/attributes';
import { connectTemporal } from '../src/temporal/connect';
import { findConnectFault } from '../src/temporal/fault';
import type { StackConfig } from './config';
import type { Executables } from './parts';
import { mongod } from './provision/mongod';
import type { ProvisionContext } from './provision/provision';
import { provision } from './provision/provision';
import { temporalCli } from './provision/temporal';
import type { Progress } from './terminal';

const CALL_MS_MAX = 5_000;

/** @throws OperationalError */
export async function findServers(
  { cacheDir, temporalAddress, mongodbUri }: StackConfig,
  { env, progress, signal }: Omit<ProvisionContext, 'cacheDir'>,
): Promise<Executables> {
  const access = remoteAccess(env);
  const context = { cacheDir, env, progress, signal };
  const [temporal, mongo] = await Promise.all([
    temporalAddress === undefined
      ? provision(temporalCli, context)
      : prepareRemoteTemporal(access, progress),
    mongodbUri === undefined ? provision(mongod, context) : checkRemoteMongo(mongodbUri),
  ]);
  if (temporalAddress !== undefined) progress.line('Temporal: TEMPORAL_ADDRESS, nothing started');
  if (mongodbUri !== undefined) progress.line('MongoDB: MONGODB_URI, nothing started');
  return { temporal: temporal?.path, mongod: mongo?.path };
}

/** @throws OperationalError naming the invalid variable, or a server without TLS */
function remoteAccess(env: NodeJS.ProcessEnv): TemporalAccess {
  const { MONGODB_URI = '', ALLOW_CLEAR_TEXT = '' } = env;
  try {
    return readServers(env, { MONGODB_URI, ALLOW_CLEAR_TEXT });
  } catch (error) {
    throw new OperationalError(describeError(error));
  }
}

/**
 * Registers missing search attributes.
 * @throws OperationalError if the server does not answer, or refuses
 */
export async function prepareRemoteTemporal(
  access: TemporalAccess,
  progress: Progress,
): Promise<void> {
  const { address, namespace } = access;
  const client = connectTemporal(access);
  const { connection } = client;
  try {
    await client.withDeadline(Date.now() + CALL_MS_MAX, () =>
      client.workflowService.describeNamespace({ namespace }),
    );
    const attributes = await registerAttributes({ connection, namespace });
    if (attributes.length === 0) return;
    progress.line(
      `Temporal: registered search attributes ${attributes.join(', ')} on ${namespace}`,
    );
  } catch (error) {
    const fault = findConnectFault(error);
    throw new OperationalError(
      fault === undefined
        ? `No Temporal at TEMPORAL_ADDRESS ${address}: ${describeError(error)}`
        : `Temporal at TEMPORAL_ADDRESS ${address}: ${fault.message}`,
    );
  } finally {
    await connection.close();
  }
}

/** @throws OperationalError if MongoDB does not answer or is no replica set */
async function checkRemoteMongo(uri: string): Promise<void> {
  const client = new MongoClient(uri, {
    serverSelectionTimeoutMS: CALL_MS_MAX,
    runtimeAdapters: RUNTIME_ADAPTERS,
  });
  try {
    const hello = await client.db('admin').command({ hello: 1 });
    if (hello['setName'] !== undefined || hello['msg'] === 'isdbgrid') return;
  } catch (error) {
    throw new OperationalError(`No MongoDB at MONGODB_URI: ${describeError(error)}`);
  } finally {
    await client.close();
  }
  throw new OperationalError(
    'MONGODB_URI names a standalone MongoDB, which has no transactions. Run it as a replica set ' +
      '(one node is enough: mongod --replSet NAME, then rs.initiate()), or unset MONGODB_URI.',
  );
}
