import type { PartName } from '../../stack/state-file';
import { eventually } from '../support/http';
import { type Load, STEPS_PER_PAYMENT } from './load';
import { RECOVERY_MS_MAX, type RunningStack } from './running-stack';

/** Generous: two cores may be busy with other tests. */
const STEPS_MS_MAX = 120_000;

/**
 * Each part twice and the bank once, in two orders; payments are under way at every kill. The worker
 * is not the last: what it was delivering comes again while the others are killed.
 */
export const KILLS: readonly PartName[] = [
  ...(['api', 'worker', 'mongodb', 'temporal'] as const),
  'sandbox_bank',
  ...(['worker', 'temporal', 'mongodb', 'api'] as const),
];

/**
 * Kills one part after the other with SIGKILL, each once the one before it has recovered. The work
 * is spread over all kills: of each batch much is done when the next part is killed, every time
 * somewhere else in it, and the next batch begins while that part is away.
 * @returns payments at each kill that had begun and not ended
 */
export async function wreak(stack: RunningStack, load: Load, batch: number): Promise<number[]> {
  const inFlight: number[] = [];
  load.release(batch);
  for (const [index, part] of KILLS.entries()) {
    const share = 0.25 + 0.1 * ((index * 3) % 5);
    const steps = Math.floor((index + share) * batch * STEPS_PER_PAYMENT);
    const hasWorked = async () => load.countSteps() >= steps;
    await eventually(`some work before ${part} is killed`, hasWorked, STEPS_MS_MAX);
    inFlight.push(load.countInFlight());
    const isBack = stack.kill(part);
    const killedAt = performance.now();
    // These begin while the part is away.
    load.release(batch);
    await eventually(`a new ${part}`, isBack, 2 * RECOVERY_MS_MAX);
    const isServed = async () => load.lastGoodRequestAt() > killedAt;
    await eventually(`work done after ${part} was killed`, isServed, RECOVERY_MS_MAX);
  }
  return inFlight;
}
