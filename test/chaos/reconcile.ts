import { eventually } from '../support/eventually';
import type { RunningStack } from './running-stack';

/** A callback that was cut off comes again within half a minute. */
const AGREED_MS_MAX = 120_000;

const SANDBOX = ['--connector', 'sandbox', '--env', 'sandbox'];

/**
 * Holds the ledger against the book of the sandbox bank: by the command lines, all that the bank
 * moved has one entry, all that was posted has moved, and the trial balance has no finding but money
 * in suspense, about which nobody has decided.
 * @param explain finds what a test did to a resource; its ID without dashes
 * @returns how many movements the bank made
 */
export async function reconcile(
  { cli }: RunningStack,
  explain: (reference: string) => unknown = () => undefined,
): Promise<number> {
  let movements = 0;
  let open: unknown[] | undefined;
  const agree = async () => {
    const files: { file: string; lines: number }[] = (await cli('sandbox', 'statement')).data;
    for (const { file } of files) await cli('statement', 'import', file, ...SANDBOX);
    const [shown, { findings }] = await Promise.all([
      cli('reconciliation', 'show', ...SANDBOX),
      cli('ledger', 'trial-balance', '--env', 'sandbox'),
    ]);
    movements = files.reduce((sum, { lines }) => sum + lines, 0);
    const differences = findings.filter(({ code }: { code: string }) => code !== 'suspense');
    open = [...shown.ours_only, ...shown.theirs_only, ...shown.different, ...differences];
    return open.length === 0;
  };
  await eventually('bank and ledger to agree', agree, AGREED_MS_MAX).catch(() => undefined);
  const ids = (JSON.stringify(open) ?? '').replaceAll('-', '').match(/[0-9a-f]{32}/g) ?? [];
  const histories = [...new Set(ids)].flatMap(explain);
  expect({ open, histories }).toEqual({ open: [], histories: [] });
  return movements;
}
