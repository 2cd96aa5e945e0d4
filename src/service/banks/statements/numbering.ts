import type { ClientSession } from 'mongodb';
import type { Numbering } from '../../../domain/banks/statement';
import { formatMoney } from '../../../domain/money/money';
import type { Stores } from '../../../store';
import type { BankAccountDocument } from '../../../store/bank-accounts';
import type { MissingStatements, RefusalDocument } from '../../../store/statement-refusals';
import type { StatementDocument } from '../../../store/statements';
import type { ServiceDeps } from '../../access';
import { StatementRefused } from './refusals';

/** Statements from which the numbering of a bank is learned. */
const LEARNED_FROM = 5;

const STATEMENT_MISSING = 'statement_missing';

type Numbered = Pick<StatementDocument, 'sequence' | 'to_day'>;

/** @returns undefined where a bank gives no number, or one of another form */
function readNumber({ sequence }: Pick<Numbered, 'sequence'>): number | undefined {
  return sequence !== null && /^\d{1,15}$/.test(sequence) ? Number(sequence) : undefined;
}

const getYear = ({ to_day }: Numbered) => to_day.slice(0, 4);

/** @returns number that should follow; undefined where nothing can be said */
function expectNumber(numbering: Numbering, before: Numbered, next: Numbered) {
  const number = readNumber(before);
  if (numbering === 'none' || number === undefined) return undefined;
  return numbering === 'yearly' && getYear(before) !== getYear(next) ? 1 : number + 1;
}

const NOTHING_LEARNED = { statements: 0, fitting: ['continuous', 'yearly'] as Numbering[] };

/**
 * Notes in the transaction that completes a statement which numbers it jumps over, and learns how
 * the bank counts.
 * @see docs/statements.md#missing-statements
 */
export async function checkNumber(
  { bankAccounts, statements }: Pick<Stores, 'bankAccounts' | 'statements'>,
  document: StatementDocument,
  previous: BankAccountDocument['closing'],
  { now, session }: { now: () => Date; session: ClientSession },
): Promise<void> {
  const { bank_account_id, connector, livemode, currency, statement_id, opening } = document;
  const account = await bankAccounts.get(bank_account_id, session);
  if (account === null) return;
  const named = previous ? await statements.listNamesakes(document, previous, session) : [];
  // One with a lower number may have come later, to fill a gap.
  const [before = null] = named.toSorted((a, b) => (readNumber(b) ?? 0) - (readNumber(a) ?? 0));
  const number = readNumber(document);
  if (account.numbering === undefined) {
    if (number === undefined) return;
    // One whose predecessor is not known begins it.
    const known = (previous && account.learning) ?? NOTHING_LEARNED;
    const fitting = known.fitting.filter(
      (as) => before === null || expectNumber(as, before, document) === number,
    );
    const learning = { statements: known.statements + 1, fitting };
    const numbering = { as: fitting[0] ?? 'none', learned: true } as const;
    const isLearned = learning.statements >= LEARNED_FROM;
    const change = isLearned ? { learning, numbering } : { learning };
    return await bankAccounts.change(bank_account_id, change, session);
  }
  const { as, learned } = account.numbering;
  const expected = before && expectNumber(as, before, document);
  if (before === null || expected == null || number === undefined || number === expected) return;
  if (learned && number === 1 && getYear(before) !== getYear(document)) {
    const numbering = { as: 'yearly', learned } as const;
    return await bankAccounts.change(bank_account_id, { numbering }, session);
  }
  const balance = opening ?? 0;
  const missing: MissingStatements = {
    first: expected,
    last: Math.max(expected, number - 1),
    opening: balance,
    closing: balance,
    ...{ from_day: before.to_day, to_day: document.to_day, statement: document._id },
  };
  const message =
    `Statement number ${document.sequence} (${statement_id} of ${document.to_day}) follows number ` +
    `${before.sequence} (${before.statement_id} of ${before.to_day}), and the balances follow on: ` +
    'ask the bank for those between them.';
  await statements.noteMissing(
    {
      ...{ _id: `${STATEMENT_MISSING}:${document._id}`, connector, livemode, sha256: null },
      code: STATEMENT_MISSING,
      message,
      ...{ bank_account_id, statement_id, day: document.to_day, amount: 0, currency },
      since: now().getTime(),
      ...{ attention: true, acknowledged: null, missing },
    },
    session,
  );
}

/**
 * Finds the gap that a late statement fills, or a part of it; null where it is none.
 * @param before statements of its file that are imported first, with the gaps that they fill
 * @throws StatementRefused where it does not lead from or to the statements around the gap
 */
export async function findGap(
  { stores: { statements }, now }: Pick<ServiceDeps, 'stores' | 'now'>,
  document: StatementDocument,
  before: readonly { gap: RefusalDocument | null; document: StatementDocument }[],
  session?: ClientSession,
): Promise<RefusalDocument | null> {
  const { bank_account_id, statement_id, currency, opening, closing, to_day } = document;
  const number = readNumber(document);
  if (document.kind !== 'statement' || number === undefined) return null;
  const left = before.reduce(
    (rows, { gap, document: filling }) =>
      rows.flatMap((row) => (row._id === gap?._id ? fillGap(row, filling, now) : [row])),
    await statements.listMissing(bank_account_id, session),
  );
  for (const row of left) {
    const { missing } = row;
    if (missing === undefined || number < missing.first || number > missing.last) continue;
    if (to_day < missing.from_day || to_day > missing.to_day) continue;
    const fits =
      (number > missing.first || opening === missing.opening) &&
      (number < missing.last || closing === missing.closing);
    if (fits) return row;
    const [from, to] = [missing.opening, missing.closing].map((each) =>
      formatMoney(each, currency),
    );
    throw new StatementRefused(
      'statement_gap',
      `Statement ${statement_id} has the number ${number}. Number ${missing.first} is missing, and ` +
        `opens at ${from}; number ${missing.last} closes at ${to}.`,
      { bank_account_id, statement_id, currency },
    );
  }
  return null;
}

/**
 * Lists what is missing once a statement has filled a part: what is before it, and what is after. Where
 * that has money, the bank has statements of it, whatever was acknowledged.
 */
export function fillGap(
  { _id, missing, ...row }: RefusalDocument,
  document: StatementDocument,
  now: () => Date,
): RefusalDocument[] {
  const number = readNumber(document);
  const { opening, closing } = document;
  if (missing === undefined || number === undefined) return [];
  const parts = [
    { ...missing, last: number - 1, closing: opening ?? missing.closing },
    { ...missing, first: number + 1, opening: closing ?? missing.opening },
  ].filter(({ first, last }) => first <= last);
  return parts.map((part, at) => ({
    ...row,
    ...(part.opening === part.closing ? {} : { attention: true, acknowledged: null }),
    // Attention names its row by account and time.
    ...(at === 0 ? { _id } : { _id: `${_id}:${part.first}`, since: now().getTime() }),
    missing: part,
  }));
}
