import { setTimeout as sleep } from 'node:timers/promises';
import { readMemory } from '../measure/process';
import { startReceiver } from '../measure/receiver';
import { percentiles } from '../measure/statistics';
import type { Options } from '../options';
import { createApi, openAccount } from '../product/api';
import { PAYMENT } from '../product/requests';
import { buildRow, type Report, type Row } from '../report';
import type { Setting } from '../servers/config';
import { type Stack, withStack } from '../servers/stack';

const WARM_UP = 60;
const CAPACITY_SECONDS = 20;
const OVERLOAD_SECONDS = 30;
/** Creates requested in the time of one that the service can make. */
const FACTOR = 3;
const MEMORY_MS = 500;

interface Result {
  responses: { status: number; ms: number }[];
  seconds: number;
}

/**
 * Measures creates at the service's capacity, and at three times that rate, of which the API refuses
 * what exceeds its limit.
 */
export async function runOverload({ concurrency }: Options, setting: Setting): Promise<Report> {
  const receiver = await startReceiver();
  try {
    return await withStack(setting, { parts: 'product' }, async (stack) => {
      const { apiKey } = await openAccount(stack.env, receiver, setting);
      return await measure(stack, apiKey, concurrency, setting);
    });
  } finally {
    receiver.close();
  }
}

async function measure(
  { url, pids }: Stack,
  apiKey: string,
  concurrency: number,
  { progress, signal }: Setting,
): Promise<Report> {
  const api = createApi(url, apiKey);
  const create = async () => {
    const began = performance.now();
    const { status } = await api.post('/v1/payments', PAYMENT);
    return { status, ms: performance.now() - began };
  };
  const createInLoops = async (isOver: (created: number, seconds: number) => boolean) => {
    const responses: Result['responses'] = [];
    const began = performance.now();
    const elapsed = () => (performance.now() - began) / 1_000;
    const loop = async () => {
      while (!isOver(responses.length, elapsed()) && !signal.aborted)
        responses.push(await create());
    };
    await Promise.all(Array.from({ length: concurrency }, loop));
    return { responses, seconds: elapsed() };
  };
  /** Creates at a rate, whatever the responses to those before. */
  const createAtRate = async (perSecond: number): Promise<Result> => {
    const creates: ReturnType<typeof create>[] = [];
    const began = performance.now();
    const count = Math.ceil(perSecond * OVERLOAD_SECONDS);
    for (let n = 0; n < count && !signal.aborted; n += 1) {
      const due = began + (n / perSecond) * 1_000;
      await sleep(Math.max(0, due - performance.now()), undefined, { signal });
      creates.push(create());
    }
    const responses = await Promise.all(creates);
    return { responses, seconds: (performance.now() - began) / 1_000 };
  };
  try {
    await progress.during('Warming up', () => createInLoops((created) => created >= WARM_UP));
    const capacity = await progress.during('At capacity', () =>
      createInLoops((_created, seconds) => seconds >= CAPACITY_SECONDS),
    );
    const requested = FACTOR * acceptedPerSecond(capacity);
    const memory = watchMemory(pids);
    const overload = await progress
      .during(`At ${requested.toFixed(1)} a second`, () => createAtRate(requested))
      .finally(memory.stop);
    return {
      columns: ['at capacity', `${FACTOR} times the rate`],
      rows: [
        buildRow('creates requested/s', acceptedPerSecond(capacity), requested),
        ...responseRows(capacity, overload),
        ...memory.rows(),
      ],
      notes: [`${concurrency} creates in flight at capacity`],
    };
  } finally {
    await api.close();
  }
}

function pickTimes({ responses }: Result, isAccepted: boolean): number[] {
  return responses.filter(({ status }) => (status === 201) === isAccepted).map(({ ms }) => ms);
}

function acceptedPerSecond(result: Result): number {
  return pickTimes(result, true).length / result.seconds;
}

function responseRows(capacity: Result, overload: Result): Row[] {
  const both = [capacity, overload] as const;
  const [base, over] = both.map((result) => percentiles(pickTimes(result, true)));
  const [baseRefused, overRefused] = both.map((result) => {
    const times = pickTimes(result, false);
    return { share: (100 * times.length) / result.responses.length, times };
  });
  const refusals = overRefused?.times ?? [];
  return [
    buildRow('creates accepted/s', acceptedPerSecond(capacity), acceptedPerSecond(overload)),
    buildRow('refused, %', baseRefused?.share ?? null, overRefused?.share ?? null),
    buildRow('accepted create, ms', base ?? null, over ?? null),
    buildRow('accepted create, p99', base?.p99 ?? null, over?.p99 ?? null),
    buildRow('refusal, ms', null, refusals.length === 0 ? null : percentiles(refusals)),
  ];
}

function watchMemory(pids: Stack['pids']) {
  const read = (name: string) => readMemory(pids[name] ?? 0);
  const samples = ['api', 'worker'].map((name) => ({ name, start: read(name), max: read(name) }));
  const timer = setInterval(() => {
    for (const sample of samples) sample.max = Math.max(sample.max ?? 0, read(sample.name) ?? 0);
  }, MEMORY_MS);
  return {
    rows: () =>
      samples.map(({ name, start, max }) => buildRow(`memory of ${name}, MiB`, start, max)),
    stop: () => clearInterval(timer),
  };
}
