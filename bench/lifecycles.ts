import { setTimeout as sleep } from 'node:timers/promises';
import { inLoops } from './load';
import type { Receiver } from './receiver';

/** A resource beside payments that the product takes from its creation to its end. */
export interface Lifecycle {
  name: LifecycleName;
  /** Makes one HTTP request and returns the id of the new resource. */
  create(): Promise<string>;
  /** Moves that the product makes by itself after the creation, each told by a webhook. */
  told: readonly string[];
  /** Moves that the bank reports, in order. */
  reported: readonly string[];
  report(id: string, move: string): Promise<void>;
}

export const LIFECYCLES = ['refunds', 'payouts'] as const;
export type LifecycleName = (typeof LIFECYCLES)[number];

/** Result of a closed-loop run; times in ms. */
export interface LifecycleRun {
  perSecond: number;
  createMs: number[];
  callbackMs: number[];
}

export interface LifecycleLoad {
  count: number;
  /** Number under way at any moment. */
  concurrency: number;
  signal: AbortSignal;
}

const SETTLE_MS = 500;

/** @throws the error of the first resource that fails */
export async function runLifecycle(
  lifecycle: Lifecycle,
  receiver: Receiver,
  { count, concurrency, signal }: LifecycleLoad,
): Promise<LifecycleRun> {
  const run: LifecycleRun = { perSecond: 0, createMs: [], callbackMs: [] };
  const began = performance.now();
  await inLoops({ count, concurrency, signal }, () => one(lifecycle, receiver, run));
  run.perSecond = count / ((performance.now() - began) / 1_000);
  // Work that the last ones left to do must not fall on the next run.
  await sleep(SETTLE_MS);
  return run;
}

/** Takes one resource to its end; each report is sent once the move before it has been told. */
async function one(lifecycle: Lifecycle, receiver: Receiver, run: LifecycleRun): Promise<void> {
  const began = performance.now();
  const id = await lifecycle.create();
  run.createMs.push(performance.now() - began);
  for (const move of lifecycle.told) await receiver.arrival(id, move);
  for (const move of lifecycle.reported) {
    const sent = performance.now();
    const arrival = receiver.arrival(id, move);
    const [at] = await Promise.all([arrival, lifecycle.report(id, move)]);
    run.callbackMs.push(at - sent);
  }
  receiver.take(id);
}
