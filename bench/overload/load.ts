import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { PAYMENT } from '../product-subject';

/** Answer to a create. */
export interface Answered {
  status: number;
  ms: number;
}

type Door = ReturnType<typeof openDoor>;

/** The API as a caller meets it that takes no answer for no, and asks for nothing twice. */
export function openDoor(url: string, apiKey: string) {
  const agent = new Agent();
  const body = JSON.stringify(PAYMENT);
  return {
    create: async (): Promise<Answered> => {
      const began = performance.now();
      const answer = await request(`${url}/v1/payments`, {
        dispatcher: agent,
        method: 'POST',
        headers: {
          authorization: `Bearer ${apiKey}`,
          'content-type': 'application/json',
          'idempotency-key': randomUUID(),
        },
        body,
      });
      await answer.body.dump();
      return { status: answer.statusCode, ms: performance.now() - began };
    },
    close: () => agent.close(),
  };
}

interface Closed {
  door: Door;
  concurrency: number;
  signal: AbortSignal;
  /** Most creates; none when not given. */
  count?: number;
  /** Time after which none begins; none when not given. */
  seconds?: number;
}

/** Creates one after the other, so many at once. */
export async function atCapacity({ door, concurrency, signal, count, seconds }: Closed) {
  const answers: Answered[] = [];
  const began = performance.now();
  const until = began + (seconds ?? Number.POSITIVE_INFINITY) * 1_000;
  let left = count ?? Number.POSITIVE_INFINITY;
  const loop = async () => {
    for (; left > 0 && performance.now() < until && !signal.aborted; ) {
      left -= 1;
      answers.push(await door.create());
    }
  };
  await Promise.all(Array.from({ length: concurrency }, loop));
  return { answers, seconds: (performance.now() - began) / 1_000 };
}

interface Open {
  door: Door;
  perSecond: number;
  seconds: number;
  signal: AbortSignal;
}

/** Creates at a rate, whatever becomes of those before. */
export async function atRate({ door, perSecond, seconds, signal }: Open) {
  const creates: Promise<Answered>[] = [];
  const began = performance.now();
  const total = Math.ceil(perSecond * seconds);
  for (let n = 0; n < total && !signal.aborted; n += 1) {
    const due = began + (n / perSecond) * 1_000;
    await sleep(Math.max(0, due - performance.now()), undefined, { signal });
    creates.push(door.create());
  }
  const answers = await Promise.all(creates);
  return { answers, seconds: (performance.now() - began) / 1_000 };
}
