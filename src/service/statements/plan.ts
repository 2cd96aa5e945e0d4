import { deriveUuid } from '../../base/ids';
import { formatMoney } from '../../domain/money';
import { addDays, type Statement, VALUE_DAYS_MAX } from '../../domain/statement';
import type { BankAccountDocument } from '../../store/bank-accounts';
import type { StatementDocument } from '../../store/statements';
import type { ServiceDeps } from '../deps';
import { StatementRefused } from './refusals';

export interface FileFacts {
  connector: string;
  livemode: boolean;
  /** Hex. */
  sha256: string;
}

/** Passed all checks. */
export interface PlannedStatement {
  account: BankAccountDocument;
  statement: Statement;
  document: StatementDocument;
  /** End of the statement before; null for the first. */
  previous: BankAccountDocument['closing'];
}

type PlanDeps = Pick<ServiceDeps, 'stores' | 'now'>;

/** Checks all statements before anything of the file is stored. @throws StatementRefused */
export async function planFile(
  deps: PlanDeps,
  statements: readonly Statement[],
  file: FileFacts,
): Promise<PlannedStatement[]> {
  const sorted = statements.toSorted((a, b) =>
    a.from_day < b.from_day ? -1 : Number(a.from_day > b.from_day),
  );
  const planned: PlannedStatement[] = [];
  const ends = new Map<string, BankAccountDocument['closing']>();
  for (const statement of sorted) {
    const account = await findAccount(deps, statement, file);
    const document = buildDocument(deps, statement, account, file);
    if (planned.some((other) => other.document._id === document._id)) {
      const message = `The file has statement ${statement.statement_id} twice.`;
      throw new StatementRefused('file_invalid', message, describe(document));
    }
    const stored = await findStored(deps, document);
    const { lines, sum } = countLines(statement, document);
    const previous = ends.get(account._id) ?? account.closing;
    if (stored === null) {
      assertSum(document, sum);
      const isOwn = planned.some((other) => other.document._id === account.importing?._id);
      assertNext(isOwn ? null : account, document, previous);
    }
    planned.push({ account, statement, document: stored ?? { ...document, lines }, previous });
    const { closing: amount, to_day: day, statement_id } = document;
    if (amount !== null && stored?.completed_at == null) {
      ends.set(account._id, { amount, day, statement_id });
    }
  }
  return planned;
}

function describe({ bank_account_id, statement_id, currency }: StatementDocument) {
  return { bank_account_id, statement_id, currency };
}

async function findAccount(
  { stores }: PlanDeps,
  { iban, currency, statement_id }: Statement,
  { connector, livemode }: FileFacts,
): Promise<BankAccountDocument> {
  const accounts = await stores.bankAccounts.list({ connector, livemode, iban });
  const account = accounts.find((each) => each.currency === currency);
  if (account !== undefined) return account;
  const facts = { statement_id, currency };
  if (accounts.length === 0) {
    const message = `${connector} has no bank account ${iban}: add it with \`bank-account add\`.`;
    throw new StatementRefused('bank_account_unknown', message, facts);
  }
  const known = accounts.map((each) => each.currency).join(', ');
  const message = `Statement ${statement_id} is in ${currency}, and the account ${iban} in ${known}.`;
  throw new StatementRefused('wrong_currency', message, facts);
}

function buildDocument(
  { now }: PlanDeps,
  statement: Statement,
  account: BankAccountDocument,
  { connector, livemode, sha256 }: FileFacts,
): StatementDocument {
  const { statement_id, iban, currency, balances, from_day, to_day, sequence } = statement;
  const kind = balances === null ? 'notification' : 'statement';
  return {
    _id: `st_${deriveUuid(JSON.stringify([account._id, kind, statement_id]))}`,
    ...{ bank_account_id: account._id, connector, livemode, iban, currency },
    ...{ kind, statement_id, sha256, sequence, from_day, to_day, lines: 0 },
    ...{ opening: balances?.opening ?? null, closing: balances?.closing ?? null },
    ...{ imported_at: now().toISOString(), completed_at: null, closed_at: null },
  };
}

async function findStored({ stores }: PlanDeps, document: StatementDocument) {
  const stored = await stores.statements.get(document._id);
  if (stored === null || stored.sha256 === document.sha256) return stored;
  throw new StatementRefused(
    'statement_conflict',
    `Statement ${document.statement_id} was imported from another file on ${stored.imported_at}.`,
    describe(document),
  );
}

function countLines(statement: Statement, document: StatementDocument) {
  let lines = 0;
  let sum = 0n;
  for (const { amount, day, value_date } of statement.lines) {
    lines += 1;
    sum += BigInt(amount);
    if (value_date === null || value_date <= addDays(day, VALUE_DAYS_MAX)) continue;
    throw new StatementRefused(
      'file_invalid',
      `Line ${lines} of statement ${statement.statement_id} has the value date ${value_date}, more ` +
        `than ${VALUE_DAYS_MAX} days after ${day}.`,
      describe(document),
    );
  }
  return { lines, sum };
}

function assertSum(document: StatementDocument, sum: bigint): void {
  const { statement_id, opening, closing, currency } = document;
  if (opening === null || closing === null) return;
  const difference = BigInt(closing) - BigInt(opening) - sum;
  if (difference === 0n) return;
  throw new StatementRefused(
    'sum_mismatch',
    `The lines of statement ${statement_id} do not lead from its opening to its closing balance: ` +
      `${formatMoney(difference, currency)} is missing.`,
    { ...describe(document), ...toFact(difference) },
  );
}

/** @throws StatementRefused `statement_incomplete`, `statement_gap` */
export function assertNext(
  account: Pick<BankAccountDocument, 'importing'> | null,
  document: StatementDocument,
  previous: BankAccountDocument['closing'],
): void {
  const { statement_id, opening, currency, from_day, to_day } = document;
  if (opening === null) return;
  const importing = account?.importing;
  if (importing !== undefined) {
    throw new StatementRefused(
      'statement_incomplete',
      `Statement ${importing.statement_id} of this account is not imported to its end: import its ` +
        'file again first.',
      describe(document),
    );
  }
  if (previous === null) return;
  const amount = BigInt(opening) - BigInt(previous.amount);
  if (amount === 0n && to_day >= previous.day) return;
  const last = `statement ${previous.statement_id} of ${previous.day}`;
  const missing = describeDays(addDays(previous.day, 1), addDays(from_day, -1));
  throw new StatementRefused(
    'statement_gap',
    amount === 0n
      ? `Statement ${statement_id} of ${to_day} is older than the last one, ${last}.`
      : `Statement ${statement_id} opens at ${formatMoney(opening, currency)}, and ${last} closed at ` +
          `${formatMoney(previous.amount, currency)}: ${formatMoney(amount, currency)} differ. ${missing}`,
    { ...describe(document), ...toFact(amount) },
  );
}

/** A difference of two amounts may be larger than what a document holds. */
function toFact(difference: bigint): { amount?: number } {
  const amount = Number(difference);
  return Number.isSafeInteger(amount) ? { amount } : {};
}

function describeDays(first: string, last: string): string {
  if (first > last) return 'No day is missing between them.';
  return `Days without a statement: ${first === last ? first : `${first} to ${last}`}.`;
}
