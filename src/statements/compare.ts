import { createHash } from 'node:crypto';
import type { Statement, StatementFacts, StatementLine } from '../domain/banks/statement';
import { formatMoney } from '../domain/money/money';

/** Reads what is compared. @see docs/statements.md#the-same-statement-again */
export function readFacts(statement: Statement): StatementFacts {
  const { statement_id, sequence, balances, lines } = statement;
  const kind = balances === null ? 'notification' : 'statement';
  const days = kind === 'notification' ? lines.map(({ day }) => day).toSorted() : [];
  const [from_day, to_day] = [days[0] ?? statement.from_day, days.at(-1) ?? statement.to_day];
  const { opening = null, closing = null } = balances ?? {};
  // Two may announce alike movements of a day that have no names.
  const isNamed = balances !== null || lines.every((line) => line.bank_reference !== null);
  const name = isNamed ? null : statement_id;
  const head = [kind, name, to_day, opening, closing];
  const content = hash([head, ...lines.map(formatLine).toSorted()]);
  return {
    ...{ kind, statement_id, sequence, from_day, to_day, opening, closing },
    ...{ lines: lines.length, content },
  };
}

/** Statements of a day come in the order of their numbers. */
export function compareOrder(a: Statement, b: Statement): number {
  const numbers = [a, b].map(({ sequence }) => Number(sequence ?? 0));
  const [first = 0, second = 0] = numbers;
  return (
    Number(a.from_day > b.from_day) - Number(a.from_day < b.from_day) ||
    Number(a.to_day > b.to_day) - Number(a.to_day < b.to_day) ||
    first - second ||
    0
  );
}

/** SHA-256 of lines in their order, hex. */
export function hashLines(lines: readonly StatementLine[]): string {
  return hash(lines.map(formatLine));
}

function hash(values: readonly unknown[]): string {
  const digest = createHash('sha256');
  for (const value of values) digest.update(`${JSON.stringify(value)}\n`);
  return digest.digest('hex');
}

const FIELDS = ['day', 'amount', 'value date', 'charge', 'reference', 'bank reference'] as const;

/** Lists the values of `FIELDS`: all that matches a line, or counts. */
function listValues(line: StatementLine) {
  const { day, amount, value_date, fee, is_fee, reference, creditor_reference } = line;
  const named = [reference, creditor_reference ?? null];
  return [day, amount, value_date ?? day, [fee, is_fee], named, line.bank_reference] as const;
}

const formatLine = (line: StatementLine) => JSON.stringify(listValues(line));

/**
 * Says how a statement stands to another of its account and kind:
 * - `same`: again, in whatever message
 * - `conflict`: otherwise, for the same days
 * - `overlap`: has days of the other
 */
export function relate(
  stored: StatementFacts,
  fresh: StatementFacts,
): 'same' | 'conflict' | 'overlap' | 'other' {
  const numbers = [stored, fresh].flatMap(
    ({ sequence }) => sequence?.replace(/^0+(?=.)/, '') ?? [],
  );
  const isNumbered = numbers.length === 2;
  const isOtherNumber = isNumbered && numbers[0] !== numbers[1];
  const isSameContent = stored.content === fresh.content;
  if (isSameContent && !isOtherNumber) return 'same';
  const isSameId = stored.statement_id === fresh.statement_id;
  const begins = stored.from_day === fresh.from_day;
  const ends = stored.to_day === fresh.to_day;
  if (fresh.kind === 'notification') {
    return begins && ends && isSameId && !isOtherNumber ? 'conflict' : 'other';
  }
  const opens = stored.opening === fresh.opening;
  if (begins && ends) {
    // One may follow on another of the day.
    if (isOtherNumber)
      return isSameContent && fresh.opening !== fresh.closing ? 'conflict' : 'other';
    return isNumbered || isSameId || (opens && stored.lines > 0) ? 'conflict' : 'other';
  }
  const isApart = fresh.from_day >= stored.to_day || fresh.to_day <= stored.from_day;
  const isNext = stored.closing === fresh.opening || stored.opening === fresh.closing;
  const isPart = (begins && opens) || (ends && stored.closing === fresh.closing && !isNext);
  return isApart && !(isPart && stored.lines > 0) ? 'other' : 'overlap';
}

type Compared = StatementFacts & { all: readonly StatementLine[] };

/** Names the first difference of two statements, without texts of the bank. */
export function describeDifference(stored: Compared, fresh: Compared, currency: string): string {
  const money = (amount: number | null) => formatMoney(amount ?? 0, currency);
  if (stored.opening !== fresh.opening) {
    return `it opens at ${money(fresh.opening)}, and that at ${money(stored.opening)}`;
  }
  const left = new Map<string, number>();
  for (const line of stored.all.map(formatLine)) left.set(line, (left.get(line) ?? 0) + 1);
  const extra = fresh.all.filter((line) => {
    const count = left.get(formatLine(line)) ?? 0;
    left.set(formatLine(line), count - 1);
    return count <= 0;
  });
  const own = extra[0];
  const missing = stored.all.find((line) => (left.get(formatLine(line)) ?? 0) > 0);
  const show = ({ amount, day }: StatementLine) => `${money(amount)} of ${day}`;
  const which = own && `line ${fresh.all.indexOf(own) + 1}`;
  if (own !== undefined && missing !== undefined) {
    const [here, there] = [own, missing].map(listValues);
    const at = FIELDS.findIndex(
      (_, field) => JSON.stringify(here?.[field]) !== JSON.stringify(there?.[field]),
    );
    const detail = at < 2 ? '' : `, with another ${FIELDS[at]}`;
    return `${which} is ${show(own)}, and that has ${show(missing)}${detail}`;
  }
  if (own !== undefined) return `that lacks ${which}, ${show(own)}`;
  if (missing !== undefined) return `it lacks a line of that, ${show(missing)}`;
  if (stored.closing !== fresh.closing) {
    return `it closes at ${money(fresh.closing)}, and that at ${money(stored.closing)}`;
  }
  return `its number is ${fresh.sequence}, and that of the other ${stored.sequence}`;
}
