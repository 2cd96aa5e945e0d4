import { eventually } from '../support/eventually';
import { useFixture } from '../support/fixture';
import type { Answer } from '../support/http';
import { createPatientClient, type PatientClient } from './patient-client';
import { RECOVERY_MS_MAX, type RunningStack, type StackOptions, startStack } from './running-stack';

const KILLS = 3;

export interface RaceOptions {
  onKill?: () => void;
  every?: number;
  killsMax?: number;
  waitMs?: number;
}

export const RECIPIENT = {
  ...{ type: 'bank_account', first_name: 'Jan', last_name: 'Jansen', iban: 'NL91ABNA0417164300' },
  ...{ address_line1: 'Damrak 1', city: 'Amsterdam', postal_code: '1012 LG' },
};

/** Opens an account with a sandbox key by the command line, and its client. */
export async function openMerchant(stack: RunningStack, name: string, signal: AbortSignal) {
  const opened = await stack.cli('account', 'create', '--name', name);
  const client = createPatientClient(stack, opened.sandbox_key, signal);
  return { client, account: String(opened.account_id), opened };
}

/** A stack and a merchant of it for one file's tests. */
export function useMerchant(name: string, options: StackOptions = {}) {
  const over = new AbortController();
  return useFixture(
    async () => {
      const stack = await startStack(options);
      try {
        const open = (of: string) => openMerchant(stack, of, over.signal);
        return { stack, openOther: open, ...(await open(name)) };
      } catch (error) {
        await stack.destroy();
        throw error;
      }
    },
    async ({ stack }) => {
      over.abort();
      await stack.destroy();
    },
  );
}

/** The id of what a call made, or the code of its refusal. */
export function readResult(answer: Answer | undefined): string {
  return answer?.status === 201 ? answer.body.id : answer?.body.error.code;
}

interface Row {
  id: string;
  amount: number;
  status: string;
}

export async function listAll({ get }: PatientClient, list: string): Promise<Row[]> {
  const found: Row[] = [];
  for (let before = ''; ; ) {
    const { data, next_cursor } = (await get(`${list}?limit=100${before}`)).body;
    found.push(...data);
    if (next_cursor === null) return found;
    before = `&created_before=${encodeURIComponent(next_cursor)}`;
  }
}

/**
 * Runs all at once while workers are killed, each once more was accepted, while others wait.
 * @returns the answers, and how many kills fell meanwhile
 */
export async function raceWithKills<T>(
  stack: RunningStack,
  calls: readonly Promise<T>[],
  count: () => Promise<number>,
  { onKill, every = 1, killsMax = KILLS, waitMs = RECOVERY_MS_MAX }: RaceOptions = {},
): Promise<{ answers: T[]; kills: number }> {
  let isOver = false;
  const all = Promise.all(calls).finally(() => {
    isOver = true;
  });
  const killWorkers = async (): Promise<number> => {
    let before = 0;
    for (let kills = 0; kills < killsMax; kills += 1) {
      const hasMore = async () => isOver || (await count()) >= before + every;
      await eventually('something more to be accepted', hasMore, waitMs);
      if (isOver) return kills;
      const isBack = stack.kill('worker');
      before = await count();
      onKill?.();
      await eventually('a new worker', isBack, RECOVERY_MS_MAX);
    }
    return killsMax;
  };
  const [answers, kills] = await Promise.all([all, killWorkers()]);
  return { answers, kills };
}

/** Differences that `ledger verify` finds; there must be none. */
export async function findDifferences(stack: RunningStack): Promise<unknown[]> {
  return (await stack.cli('ledger', 'verify')).data.differences;
}

interface Balance {
  balance_account: string;
  currency: string;
  available: number;
  reserved: number;
}

export async function readBalance(
  stack: RunningStack,
  account: string,
  name: string,
  currency = 'EUR',
) {
  const shown = await stack.cli('balance', 'show', account, '--env', 'sandbox');
  const found: Balance | undefined = shown.data.find(
    (row: Balance) => row.balance_account === name && row.currency === currency,
  );
  return { available: found?.available ?? 0, reserved: found?.reserved ?? 0 };
}
