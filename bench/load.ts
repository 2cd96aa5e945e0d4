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
  payments: number;
  /** Time from the first create to the last webhook. */
  elapsedMs: number;
  /** Times from the request to its answer. */
  createMs: number[];
  /** Times from the connector's call to the arrival of the move's webhook; two of each payment. */
  callbackMs: number[];
  /** Ids of the payments, with those of their events. */
  made: { paymentId: string; eventIds: string[] }[];
}

/** @throws the error of the first payment that fails; the others are not waited for */
export async function runLoad(subject: Subject, receiver: Receiver, load: Load): Promise<Run> {
  const run: Run = {
    payments: load.payments,
    elapsedMs: 0,
    createMs: [],
    callbackMs: [],
    made: [],
  };
  let left = load.payments;
  const loop = async (): Promise<void> => {
    for (; left > 0 && !load.signal.aborted; ) {
      left -= 1;
      await onePayment(subject, receiver, run);
    }
  };
  const began = performance.now();
  await Promise.all(Array.from({ length: Math.min(load.concurrency, load.payments) }, loop));
  load.signal.throwIfAborted();
  run.elapsedMs = performance.now() - began;
  return run;
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
