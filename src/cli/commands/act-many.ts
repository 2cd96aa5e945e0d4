import { z } from 'zod';
import type { CallbackResource } from '../../domain/banks/callback';
import { omitUndefined } from '../../domain/defined';
import { toEnv } from '../../domain/environment';
import { ServiceError } from '../../domain/errors';
import { amountInJson, formatMoney, isCurrency } from '../../domain/money/money';
import { type ApprovalRequired, isApprovalRequired } from '../../domain/operators/approval';
import {
  actOnMany,
  FOUND_MAX,
  findMany,
  type Outcome,
  type QueryResult,
  requestForMany,
} from '../../service/operators/act';
import { assertNamed, openActing, printApprovalRequired } from '../acting-operator';
import type { CliContext } from '../context';
import { explain } from '../failure';
import { wholeNumber, words } from '../options';
import { table } from '../output';

/** It may name each of them by its workflow's id. */
const QUERY_MAX = 60_000;

export const MANY_OPTIONS = {
  query: words(QUERY_MAX)
    .optional()
    .describe("instead of an id: those that a query of Temporal's list of workflows finds"),
  plan: z.boolean().optional().describe('with --query: list them, and do nothing'),
  apply: z.boolean().optional().describe('with --query: act on them'),
  expect: wholeNumber(0, FOUND_MAX)
    .optional()
    .describe('with --apply: do nothing unless the query finds as many')
    .meta({ placeholder: 'n' }),
};

type ManyOptions = z.output<z.ZodObject<typeof MANY_OPTIONS>>;

interface ManyActs {
  what: string;
  operator: string | undefined;
  reason: string | undefined;
  approved_by: string | undefined;
  hours: number | undefined;
}

/**
 * Lists the resources that a query finds, or acts on them.
 * @throws ServiceError `plan_changed` unless as many were found as expected; `environments_mixed`;
 *   `not_all_done` after it has printed what was done; those of `findMany`
 */
export async function actByQuery(
  context: CliContext,
  kind: CallbackResource,
  { query = '', plan, expect }: ManyOptions,
  acts: ManyActs,
): Promise<void> {
  const { what, operator } = acts;
  if (!plan) assertNamed(context, operator);
  const found = await findMany(
    await context.withTemporal(await context.readDeps()),
    kind,
    what,
    query,
  );
  const about = { query, act: what, applied: !plan, found: found.length };
  if (plan) return printPlan(context, found, about);
  if (expect !== undefined && expect !== found.length) {
    const message = `The query finds ${found.length} now, not ${expect}, so nothing was done: --plan lists them.`;
    throw new ServiceError('plan_changed', message);
  }
  if (new Set(found.flatMap(({ resource }) => resource?.livemode ?? [])).size > 1) {
    const message =
      'The query finds live and sandbox ones, so nothing was done: add AND ServiceLivemode = true, or false.';
    throw new ServiceError('environments_mixed', message);
  }
  const open = found.filter(({ refusal }) => refusal === null);
  const outcomes = await applyTo(context, kind, open, acts);
  if (isApprovalRequired(outcomes)) return printApprovalRequired(context, outcomes);
  const byId = new Map(outcomes.map((outcome) => [outcome.id, outcome]));
  const rows = found.map((each) => presentResult(each, byId.get(each.id)));
  const counts = Object.fromEntries(
    RESULTS.map((name) => [name, rows.filter(({ result }) => result === name).length]),
  );
  const notDone = rows.filter(({ result }) => result !== 'done');
  const summary = RESULTS.filter((name) => name === 'done' || counts[name] !== 0)
    .map((name) => `${name.replaceAll('_', ' ')}: ${counts[name]}`)
    .join(', ');
  const cells = notDone.map(({ id, result, error, approval_id }) => [
    ...[id, result.replaceAll('_', ' '), error?.message ?? approval_id ?? '-'],
  ]);
  const list = notDone.length === 0 ? [] : [table(['ID', 'RESULT', 'WHY'], cells, '')];
  const text = [...list, `${what}: ${summary}.`].join('\n\n');
  context.print({ json: { ...about, ...counts, data: rows }, text });
  const left = notDone.filter(({ result }) => result !== 'approval_required').length;
  if (left === 0) return;
  const message = `Not done, or not known to be done: ${left} of ${found.length}. --plan shows what is left.`;
  throw new ServiceError('not_all_done', message);
}

/** @throws ServiceError `invalid_usage` */
export function assertOneMode(
  { query, plan = false, apply = false, expect }: ManyOptions,
  [ofOne]: readonly string[],
): void {
  const refuse = (fault: string) => new ServiceError('invalid_usage', fault);
  if (query === undefined) {
    if (!plan && !apply && expect === undefined) return;
    throw refuse('Only --query takes --plan, --apply and --expect.');
  }
  if (plan === apply) throw refuse('With --query, give either --plan or --apply.');
  if (plan && expect !== undefined) throw refuse('Only --apply takes --expect.');
  if (ofOne === undefined) return;
  throw refuse(`--${ofOne.replaceAll('_', '-')} goes with an id, not with --query.`);
}

async function applyTo(
  context: CliContext,
  kind: CallbackResource,
  open: readonly QueryResult[],
  { what, operator, approved_by, reason = '', hours }: ManyActs,
): Promise<Outcome[] | ApprovalRequired> {
  if (open.length === 0) return [];
  const livemode = open.some(({ resource }) => resource?.livemode);
  const acting = { livemode, what, operator };
  const { deps, verified, names } = await openActing(context, acting);
  const second = livemode ? undefined : approved_by;
  const act = omitUndefined({ what, reason, hours, ...names, approved_by: second });
  const ids = open.map(({ id }) => id);
  const approval = await requestForMany(deps, kind, ids, { what, reason, verified });
  if (approval !== undefined) return approval;
  let begun = 0;
  return await actOnMany(deps, kind, ids, act, {
    verify: async () => (await openActing(context, acting)).verified,
    onOutcome: (outcome) => {
      begun += 1;
      const line = `${begun} of ${ids.length}: ${outcome.id} ${describeOutcome(outcome)}`;
      context.progress(line);
    },
  });
}

export function describeOutcome(outcome: Outcome): string {
  if ('error' in outcome) return explain(outcome.error).message;
  const { answer } = outcome;
  return 'approval_id' in answer
    ? `needs the approval ${answer.approval_id}`
    : `is ${answer.status}`;
}

const RESULTS = [
  'done',
  'approval_required',
  'refused',
  'unknown',
  'failed',
  'not_begun',
] as const satisfies readonly string[];

interface ShownResult {
  id: string;
  result: (typeof RESULTS)[number];
  status?: string;
  version?: number;
  bank?: string | undefined;
  attention?: string | null;
  approval_id?: string;
  error?: { code: string; message: string };
}

function presentResult({ id, refusal }: QueryResult, outcome: Outcome | undefined): ShownResult {
  if (refusal !== null) return { id, result: 'refused', error: explain(refusal) };
  if (outcome === undefined) return { id, result: 'not_begun' };
  const { result } = outcome;
  if ('error' in outcome) return { id, result, error: explain(outcome.error) };
  if (outcome.result === 'approval_required') {
    return { id, result, approval_id: outcome.answer.approval_id };
  }
  const { status, version, bank } = outcome.answer;
  return { id, result, status, version, bank, attention: outcome.attention };
}

function printPlan(context: CliContext, found: readonly QueryResult[], about: object): void {
  const rows = found.map(({ id, resource, refusal }) => {
    const { account_id = null, status = null, amount = null, currency = null } = resource ?? {};
    const env = resource && toEnv(resource.livemode);
    const attention = resource?.attention ?? null;
    const refused = refusal && explain(refusal);
    return { id, account_id, env, status, amount, currency, attention, refused };
  });
  const open = rows.filter(({ refused }) => refused === null);
  const moneys = [...new Set(open.map(({ env, currency }) => `${env} ${currency}`))];
  const totals = moneys.map((money) => {
    const own = open.filter(({ env, currency }) => `${env} ${currency}` === money);
    const { env = null, currency = null } = own[0] ?? {};
    const amount = own.reduce((sum, row) => sum + BigInt(row.amount ?? 0), 0n);
    return { env, currency, count: own.length, amount: amountInJson(amount) };
  });
  const cells = rows.map(({ id, env, status, amount, currency, attention, refused }) => [
    ...[id, env ?? '-', status ?? '-', formatAmount(amount, currency)],
    ...[attention ?? '-', refused?.code ?? '-'],
  ]);
  const heading = ['ID', 'ENV', 'STATUS', 'AMOUNT', 'ATTENTION', 'REFUSED'];
  const sums = totals.map(
    ({ env, currency, count, amount }) => `${count} ${env} of ${formatAmount(amount, currency)}`,
  );
  const text = [
    table(heading, cells, 'The query finds none.'),
    `Results: ${found.length}. Would be sent: ${[open.length, ...sums].join(', ')}.\n` +
      'Nothing was done. --apply does it; a workflow may still refuse.',
  ];
  context.print({ json: { ...about, totals, data: rows }, text: text.join('\n\n') });
}

function formatAmount(amount: number | string | null, currency: string | null): string {
  if (amount === null || currency === null) return '-';
  if (!isCurrency(currency)) return `${amount} ${currency}`;
  return formatMoney(BigInt(amount), currency);
}
