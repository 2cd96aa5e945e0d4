import { deriveUuid } from '../../../base/ids';
import { formatMoney } from '../../../domain/money';
import { addDays, type Statement } from '../../../domain/statement';
import { findFlaw } from '../../../statements/check';
import type { BankAccountDocument } from '../../../store/bank-accounts';
import type { RefusalDocument } from '../../../store/statement-refusals';
import type { StatementDocument } from '../../../store/statements';
import type { ServiceDeps } from '../../deps';
import { findGap } from './numbering';
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
  /** Gap that a late statement fills. */
  gap: RefusalDocument | null;
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
    const document = await buildDocument(deps, statement, account, file);
    if (planned.some((other) => other.document._id === document._id)) {
      const message = `The file has statement ${statement.statement_id} twice.`;
      throw new StatementRefused('file_invalid', message, describe(document));
    }
    const stored = await deps.stores.statements.get(document._id);
    if (stored !== null && stored.sha256 !== document.sha256) {
      const message = `Statement ${document.statement_id} was imported from another file on ${stored.imported_at}.`;
      throw new StatementRefused('statement_conflict', message, describe(document));
    }
    const previous = ends.get(account._id) ?? account.closing;
    const isComplete = stored !== null && stored.completed_at !== null;
    const gap = isComplete ? null : await findGap(deps.stores, document);
    if (stored === null) {
      const flaw = findFlaw(statement);
      if (flaw !== undefined) {
        const { code, message, amount: differs = 0n } = flaw;
        const fact = differs === 0n ? {} : toFact(differs);
        throw new StatementRefused(code, message, { ...describe(document), ...fact });
      }
      const isOwn = planned.some((other) => other.document._id === account.importing?._id);
      assertFree(isOwn ? null : account, document);
      if (gap === null) assertNext(document, previous);
    }
    planned.push({ account, statement, document: stored ?? document, previous, gap });
    const { closing: amount, to_day: day, statement_id } = document;
    if (amount !== null && gap === null && !isComplete) {
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

async function buildDocument(
  { stores, now }: PlanDeps,
  statement: Statement,
  account: BankAccountDocument,
  { connector, livemode, sha256 }: FileFacts,
): Promise<StatementDocument> {
  const { statement_id, iban, currency, balances, from_day, to_day, sequence } = statement;
  const kind = balances === null ? 'notification' : 'statement';
  const bank_account_id = account._id;
  const about = { bank_account_id, kind, statement_id } as const;
  const abandoned = await stores.statements.countAbandoned(about);
  const identity = [bank_account_id, kind, statement_id, ...(abandoned > 0 ? [abandoned] : [])];
  return {
    _id: `st_${deriveUuid(JSON.stringify(identity))}`,
    ...{ bank_account_id, connector, livemode, iban, currency },
    ...{ kind, statement_id, sha256, sequence, from_day, to_day },
    ...{ opening: balances?.opening ?? null, closing: balances?.closing ?? null },
    lines: statement.lines.length,
    ...{ imported_at: now().toISOString(), completed_at: null, closed_at: null },
  };
}

/** @throws StatementRefused `statement_incomplete` */
export function assertFree(
  account: Pick<BankAccountDocument, 'importing'> | null,
  document: StatementDocument,
): void {
  const importing = account?.importing;
  if (importing === undefined || document.opening === null) return;
  throw new StatementRefused(
    'statement_incomplete',
    `Statement ${importing.statement_id} of this account is not imported to its end: import its ` +
      `file again first, or give it up by \`statement abandon ${importing._id}\`.`,
    describe(document),
  );
}

/** @throws StatementRefused `statement_gap` */
export function assertNext(
  document: StatementDocument,
  previous: BankAccountDocument['closing'],
): void {
  const { statement_id, opening, currency, from_day, to_day } = document;
  if (opening === null || previous === null) return;
  const amount = BigInt(opening) - BigInt(previous.amount);
  if (amount === 0n && to_day >= previous.day) return;
  const last = `statement ${previous.statement_id} of ${previous.day}`;
  const [missingFrom, missingTo] = [addDays(previous.day, 1), addDays(from_day, -1)];
  const days = missingFrom === missingTo ? missingFrom : `${missingFrom} to ${missingTo}`;
  const missing =
    missingFrom > missingTo
      ? 'No day is missing between them.'
      : `Days without a statement: ${days}.`;
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
