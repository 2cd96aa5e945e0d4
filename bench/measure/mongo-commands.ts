import { setTimeout as sleep } from 'node:timers/promises';
import type { MongoClient } from 'mongodb';
import { z } from 'zod';
import type { Counts } from './statistics';

/** Commands that drivers, the replica set and this benchmark send by themselves. */
const HOUSEKEEPING = new Set([
  'hello',
  'isMaster',
  'ping',
  'buildInfo',
  'serverStatus',
  'endSessions',
  'getParameter',
  'replSetHeartbeat',
  'replSetUpdatePosition',
  'replSetGetStatus',
  'connectionStatus',
  'saslStart',
  'saslContinue',
  'authenticate',
  'logout',
]);
const IDLE_MS = 4_000;

const Status = z.object({
  metrics: z.object({ commands: z.record(z.string(), z.unknown()) }),
});
const Command = z.object({ total: z.coerce.number() });

export async function readCommands(mongo: MongoClient): Promise<Counts> {
  const status = await mongo.db('admin').command({ serverStatus: 1 });
  const counts: Counts = {};
  for (const [name, value] of Object.entries(Status.parse(status).metrics.commands)) {
    const command = Command.safeParse(value);
    if (command.success && !HOUSEKEEPING.has(name)) counts[name] = command.data.total;
  }
  return counts;
}

export function subtract(before: Counts, after: Counts): Counts {
  const differences = Object.entries(after).map(
    ([name, total]) => [name, total - (before[name] ?? 0)] as const,
  );
  return Object.fromEntries(differences.filter(([, difference]) => difference !== 0));
}

/** Measures commands a second while no payment is in flight: pollers and heartbeats. */
export async function measureIdle(mongo: MongoClient): Promise<Counts> {
  const before = await readCommands(mongo);
  const began = performance.now();
  await sleep(IDLE_MS);
  const seconds = (performance.now() - began) / 1_000;
  const counts = subtract(before, await readCommands(mongo));
  return Object.fromEntries(Object.entries(counts).map(([name, n]) => [name, n / seconds]));
}

/** Computes commands per payment, without those that idle processes send in that time. */
export function perPayment(
  counts: Counts,
  idlePerSecond: Counts,
  { elapsedMs, payments }: { elapsedMs: number; payments: number },
): Counts {
  const rows = Object.entries(counts).map(([name, count]) => {
    const idle = ((idlePerSecond[name] ?? 0) * elapsedMs) / 1_000;
    return [name, Math.max(0, count - idle) / payments] as const;
  });
  return Object.fromEntries(rows.filter(([, count]) => count >= 0.005));
}
