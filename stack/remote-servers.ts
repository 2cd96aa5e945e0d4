import os from 'node:os';
import { MongoClient } from 'mongodb';
import { describeError, StackFailure } from '../src/base/failure';
import { checkMongoTls, checkTemporalTls, PLAIN_TEXT_ALLOWED } from '../src/base/plain-text';
import { type TemporalAccess, temporalAccess } from '../src/temporal/access';
import { registerAttributes } from '../src/temporal/attributes';
import { connectTemporal } from '../src/temporal/connect';
import { findConnectFault } from '../src/temporal/fault';
import type { Progress } from './terminal';

const CALL_MS_MAX = 5_000;

/**
 * Reads how the servers that were given by address are reached.
 * @throws StackFailure naming the variable at fault, or the server that would be spoken to in clear
 */
export function remoteAccess(env: NodeJS.ProcessEnv): TemporalAccess {
  const access = readAccess(env);
  if (env['ALLOW_CLEAR_TEXT'] === PLAIN_TEXT_ALLOWED) return access;
  const mongodb = env['MONGODB_URI'];
  const temporal = env['TEMPORAL_ADDRESS'] ? checkTemporalTls(access) : undefined;
  const fault = temporal ?? (mongodb ? checkMongoTls(mongodb) : undefined);
  if (fault !== undefined) throw new StackFailure(fault);
  return access;
}

function readAccess(env: NodeJS.ProcessEnv): TemporalAccess {
  try {
    return temporalAccess(env);
  } catch (error) {
    throw new StackFailure(`The environment is not usable.\n  ${describeError(error)}`);
  }
}

/**
 * Makes a Temporal server that was given by address ready: registers the search attributes it lacks
 * and says so. Its retention is left to its owner.
 * @throws StackFailure when it does not answer, or does not let us register them.
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
    throw new StackFailure(
      fault === undefined
        ? `No Temporal at TEMPORAL_ADDRESS ${address}: ${describeError(error)}`
        : `Temporal at TEMPORAL_ADDRESS ${address}: ${fault.message}`,
    );
  } finally {
    await connection.close();
  }
}

/** @throws StackFailure when MongoDB does not answer or is no replica set. */
export async function checkRemoteMongo(uri: string): Promise<void> {
  const client = new MongoClient(uri, {
    serverSelectionTimeoutMS: CALL_MS_MAX,
    runtimeAdapters: { os },
  });
  try {
    const hello = await client.db('admin').command({ hello: 1 });
    if (hello['setName'] !== undefined || hello['msg'] === 'isdbgrid') return;
  } catch (error) {
    throw new StackFailure(`No MongoDB at MONGODB_URI: ${describeError(error)}`);
  } finally {
    await client.close();
  }
  throw new StackFailure(
    'MONGODB_URI names a standalone MongoDB, which has no transactions. Run it as a replica set ' +
      '(one node is enough: mongod --replSet NAME, then rs.initiate()), or unset MONGODB_URI.',
  );
}
