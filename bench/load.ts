import type { CallbackMove } from './floor/contract';
import type { Receiver } from './receiver';
import type { Subject } from './subject';

const CALLBACKS: readonly CallbackMove[] = ['authorized', 'settled'];

export interface Load {
  payments: number;
  /** Number of payments under way at any moment; as one ends, the next begins. */
  concurrency: number;
  signal: AbortSignal;
}

/** Result of a closed-loop run; times in ms. */
export interface Run {
  /** Times from the request to its answer. */
  createMs: number[];
  /** Times from the connector's call to the arrival of the move's webhook; two of each payment. */
  callbackMs: number[];
  /** Ids of the payments, with those of their events. */
  made: { paymentId: string; eventIds: string[] }[];
}

/** @throws the error of the first payment that fails; the others are not waited for */
export async function runLoad(subject: Subject, receiver: Receiver, load: Load): Promise<Run> {
  const run: Run = { createMs: [], callbackMs: [], made: [] };
  await inLoops({ ...load, count: load.payments }, () => onePayment(subject, receiver, run));
  return run;
}

interface Loops {
  count: number;
  concurrency: number;
  signal: AbortSignal;
}

/** Does one thing `count` times, so many at once. @throws its first error */
export async function inLoops(
  { count, concurrency, signal }: Loops,
  one: (n: number) => Promise<void>,
): Promise<void> {
  let next = 0;
  const loop = async (): Promise<void> => {
    for (; next < count && !signal.aborted; ) {
      next += 1;
      await one(next - 1);
    }
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, count) }, loop));
  signal.throwIfAborted();
}

/**
 * Takes one payment to its end; each callback is sent once the one before it has been told, as a
 * bank does, only sooner.
 */
async function onePayment(subject: Subject, receiver: Receiver, run: Run): Promise<void> {
  const began = performance.now();
  const paymentId = await subject.create();
  run.createMs.push(performance.now() - began);
  for (const move of CALLBACKS) {
    const sent = performance.now();
    const arrival = receiver.arrival(paymentId, move);
    const [at] = await Promise.all([arrival, subject.callback(paymentId, move)]);
    run.callbackMs.push(at - sent);
  }
  await receiver.arrival(paymentId, 'awaiting_customer');
  run.made.push({ paymentId, eventIds: receiver.take(paymentId) });
}
