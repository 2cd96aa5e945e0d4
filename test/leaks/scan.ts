import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { historyToJSON } from '@temporalio/common/lib/proto-utils';
import { connectMongo } from '../../src/base/mongo';
import type { StackState } from '../../stack/state-file';

/** A place that was searched, and what it holds as one text. */
export interface Place {
  name: string;
  text: string;
}

/** Every document of every database of the stack, the bank's own included. */
export async function mongoPlaces({ mongodb }: StackState): Promise<Place[]> {
  const mongo = await connectMongo(mongodb.uri, 'leak-scan');
  try {
    const { databases } = await mongo.db('admin').admin().listDatabases();
    const names = databases.map(({ name }) => name).filter((name) => name !== 'config');
    const places: Place[] = [];
    for (const name of names) {
      for (const { name: collection, type } of await mongo.db(name).listCollections().toArray()) {
        if (type !== 'collection') continue;
        const documents = await mongo.db(name).collection(collection).find().toArray();
        places.push({ name: `${name}.${collection}`, text: JSON.stringify(documents) });
      }
    }
    return places;
  } finally {
    await mongo.close();
  }
}

/** Every history, with its payloads as they were before their encoding. */
export async function historyPlaces({ temporal }: StackState): Promise<Place[]> {
  const connection = await Connection.connect({ address: temporal.address });
  try {
    const { workflow } = new Client({ connection, namespace: temporal.namespace });
    const places: Place[] = [];
    for await (const { workflowId, runId } of workflow.list()) {
      const history = await workflow.getHandle(workflowId, runId).fetchHistory();
      places.push({ name: workflowId, text: decoded(historyToJSON(history)) });
    }
    return places;
  } finally {
    await connection.close();
  }
}

/** The text with what each base64 string in it says behind it. */
function decoded(json: string): string {
  const encoded = json.match(/"[A-Za-z0-9+/]{8,}={0,2}"/g) ?? [];
  return [json, ...encoded.map((text) => Buffer.from(text.slice(1, -1), 'base64'))].join('\n');
}

/** Every file under a folder, byte for byte. */
export function filePlaces(folder: string): Place[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => ({ name: path.slice(folder.length + 1), text: readFileSync(path, 'latin1') }));
}

/** Says where each of the values stands. */
export function findings(places: readonly Place[], values: readonly (string | RegExp)[]): string[] {
  return places.flatMap(({ name, text }) =>
    values.filter((value) => stands(value, text)).map((value) => `${value} in ${name}`),
  );
}

function stands(value: string | RegExp, text: string): boolean {
  return typeof value === 'string' ? text.includes(value) : value.test(text);
}
