import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../../src/base/log';
import type { Evm } from './evm';
import { NodeFailure } from './node-answers';

const BACKOFF_MS = 1_000;
const BACKOFF_MS_MAX = 60_000;
const GRACE_MS = 10_000;

export interface RoundsDeps {
  evm: Pick<Evm, 'begin' | 'round'>;
  pollMs: number;
  signal: AbortSignal;
  log: Logger;
  graceMs?: number;
}

/** @throws Error if the node's answer does not fit the configuration */
export async function beginWithRetry(deps: RoundsDeps): Promise<void> {
  const { evm, signal, log } = deps;
  for (let failures = 0; !signal.aborted; failures += 1) {
    try {
      await withGrace(deps, evm.begin());
      return;
    } catch (err) {
      if (!(err instanceof NodeFailure)) throw err;
      log.warn({ err }, 'the node does not answer, tried again later');
      await pause(getBackoffMs(failures), signal);
    }
  }
}

export async function runRounds(deps: RoundsDeps): Promise<void> {
  const { evm, pollMs, signal, log } = deps;
  let failures = 0;
  while (!signal.aborted) {
    let wait = pollMs;
    try {
      if (await withGrace(deps, evm.round())) wait = 0;
      failures = 0;
    } catch (err) {
      wait = getBackoffMs(failures);
      failures += 1;
      const text = 'the round over the chain failed, tried again later';
      if (failures > 1) log.error({ err, attempt: failures }, text);
      else log.warn({ err }, text);
    }
    await pause(wait, signal);
  }
}

/** @returns undefined if the work outlasts the stop */
async function withGrace<T>(
  { signal, graceMs = GRACE_MS }: RoundsDeps,
  work: Promise<T>,
): Promise<T | undefined> {
  const over = new AbortController();
  const stopped = new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { signal: over.signal });
  });
  const timeout = stopped.then(() => pause(graceMs, over.signal)).then(() => undefined);
  return await Promise.race([work, timeout]).finally(() => over.abort());
}

function getBackoffMs(failures: number): number {
  return Math.min(BACKOFF_MS * 2 ** Math.min(failures, 10), BACKOFF_MS_MAX);
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (ms === 0) return;
  await sleep(ms, undefined, { signal }).catch(() => undefined);
}
