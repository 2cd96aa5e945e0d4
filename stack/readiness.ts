import { setTimeout as sleep } from 'node:timers/promises';
import { describeError, OperationalError } from '../src/base/errors';
import type { Task } from './terminal';

const POLL_MS = 150;
const CALL_MS_MAX = 3_000;
const ANSWER_LENGTH_MAX = 200;

export interface Probe {
  name: string;
  url: string;
}

/** @throws OperationalError naming the probes that do not all answer 200 in one round */
export async function waitUntilReady(
  probes: readonly Probe[],
  timeoutMs: number,
  task: Task,
  signal: AbortSignal,
): Promise<void> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    const missing = (await Promise.all(probes.map(whyNotReady))).filter((why) => why !== undefined);
    signal.throwIfAborted();
    if (missing.length === 0) return;
    task.say(`waiting for ${missing.join('; ')}`);
    if (Date.now() > deadline) {
      throw new OperationalError(`Not ready in time: ${missing.join('; ')}`);
    }
    await sleep(POLL_MS, undefined, { signal });
  }
}

async function whyNotReady({ name, url }: Probe): Promise<string | undefined> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(CALL_MS_MAX) });
    const text = await response.text();
    if (response.status === 200) return undefined;
    return `${name} (${response.status} ${text.slice(0, ANSWER_LENGTH_MAX)})`;
  } catch (error) {
    return `${name} (${describeError(error)})`;
  }
}
