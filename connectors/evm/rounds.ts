import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../../src/log';
import type { Evm } from './evm';
import { NodeFailure } from './node-answers';

/** Wait after the first failure; each further one doubles it. */
const TROUBLE_MS = 1_000;
const TROUBLE_MS_MAX = 60_000;

export interface RoundsDeps {
  evm: Pick<Evm, 'begin' | 'round'>;
  /** Time between rounds while nothing is due. */
  pollMs: number;
  signal: AbortSignal;
  log: Logger;
}

/**
 * Begins as soon as the node answers.
 * @throws Error in words when what it answers does not fit the configuration
 */
export async function beginPatiently({ evm, signal, log }: RoundsDeps): Promise<void> {
  for (let failures = 0; !signal.aborted; failures += 1) {
    try {
      await evm.begin();
      return;
    } catch (err) {
      if (!(err instanceof NodeFailure)) throw err;
      log.warn({ err }, 'the node does not answer, tried again later');
      await rest(trouble(failures), signal);
    }
  }
}

/** Works round after round until it is stopped; a failed one is followed by a longer wait. */
export async function workInRounds({ evm, pollMs, signal, log }: RoundsDeps): Promise<void> {
  let failures = 0;
  while (!signal.aborted) {
    let wait = pollMs;
    try {
      if (await evm.round()) wait = 0;
      failures = 0;
    } catch (err) {
      wait = trouble(failures);
      failures += 1;
      const text = 'the round over the chain failed, tried again later';
      if (failures > 1) log.error({ err, attempt: failures }, text);
      else log.warn({ err }, text);
    }
    await rest(wait, signal);
  }
}

function trouble(failures: number): number {
  return Math.min(TROUBLE_MS * 2 ** Math.min(failures, 10), TROUBLE_MS_MAX);
}

async function rest(ms: number, signal: AbortSignal): Promise<void> {
  if (ms === 0) return;
  // An abort ends the rest early.
  await sleep(ms, undefined, { signal }).catch(() => undefined);
}
