import type { PartName } from '../../stack/state-file';
import { eventually } from '../support/http';
import { type Load, STEPS_PER_PAYMENT } from './load';
import type { RunningStack } from './running-stack';

/** Generous: two cores may be busy with other tests. */
const RECOVERY_MS_MAX = 90_000;
const STEPS_MS_MAX = 120_000;

/** Each part twice and the bank once, in two orders; payments are under way at every kill. */
export const KILLS: readonly PartName[] = [
  ...(['api', 'worker', 'mongodb', 'temporal'] as const),
  'sandbox_bank',
  ...(['mongodb', 'api', 'temporal', 'worker'] as const),
];

export interface Kill {
  part: PartName;
  /** Payments that had been begun and not ended at that moment. */
  inFlight: number;
  /** From the kill to a new process in `stack.json` and 200 on `/readyz`. */
  readyMs: number;
  /** From the kill until a request sent after it was carried out. */
  servedMs: number;
}

/**
 * Kills one part after the other with SIGKILL, each once the one before it has recovered. The work
 * is spread over all kills: of each batch much is done when the next part is killed, every time
 * somewhere else in it, and the next batch begins while that part is away.
 */
export async function wreak(stack: RunningStack, load: Load, batch: number): Promise<Kill[]> {
  const kills: Kill[] = [];
  load.release(batch);
  for (const [index, part] of KILLS.entries()) {
    const share = 0.25 + 0.1 * ((index * 3) % 5);
    const steps = Math.floor((index + share) * batch * STEPS_PER_PAYMENT);
    await eventually(
      `some work before ${part} is killed`,
      async () => load.steps() >= steps,
      STEPS_MS_MAX,
    );
    kills.push(await killAndRecover(stack, load, part, batch));
  }
  return kills;
}

async function killAndRecover(
  stack: RunningStack,
  load: Load,
  part: PartName,
  batch: number,
): Promise<Kill> {
  const victim = stack.state()?.[part]?.pid;
  if (victim == null) throw new Error(`${part} has no process to kill.`);
  const inFlight = load.inFlight();
  process.kill(victim, 'SIGKILL');
  const killedAt = performance.now();
  // These begin while the part is away.
  load.release(batch);
  const since = () => Math.round(performance.now() - killedAt);
  await eventually(
    `a new ${part} process`,
    async () => {
      const pid = stack.state()?.[part]?.pid;
      return pid != null && pid !== victim;
    },
    RECOVERY_MS_MAX,
  );
  await eventually(`/readyz after ${part}`, () => allReady(stack), RECOVERY_MS_MAX);
  const readyMs = since();
  await eventually(
    `work done after ${part} was killed`,
    async () => load.lastGoodRequestAt() > killedAt,
    RECOVERY_MS_MAX,
  );
  return { part, inFlight, readyMs, servedMs: since() };
}

export async function allReady({ url, bankUrl }: RunningStack): Promise<boolean> {
  const answers = await Promise.all([isOk(`${url}/readyz`), isOk(`${bankUrl}/healthz`)]);
  return answers.every((ok) => ok);
}

async function isOk(url: string): Promise<boolean> {
  try {
    return (await fetch(url, { signal: AbortSignal.timeout(5_000) })).status === 200;
  } catch {
    return false;
  }
}
