import { deriveUuid } from '../../../base/ids';
import {
  addDays,
  type Statement,
  type StatementFacts,
  type StatementLine,
} from '../../../domain/banks/statement';
import { formatMoney } from '../../../domain/money/money';
import { findFlaw } from '../../../statements/check';
import {
  compareOrder,
  describeDifference,
  hashLines,
  readFacts,
  relate,
} from '../../../statements/compare';
import type { BankAccountDocument } from '../../../store/bank-accounts';
import type { RefusalDocument } from '../../../store/statement-refusals';
import type { StatementDocument } from '../../../store/statements';
import type { ServiceDeps } from '../../access';
import { findGap } from './numbering';
import { StatementRefused } from './refusals';

export interface Bank {
  connector: string;
  livemode: boolean;
}

/** Passed all checks. */
export interface PlannedStatement {
  account: BankAccountDocument;
  statement: Statement;
  document: StatementDocument;
  /** SHA-256 of the lines of `statement`. */
  sha256: string;
  /** End of the statement before; null for the first. */
  previous: BankAccountDocument['closing'];
  /** Gap that a late statement fills. */
  gap: RefusalDocument | null;
  /** The file has it before. */
  isRepeat: boolean;
}

/** Statement of an account that is not registered. */
export interface SetAside {
  /** IBAN, or the bank's id of it. */
  account: string;
  statement_id: string;
}

type PlanDeps = Pick<ServiceDeps, 'stores' | 'now'>;

/** Groups the statements of registered accounts, and sets the others aside. */
export async function groupByAccount(
  { stores }: PlanDeps,
  statements: readonly Statement[],
  { connector, livemode }: Bank,
): Promise<{ known: Statement[][]; set_aside: SetAside[] }> {
  const known = new Map<string, Statement[]>();
  const set_aside: SetAside[] = [];
  for (const statement of statements) {
    const { iban, currency, statement_id, fault } = statement;
    // An IBAN may have an account for each currency.
    const key = JSON.stringify([iban, currency]);
    // An unread statement without a currency refuses all accounts of its IBAN.
    const isUnknown = fault !== undefined && currency === '';
    const groups = [...known].filter(([each, [first]]) =>
      isUnknown ? first?.iban === iban : each === key,
    );
    for (const [, group] of groups) group.push(statement);
    if (groups.length > 0) continue;
    if ((await stores.bankAccounts.list({ connector, livemode, iban })).length > 0) {
      known.set(key, [statement]);
    } else set_aside.push({ account: iban, statement_id });
  }
  return { known: [...known.values()], set_aside };
}

/**
 * Checks all statements of an account in a file before anything of them is stored. Where one before
 * them is missing, it plans notifications of their lines, and says so.
 * @throws StatementRefused
 */
export async function planStatements(
  deps: PlanDeps,
  statements: readonly Statement[],
  bank: Bank,
): Promise<{ planned: PlannedStatement[]; gap?: StatementRefused }> {
  const planned: PlannedStatement[] = [];
  const fresh: PlannedStatement[] = [];
  let missing: StatementRefused | undefined;
  const ends = new Map<string, BankAccountDocument['closing']>();
  for (const statement of statements.toSorted(compareOrder)) {
    const { fault, statement_id } = statement;
    if (fault !== undefined)
      throw new StatementRefused(fault.code, fault.message, { statement_id });
    const account = await findAccount(deps, statement, bank);
    const facts = readFacts(statement);
    const inFile = planned.filter((other) => other.account._id === account._id);
    const repeated = inFile.find(({ document }) => relate(document, facts) === 'same');
    if (repeated !== undefined) {
      planned.push({ ...repeated, statement, isRepeat: true });
      continue;
    }
    const others = await deps.stores.statements.listOfDays(account._id, facts);
    const stored = others.find((other) => relate(other, facts) === 'same') ?? null;
    const document = await buildDocument(deps, { statement, facts, account, bank });
    if (stored === null) {
      const flaw = findFlaw(statement);
      if (flaw !== undefined) {
        const { code, message } = flaw;
        const differs = 'amount' in flaw ? toFact(flaw.amount ?? 0n) : {};
        throw new StatementRefused(code, message, { ...describe(document), ...differs });
      }
      for (const each of inFile) {
        assertApart({ ...each.document, all: each.statement.lines }, document, statement.lines);
      }
      for (const other of others) {
        // Nothing is taken until it is imported to its end.
        const isUnfinished = other.completed_at === null && other.statement_id !== statement_id;
        if (isUnfinished || relate(other, facts) === 'other') continue;
        const ofOther = { statement: { $in: [other._id] } };
        const all = await deps.stores.statements.listLines(ofOther, Math.max(other.lines, 1));
        assertApart({ ...other, all }, document, statement.lines);
      }
    }
    const previous = ends.get(account._id) ?? account.closing;
    const isComplete = stored !== null && stored.completed_at !== null;
    const gap = isComplete ? null : await findGap(deps, document, planned);
    if (stored === null) {
      const isOwn = planned.some((other) => other.document._id === account.importing?._id);
      assertFree(isOwn ? null : account, document);
      if (gap === null) missing ??= assertNext(document, previous);
    }
    const { sha256 } = document;
    const each: PlannedStatement = {
      ...{ account, statement, document: stored ?? document },
      ...{ sha256, previous, gap, isRepeat: false },
    };
    planned.push(each);
    if (stored === null || stored.kind === 'notification') fresh.push(each);
    const { closing: amount, to_day: day } = document;
    if (amount !== null && gap === null && !isComplete) {
      ends.set(account._id, { amount, day, statement_id });
    }
  }
  if (missing === undefined) return { planned };
  // A statement behind a gap becomes a notification of its lines, which move no money.
  const announced: PlannedStatement[] = [];
  for (const each of fresh.filter(({ statement }) => statement.lines.length > 0)) {
    const { account, statement, document: bank } = each;
    if (bank.kind === 'notification') {
      announced.push(each);
      continue;
    }
    const nothing = { kind: 'notification', opening: null, closing: null } as const;
    const facts = { ...readFacts(statement), ...nothing };
    const document = await buildDocument(deps, { statement, facts, account, bank });
    const stored = await deps.stores.statements.findSame(document, 'open');
    announced.push({ ...each, document: stored ?? { ...document, behind_gap: 'open' } });
  }
  return { planned: announced, gap: missing };
}

/** @throws StatementRefused `statement_conflict` */
function assertApart(
  other: StatementDocument & { all: readonly StatementLine[] },
  document: StatementDocument,
  all: readonly StatementLine[],
): void {
  const relation = relate(other, document);
  if (relation === 'other' || relation === 'same') return;
  const { statement_id, currency } = document;
  const before = `statement ${other.statement_id} of ${describeDays(other)}`;
  const difference =
    other.all.length < other.lines
      ? 'that is not imported to its end.'
      : `${describeDifference(other, { ...document, all }, currency)}.`;
  const message =
    relation === 'overlap'
      ? `has days of ${before}: ask the bank for statements of the missing days alone.`
      : `has other content than ${before}: ${difference}`;
  throw new StatementRefused(
    'statement_conflict',
    `Statement ${statement_id} of ${describeDays(document)} ${message}`,
    describe(document),
  );
}

function describeDays({ from_day, to_day }: Pick<StatementDocument, 'from_day' | 'to_day'>) {
  return from_day === to_day ? to_day : `${from_day} to ${to_day}`;
}

function describe({ to_day: day, ...document }: StatementDocument) {
  const { bank_account_id, statement_id, kind, currency } = document;
  return { bank_account_id, statement_id, kind, currency, day };
}

async function findAccount(
  { stores }: PlanDeps,
  { iban, currency, statement_id }: Statement,
  { connector, livemode }: Bank,
): Promise<BankAccountDocument> {
  const accounts = await stores.bankAccounts.list({ connector, livemode, iban });
  const account = accounts.find((each) => each.currency === currency);
  if (account !== undefined) return account;
  const known = accounts.map((each) => each.currency).join(', ');
  const message = `Statement ${statement_id} is in ${currency}, and the account ${iban} in ${known}.`;
  throw new StatementRefused('wrong_currency', message, { statement_id, currency });
}

interface StatementOfAccount {
  statement: Statement;
  facts: StatementFacts;
  account: BankAccountDocument;
  bank: Bank;
}

async function buildDocument(
  { stores, now }: PlanDeps,
  { statement, facts, account, bank: { connector, livemode } }: StatementOfAccount,
): Promise<StatementDocument> {
  const { iban, currency, lines } = statement;
  const { kind, content, sequence } = facts;
  const bank_account_id = account._id;
  const abandoned = await stores.statements.countAbandoned({ bank_account_id, kind, content });
  const identity = [bank_account_id, kind, content, sequence];
  if (abandoned > 0) identity.push(String(abandoned));
  return {
    _id: `st_${deriveUuid(JSON.stringify(identity))}`,
    ...{ bank_account_id, connector, livemode, iban, currency, ...facts },
    ...{ sha256: hashLines(lines), imported_at: now().toISOString() },
    ...{ completed_at: null, closed_at: null },
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

/**
 * @returns why it has to wait for one before it
 * @throws StatementRefused `statement_gap` where it is an older one
 */
export function assertNext(
  document: StatementDocument,
  previous: BankAccountDocument['closing'],
): StatementRefused | undefined {
  const { statement_id, opening, currency, from_day, to_day } = document;
  if (opening === null || previous === null) return undefined;
  const amount = BigInt(opening) - BigInt(previous.amount);
  const isLater = from_day >= previous.day;
  if (amount === 0n && isLater) return undefined;
  const place = to_day < previous.day ? 'is older than' : 'begins before the end of';
  const last = `statement ${previous.statement_id} of ${previous.day}`;
  const [missingFrom, missingTo] = [addDays(previous.day, 1), addDays(from_day, -1)];
  const days = missingFrom === missingTo ? missingFrom : `${missingFrom} to ${missingTo}`;
  const missing =
    missingFrom > missingTo
      ? 'No day is missing between them.'
      : `Days without a statement: ${days}.`;
  const refusal = new StatementRefused(
    'statement_gap',
    amount === 0n
      ? `Statement ${statement_id} of ${describeDays(document)} ${place} the last one, ${last}.`
      : `Statement ${statement_id} opens at ${formatMoney(opening, currency)}, and ${last} closed at ` +
          `${formatMoney(previous.amount, currency)}: ${formatMoney(amount, currency)} differ. ${missing}`,
    { ...describe(document), ...toFact(amount) },
  );
  if (isLater) return refusal;
  throw refusal;
}

/** A difference of two amounts may be larger than what a document holds. */
function toFact(difference: bigint): { amount?: number } {
  const amount = Number(difference);
  return Number.isSafeInteger(amount) ? { amount } : {};
}
