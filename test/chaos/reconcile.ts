import { z } from 'zod';
import { eventually } from '../support/http';
import type { RunningStack } from './running-stack';

/** A callback that was cut off comes again within half a minute. */
const AGREED_MS_MAX = 120_000;

const Files = z.object({ data: z.array(z.object({ file: z.string(), lines: z.number() })) });
const Rows = z.array(z.unknown());
const Reconciliation = z.object({
  matched: z.number(),
  ours_only: Rows,
  theirs_only: Rows,
  different: Rows,
});
const TrialBalance = z.object({ findings: Rows });

const SANDBOX = ['--connector', 'sandbox', '--env', 'sandbox'];

/**
 * Holds the ledger against the book of the sandbox bank: by the command lines, all that the bank
 * moved has one entry, all that was posted has moved, and the trial balance has no finding.
 * @param explain finds what a test did to a resource; its ID without dashes
 * @returns how many movements the bank made
 */
export async function reconcile(
  stack: RunningStack,
  explain: (reference: string) => unknown = () => undefined,
): Promise<number> {
  let last: Awaited<ReturnType<typeof compare>> | undefined;
  const agree = async () => {
    last = await compare(stack);
    return last.open.length === 0;
  };
  await eventually('bank and ledger to agree', agree, AGREED_MS_MAX).catch(() => undefined);
  const ids =
    JSON.stringify(last?.open)
      .replaceAll('-', '')
      .match(/[0-9a-f]{32}/g) ?? [];
  expect({ open: last?.open, histories: [...new Set(ids)].flatMap(explain) }).toEqual({
    open: [],
    histories: [],
  });
  return last?.movements ?? 0;
}

async function compare({ cli }: RunningStack) {
  const { data } = Files.parse(await cli('sandbox', 'statement'));
  for (const { file } of data) await cli('statement', 'import', file, ...SANDBOX);
  const shown = Reconciliation.parse(await cli('reconciliation', 'show', ...SANDBOX));
  const trial = TrialBalance.parse(await cli('ledger', 'trial-balance', '--env', 'sandbox'));
  const movements = data.reduce((sum, { lines }) => sum + lines, 0);
  const { ours_only, theirs_only, different } = shown;
  return { movements, open: [...ours_only, ...theirs_only, ...different, ...trial.findings] };
}
