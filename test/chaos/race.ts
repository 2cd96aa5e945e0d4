import { z } from 'zod';
import { eventually } from '../support/http';
import { allReady } from './nemesis';
import type { Answer, PatientClient } from './patient-client';
import type { RunningStack } from './running-stack';

const KILLS = 3;
const RECOVERY_MS_MAX = 90_000;

const Created = z.object({ account_id: z.string(), sandbox_key: z.string() });
const Made = z.object({ id: z.string(), amount: z.number(), status: z.string() });
export type Made = z.infer<typeof Made>;
const Page = z.object({ data: z.array(Made), next_cursor: z.string().nullable() });
const Refused = z.object({ error: z.object({ code: z.string() }) });
const Verified = z.object({
  data: z.object({ postings: z.number(), differences: z.array(z.unknown()) }),
});
const Balances = z.object({
  data: z.array(
    z.object({
      balance_account: z.string(),
      currency: z.string(),
      available: z.number(),
      reserved: z.number(),
    }),
  ),
});

/** An account with a sandbox key, made with the real command line. */
export async function openAccount(stack: RunningStack, name: string) {
  const made = Created.parse(await stack.cli('account', 'create', '--name', name));
  return { account: made.account_id, key: made.sandbox_key };
}

/** Resource that a 201 made. */
export function madeBy(answer: Answer | undefined): Made {
  return Made.parse(JSON.parse(answer?.text ?? ''));
}

/** The id of what a call made, or the code of its refusal. */
export function told(answer: Answer | undefined): string {
  const body: unknown = JSON.parse(answer?.text ?? '');
  return answer?.status === 201 ? Made.parse(body).id : Refused.parse(body).error.code;
}

/** All rows of a list, page by page. */
export async function listed(client: PatientClient, list: string): Promise<Made[]> {
  const found: Made[] = [];
  let before = '';
  for (let more = true; more; ) {
    const answer = await client.insist({ method: 'GET', path: `${list}?limit=100${before}` });
    const { data, next_cursor } = Page.parse(JSON.parse(answer.text));
    found.push(...data);
    before = `&created_before=${encodeURIComponent(next_cursor ?? '')}`;
    more = next_cursor !== null;
  }
  return found;
}

/**
 * Runs all at once while workers are killed; the answers, and how many kills fell meanwhile.
 * @param onKill called as each kill falls, to let go calls that waited for it
 */
export async function raceWithKills<T>(
  stack: RunningStack,
  calls: readonly Promise<T>[],
  count: () => Promise<number>,
  onKill = () => {},
): Promise<{ answers: T[]; kills: number }> {
  let answered = false;
  const all = Promise.all(calls).finally(() => {
    answered = true;
  });
  const killed = killWorkers(stack, { isOver: () => answered, count, onKill });
  const [answers, kills] = await Promise.all([all, killed]);
  return { answers, kills };
}

interface Race {
  isOver: () => boolean;
  /** Counts what was accepted so far. */
  count: () => Promise<number>;
  onKill: () => void;
}

/** Each kill falls when more has been accepted, while others wait; says how many fell. */
async function killWorkers(stack: RunningStack, { isOver, count, onKill }: Race): Promise<number> {
  let before = 0;
  for (let kills = 0; kills < KILLS; kills += 1) {
    const more = async () => isOver() || (await count()) > before;
    await eventually('something more to be accepted', more, RECOVERY_MS_MAX);
    if (isOver()) return kills;
    const victim = stack.state()?.worker.pid;
    if (victim == null) throw new Error('The worker has no process to kill.');
    process.kill(victim, 'SIGKILL');
    before = await count();
    onKill();
    const back = async () => {
      const pid = stack.state()?.worker.pid;
      return pid != null && pid !== victim && (await allReady(stack));
    };
    await eventually('a new worker', back, RECOVERY_MS_MAX);
  }
  return KILLS;
}

/** Differences that `ledger verify` finds; there must be none. */
export async function differences(stack: RunningStack): Promise<unknown[]> {
  return Verified.parse(await stack.cli('ledger', 'verify')).data.differences;
}

/** Balance in EUR, in minor units. */
export async function readBalance(stack: RunningStack, account: string, name: string) {
  const shown = Balances.parse(await stack.cli('balance', 'show', account, '--env', 'sandbox'));
  const found = shown.data.find((row) => row.balance_account === name && row.currency === 'EUR');
  return { available: found?.available ?? 0, reserved: found?.reserved ?? 0 };
}
