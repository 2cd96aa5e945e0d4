import os from 'node:os';
import { Connection } from '@temporalio/client';
import { MongoClient } from 'mongodb';
import { SEARCH_ATTRIBUTES } from '../src/domain/search-attributes';
import { reasonOf, StackFailure } from '../src/os/failure';
import type { Progress } from './terminal';

const CALL_MS_MAX = 5_000;

/** The wire numbers of Temporal's `IndexedValueType`. */
const VALUE_TYPES = { Keyword: 2, Int: 3, Bool: 5 } as const;

/**
 * Makes a Temporal server that was given by address ready: registers the search attributes it lacks
 * and says so. Its retention is left to its owner.
 * @throws StackFailure when it does not answer, or does not let us register them.
 */
export async function prepareRemoteTemporal(
  address: string,
  namespace: string,
  progress: Progress,
): Promise<void> {
  const connection = await Connection.connect({ address, connectTimeout: CALL_MS_MAX }).catch(
    (error) => {
      throw new StackFailure(`No Temporal at TEMPORAL_ADDRESS ${address}: ${reasonOf(error)}`);
    },
  );
  try {
    await connection.withDeadline(Date.now() + 2 * CALL_MS_MAX, async () => {
      const missing = await missingAttributes(connection, namespace);
      if (missing.length === 0) return;
      const searchAttributes = Object.fromEntries(
        missing.map((name) => [name, VALUE_TYPES[SEARCH_ATTRIBUTES[name]]]),
      );
      await connection.operatorService.addSearchAttributes({ namespace, searchAttributes });
      progress.line(`Temporal: registered search attributes ${missing.join(', ')} on ${namespace}`);
    });
  } catch (error) {
    throw new StackFailure(
      `Temporal at TEMPORAL_ADDRESS ${address}, namespace ${namespace}, ` +
        `could not be given its search attributes: ${reasonOf(error)}`,
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
    throw new StackFailure(`No MongoDB at MONGODB_URI: ${reasonOf(error)}`);
  } finally {
    await client.close();
  }
  throw new StackFailure(
    'MONGODB_URI names a standalone MongoDB, which has no transactions. Run it as a replica set ' +
      '(one node is enough: mongod --replSet NAME, then rs.initiate()), or unset MONGODB_URI.',
  );
}

type Name = keyof typeof SEARCH_ATTRIBUTES;

async function missingAttributes(connection: Connection, namespace: string): Promise<Name[]> {
  const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace });
  const names = Object.keys(SEARCH_ATTRIBUTES) as Name[];
  return names.filter((name) => !(name in (customAttributes ?? {})));
}
