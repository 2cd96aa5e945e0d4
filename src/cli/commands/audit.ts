import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { z } from 'zod';
import { AUDITED } from '../../domain/audit-log';
import { counted } from '../../domain/counted';
import { type Env, isLive } from '../../domain/environment';
import type { Actor, StoredLine } from '../../store/audit-log';
import { reasonOf } from '../../temporal/in-time';
import { findAccount } from '../account';
import { CHAIN_FAULTS, type ChainsCheck, type KeptHead, verifyChains } from '../audit-chains';
import type { CliContext } from '../context';
import { CliFailure } from '../failure';
import { envOption, parseCursor, parseLimit } from '../options';
import { table, when } from '../output';

const LIMIT_MAX = 1_000;
const LIMIT_DEFAULT = 100;

const EXAMPLES = {
  group: `
Examples:
  npm run -s cli -- audit list --account acct_… --since 2026-03-01T00:00:00Z
  npm run -s cli -- audit verify`,
  list: `
Example:
  npm run -s cli -- audit list --account acct_… --json
  {"data": [{"id", "at", "account_id", "livemode", "actor", "act", "target", "before", "after",
  "seq", "hash"}], "has_more"}`,
  verify: `
Each line holds the hash of the line before it, so that none can be changed, added between or taken
out unseen. Whoever may write to the database could make a whole chain anew: keep the output of
--json elsewhere, and give it to --against later, so that what it saw must still be there. Exit code
1 when a chain is broken.

Example:
  npm run -s cli -- audit verify --json > heads.json
  npm run -s cli -- audit verify --against heads.json --json
  {"lines", "chains", "unchained", "broken": [{"chain", "seq", "line_id", "fault"}],
  "heads": [{"chain", "seq", "hash"}]}`,
};

interface ListOptions {
  account?: string;
  env?: Env;
  since?: string;
  limit: number;
}

export function addAuditCommands(program: Command, context: CliContext): void {
  const group = program
    .command('audit')
    .description('who changed what: the audit log, and whether it is whole')
    .addHelpText('after', EXAMPLES.group);
  group
    .command('list')
    .description('list the lines of the audit log, newest first')
    .option('--account <id>', 'only of this account')
    .addOption(envOption().makeOptionMandatory(false))
    .option('--since <time>', 'only from this time on', parseCursor)
    .option('--limit <n>', `how many, 1 to ${LIMIT_MAX}`, parseLimit(LIMIT_MAX), LIMIT_DEFAULT)
    .addHelpText('after', EXAMPLES.list)
    .action((options: ListOptions) => list(context, options));
  group
    .command('verify')
    .description('follow the chains of the audit log, and tell the first broken line of each')
    .option('--against <file>', 'output of an earlier --json, whose lines must still be there')
    .addHelpText('after', EXAMPLES.verify)
    .action((options: { against?: string }) => verify(context, options));
}

async function list(
  context: CliContext,
  { account, env, since, limit }: ListOptions,
): Promise<void> {
  const stores = await context.stores();
  const account_id = account && (await findAccount(stores, account))._id;
  const livemode = env === undefined ? undefined : isLive(env);
  const filter = { account_id, livemode, since, limit: limit + 1 };
  const found = await stores.auditLog.list(filter);
  const page = found.slice(0, limit);
  const has_more = found.length > limit;
  const rows = page.map((line) => [
    when(line.at),
    nameOf(line.actor),
    AUDITED[line.act],
    line.target ?? '-',
    line.account_id ?? '-',
  ]);
  const text = table(['AT', 'WHO', 'WHAT', 'TARGET', 'ACCOUNT'], rows, 'Nothing was changed.');
  context.print({
    json: { data: page.map(present), has_more },
    text: has_more ? `${text}\n\nThere are more.` : text,
  });
}

function present({ _id: id, prev: _, ...line }: StoredLine) {
  return { id, ...line };
}

function nameOf(actor: Actor): string {
  if (actor.door === 'dashboard') return actor.email;
  if (actor.door === 'api') return `${actor.key_id} (API)`;
  if (actor.door === 'workflow') return `${actor.operator} (Temporal)`;
  const who = `${actor.system_user} at ${actor.host}`;
  return actor.operator === undefined ? who : `${actor.operator} (${who})`;
}

async function verify(context: CliContext, { against }: { against?: string }): Promise<void> {
  const kept = against === undefined ? [] : readKept(against);
  const stores = await context.stores();
  const check = await verifyChains(stores.auditLog, kept);
  context.print({ json: check, text: report(check) });
  if (check.broken.length === 0) return;
  // The report is printed already; this sets the exit code to 1.
  const chains = counted(check.broken.length, 'broken chain');
  throw new CliFailure('audit_log_broken', `The audit log has ${chains}.`);
}

function report({ lines, chains, unchained, broken }: ChainsCheck): string {
  const before =
    unchained === 0 ? '' : ` ${counted(unchained, 'line')} from before there were any.`;
  const scope = `${counted(lines, 'line')} in ${counted(chains, 'chain')}.${before}`;
  if (broken.length === 0) return `${scope} Nothing is broken.`;
  const rows = broken.map(({ chain, seq, line_id, fault }) => [
    chain,
    String(seq),
    line_id ?? '-',
    CHAIN_FAULTS[fault],
  ]);
  return `${scope} First broken line of each chain:\n\n${table(['CHAIN', 'PLACE', 'LINE', 'FAULT'], rows, '')}`;
}

const Kept = z.object({
  heads: z.array(z.object({ chain: z.string(), seq: z.int().positive(), hash: z.string() })),
});

/** @throws CliFailure `file_invalid` */
function readKept(path: string): KeptHead[] {
  try {
    return Kept.parse(JSON.parse(readFileSync(path, 'utf8'))).heads;
  } catch (error) {
    const message = `${path} is not what \`audit verify --json\` printed: ${reasonOf(error)}`;
    throw new CliFailure('file_invalid', message);
  }
}
