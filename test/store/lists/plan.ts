import type { CommandStartedEvent, Db, Document, MongoClient } from 'mongodb';
import { z } from 'zod';

/** Way in which MongoDB answers a query, and what it read for it. */
export interface Plan {
  /** Names of the indexes that it goes by. */
  indexes: string[];
  /** Stages, such as `COLLSCAN` for reading a whole collection and `SORT` for sorting in memory. */
  stages: string[];
  keys_examined: number;
  documents_examined: number;
  returned: number;
}

const READS = ['find', 'aggregate'] as const;

const Executed = z.object({
  nReturned: z.coerce.number(),
  totalKeysExamined: z.coerce.number(),
  totalDocsExamined: z.coerce.number(),
});

/**
 * Asks MongoDB for the plan of a query as the product sends it.
 * @param mongo a client that monitors its commands, by which `read` reads
 * @param read makes one query
 */
export async function planOf(
  mongo: MongoClient,
  db: Db,
  read: () => Promise<unknown>,
): Promise<Plan> {
  const sent: Document[] = [];
  const listen = ({ command }: CommandStartedEvent) => {
    if (READS.some((name) => name in command)) sent.push(command);
  };
  mongo.on('commandStarted', listen);
  try {
    await read();
  } finally {
    mongo.off('commandStarted', listen);
  }
  const [command] = sent;
  if (command === undefined) throw new Error('It read nothing.');
  const explained = await db.command({ explain: bare(command), verbosity: 'executionStats' });
  const found = { indexes: new Set<string>(), stages: new Set<string>() };
  walk(explained['queryPlanner'] ?? explained['stages'], found);
  const stats = Executed.parse(statsIn(explained));
  return {
    indexes: [...found.indexes],
    stages: [...found.stages],
    keys_examined: stats.totalKeysExamined,
    documents_examined: stats.totalDocsExamined,
    returned: stats.nReturned,
  };
}

/** Leaves out what belongs to the connection. */
function bare(command: Document): Document {
  const { lsid, $clusterTime, $db, readConcern, maxTimeMS, ...rest } = command;
  return rest;
}

/** Statistics of the whole query, which an aggregation has in its first stage. */
function statsIn(explained: Document): unknown {
  const [stage] = explained['stages'] ?? [];
  return explained['executionStats'] ?? stage?.['$cursor']?.['executionStats'];
}

/** Walks over the plan that won; those that were rejected tell nothing. */
function walk(node: unknown, found: { indexes: Set<string>; stages: Set<string> }): void {
  if (typeof node !== 'object' || node === null) return;
  for (const [name, value] of Object.entries(node)) {
    if (name === 'rejectedPlans') continue;
    if (name === 'indexName' && typeof value === 'string') found.indexes.add(value);
    if (name === 'stage' && typeof value === 'string') found.stages.add(value);
    // A look-up by the id alone names no index.
    if (name === 'stage' && value === 'IDHACK') found.indexes.add('_id_');
    walk(value, found);
  }
}
