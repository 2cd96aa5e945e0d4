import { deriveUuid } from '../../../base/ids';
import { inTransaction } from '../../../base/mongo';
import {
  ANNOUNCED_DAYS,
  addDays,
  announcedBefore,
  groupByOldest,
  InvalidStatement,
  LINES_OPEN,
  NOT_REPEATED,
  OPEN_DAYS,
} from '../../../domain/banks/statement';
import { omitUndefined } from '../../../domain/defined';
import { ServiceError } from '../../../domain/errors';
import type { Stores } from '../../../store';
import type { AttentionPlace, AttentionRow } from '../../../store/resource';
import type { RefusalDocument } from '../../../store/statement-refusals';
import type { ServiceDeps, WriteDeps } from '../../access';

/** Nothing else of a refused file is stored. */
export class StatementRefused extends ServiceError {
  readonly facts: RefusalFacts;

  constructor(code: string, message: string, facts: RefusalFacts = {}) {
    super(code, message);
    this.facts = facts;
  }
}

/** @returns the error itself where it does not refuse a file */
export function toRefusal(error: unknown): unknown {
  return error instanceof InvalidStatement
    ? new StatementRefused(error.code, error.message)
    : error;
}

type RefusalFacts = Partial<
  Pick<RefusalDocument, 'bank_account_id' | 'statement_id' | 'kind' | 'day' | 'amount' | 'currency'>
>;

/** Whether the bank's own amounts are wrong. */
export function needsOperator(code: string): boolean {
  return code === 'sum_mismatch';
}

/** Stores once for each file and code. */
export async function storeRefusal(
  { stores, now }: Pick<ServiceDeps, 'stores' | 'now'>,
  { code, message, facts }: StatementRefused,
  file: Pick<RefusalDocument, 'connector' | 'livemode' | 'sha256'>,
): Promise<void> {
  const since = now().getTime();
  const identity = JSON.stringify([file, code, file.sha256 === null ? since : facts]);
  const nothing = { bank_account_id: null, statement_id: null, day: null, amount: null };
  await stores.statements.refuse({
    _id: `sr_${deriveUuid(identity)}`,
    ...file,
    ...{ code, message, currency: null, ...nothing, ...omitUndefined(facts) },
    ...{ since, attention: needsOperator(code), acknowledged: null },
  });
}

/** Lists refusals and missing statements as attention reasons of their bank accounts. */
export async function listRefusedStatements(
  { statements }: Pick<Stores, 'statements'>,
  { all, after, limit }: { all: boolean; after: AttentionPlace | undefined; limit: number },
): Promise<AttentionRow[]> {
  const since = after?.since ?? 0;
  // A few share the time of the place, and may be before it.
  const most = limit + SAME_TIME_MAX;
  const [open, acknowledged] = await Promise.all([
    statements.listRefusals(false, since, most),
    all ? statements.listRefusals(true, since, most) : [],
  ]);
  return [...open, ...acknowledged].map((row) => ({
    resource_id: row.bank_account_id ?? '',
    reason: row.code,
    ...{ since: row.since, amount: row.amount ?? 0, currency: row.currency ?? '' },
    acknowledged: row.acknowledged !== null,
    ...(row.file && { file_id: row.file.id, name: row.file.name, code: row.file.code }),
  }));
}

const SAME_TIME_MAX = 10;

/**
 * Acknowledges a refusal, or that missing statements do not exist.
 * @returns the code; undefined where there is no refusal
 * @throws ServiceError `statement_missing`
 */
export async function acknowledgeRefusal(
  { mongo, stores, audit, now }: WriteDeps,
  { bank_account_id, since }: { bank_account_id: string; since: number },
  { operator, reason }: { operator: string; reason: string },
): Promise<string | undefined> {
  const refusal = await stores.statements.findRefusal(bank_account_id, since);
  if (refusal === null) return undefined;
  const { _id: target, code, livemode, statement_id, missing } = refusal;
  if (refusal.acknowledged !== null) return code;
  if (missing !== undefined && missing.opening !== missing.closing) {
    const message = `The balances do not follow on: the bank has a statement number ${missing.first}.`;
    throw new ServiceError('statement_missing', message);
  }
  return await inTransaction(mongo, async (session) => {
    const acknowledged = { operator, reason, at: now().toISOString() };
    const isDone = await stores.statements.acknowledgeRefusal(refusal, acknowledged, session);
    // Another operator was faster.
    if (!isDone) return code;
    // A connector that has made the day lets the rest be a line of it.
    const { day, amount } = refusal;
    if (code === 'sum_mismatch' && day !== null && amount !== null) {
      await stores.bankAccounts.change(bank_account_id, { accepted: { day, amount } }, session);
    }
    const after = { code, statement_id, bank_account_id, operator, reason };
    const about = { account_id: null, livemode, target };
    await audit({ act: 'statement.refusal_acknowledged', ...about, after }, session);
    return code;
  });
}

/** Time from which an announced movement of a day needs an operator, ms since the epoch. */
const getDue = (day: string) => Date.parse(addDays(day, ANNOUNCED_DAYS + 1));

/** Lists credits that only a notification has, as attention reasons of their bank accounts. */
export async function listNotRepeated(
  { statements }: Pick<Stores, 'statements'>,
  { all, now }: { all: boolean; now: Date },
): Promise<AttentionRow[]> {
  const before = announcedBefore(now);
  const [open, acknowledged] = await Promise.all([
    statements.sumNotRepeated(before),
    all ? statements.sumNotRepeated(before, true) : [],
  ]);
  const present = (isAcknowledged: boolean) => (row: (typeof open)[number]) => ({
    ...{ resource_id: row.bank_account_id, reason: NOT_REPEATED, since: getDue(row.day) },
    ...{ amount: row.amount, currency: row.currency, acknowledged: isAcknowledged },
  });
  return [...open.map(present(false)), ...acknowledged.map(present(true))];
}

/** Lists accounts with lines that are open for too long; only a match ends that. */
export async function listLinesOpen(
  { bankAccounts, statements }: Pick<Stores, 'bankAccounts' | 'statements'>,
  now: Date,
): Promise<AttentionRow[]> {
  const accounts = await bankAccounts.list();
  const days = new Map(accounts.map(({ _id, open_days = OPEN_DAYS }) => [_id, open_days]));
  const overdue = await statements.sumOverdue(groupByOldest(accounts, now));
  return overdue.map(({ bank_account_id: resource_id, day, amount, currency }) => ({
    ...{ resource_id, reason: LINES_OPEN, amount, currency, acknowledged: false },
    // Another time than that of `not_repeated`: it names the row.
    since: Date.parse(addDays(day, (days.get(resource_id) ?? OPEN_DAYS) + 1)) + 1,
  }));
}

/** @returns the reason; undefined where no credit of an account became due then */
export async function acknowledgeNotRepeated(
  { mongo, stores, audit, now }: WriteDeps,
  { bank_account_id, since }: { bank_account_id: string; since: number },
  { operator, reason }: { operator: string; reason: string },
): Promise<string | undefined> {
  const before = announcedBefore(now());
  const isRow = (row: { bank_account_id: string; day: string }) =>
    row.bank_account_id === bank_account_id && getDue(row.day) === since;
  const row = (await stores.statements.sumNotRepeated(before)).find(isRow);
  if (row === undefined) {
    const isDone = (await stores.statements.sumNotRepeated(before, true)).some(isRow);
    return isDone ? NOT_REPEATED : undefined;
  }
  const { livemode, day, amount, currency } = row;
  return await inTransaction(mongo, async (session) => {
    const acknowledged = { operator, reason, at: now().toISOString() };
    const lines = await stores.statements.acknowledgeNotRepeated(row, acknowledged, session);
    // Another operator was faster.
    if (lines === 0) return NOT_REPEATED;
    const after = { day, lines, amount, currency, operator, reason };
    const about = { account_id: null, livemode, target: bank_account_id };
    await audit({ act: 'statement.not_repeated_acknowledged', ...about, after }, session);
    return NOT_REPEATED;
  });
}
