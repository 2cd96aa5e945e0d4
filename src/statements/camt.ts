import { normalizeAccount } from '../domain/banks/iban';
import {
  addDays,
  InvalidStatement,
  isReversal,
  type Statement,
  type StatementLine,
} from '../domain/banks/statement';
import { isCurrency } from '../domain/money/money';
import { isDay } from '../domain/shape';
import { fault, readDay, readEntry, readEntryReference, readPart, readSigned } from './camt-entry';
import { findMissing } from './check';
import { compareOrder } from './compare';
import { assertValid, type Element, find, findAll, isTrueAt, type PartReader, textAt } from './xml';

export interface CamtReader extends PartReader {
  /** Oldest first. @throws InvalidStatement */
  end(): Statement[];
}

/** So many fit into the memory of a process. */
const LINES_MAX = 250_000;
const PAGES_MAX = 1_000;

/** Reads `camt.053` and `camt.054` entry by entry. */
export function createCamtReader(): CamtReader {
  const statements: Statement[] = [];
  const pages: Page[] = [];
  let open: Page | undefined;
  let document: Element | undefined;
  /** Statement or page before. */
  let last: Pick<Statement, 'notice'> | undefined;
  let lines = 0;
  const values = new Map<string, unknown>();
  /** Returns one value for all that are equal. */
  const share: Sharer = <T>(value: T): T => {
    const key = JSON.stringify(value);
    const shared = values.get(key);
    // Equal values have one type.
    if (shared !== undefined) return shared as T;
    if (values.size > 10_000) values.clear();
    values.set(key, value);
    return value;
  };
  /** Why the open statement cannot be read. */
  let failed: InvalidStatement | undefined;
  const attempt = (work: () => void) => {
    if (failed !== undefined) return;
    try {
      work();
    } catch (error) {
      if (!(error instanceof InvalidStatement) || error.code === 'file_too_large') throw error;
      failed = error;
    }
  };
  /** Sets a statement aside that cannot be read. */
  const tryRead = (head: Element, work: () => void) => {
    attempt(work);
    if (failed !== undefined) statements.push(setFaultAside(head, failed));
    open = undefined;
    failed = undefined;
  };
  const endStatement = (element: Element, parent: Element | undefined) => {
    const page = endPage(open ?? beginPage(element), element, parent);
    if (page.number === undefined) {
      const statement = readPages([page]);
      statements.push(statement);
      last = statement;
    } else {
      pages.push(page);
      last = page;
    }
    if (pages.length > PAGES_MAX) throw fault(`The file has more than ${PAGES_MAX} pages.`);
  };
  return {
    take: ({ element, parent }) => {
      switch (element.name) {
        case 'TxDtls':
          return readPart(element, share);
        case 'Ntry':
          if (parent === undefined) return undefined;
          attempt(() => {
            open ??= beginPage(parent, element);
            lines += addEntry(open, element, share);
            if (lines <= LINES_MAX) return;
            const message = `The file has more than ${LINES_MAX} bookings: import it as several files.`;
            throw new InvalidStatement('file_too_large', message);
          });
          return undefined;
        case 'Stmt':
        case 'Ntfctn':
          document = parent;
          tryRead(element, () => endStatement(element, parent));
          return undefined;
        default:
          if (document !== element) throw fault(`${element.name} has no statement.`);
          return undefined;
      }
    },
    note: (notice) => {
      if (last !== undefined) last.notice = joinNotices([last.notice, notice]);
    },
    end: () => {
      for (const group of joinPages(pages)) {
        const [{ head, id, iban }] = group;
        const lack = findLack(group);
        const isOwn = (each: Statement) => each.statement_id === id && each.iban === iban;
        // It lacks what could not be read, which says why.
        if (lack && statements.some((each) => each.fault !== undefined && isOwn(each))) continue;
        tryRead(head, () => {
          const advice = 'import a file with all of its pages, once each.';
          if (lack !== undefined) throw fault(`Statement ${id} lacks ${lack}: ${advice}`);
          statements.push(readPages(group));
        });
      }
      const [first, ...more] = statements;
      if (more.length === 0 && first?.fault !== undefined) throw first.fault;
      const isUnread = ({ fault }: Statement) => Number(fault !== undefined);
      return statements.toSorted((a, b) => isUnread(a) - isUnread(b) || compareOrder(a, b));
    },
  };
}

/** Keeps the fault of one statement from those of other accounts in the file. */
function setFaultAside(head: Element, error: InvalidStatement): Statement {
  const iban = readAccount(head);
  if (iban === undefined) throw error;
  const statement_id = textAt(head, 'Id') ?? '';
  const ofBalance = find(findBalance(head, ['CLBD']), 'Amt')?.currency;
  const currency = textAt(head, 'Acct/Ccy') ?? ofBalance ?? find(head, 'Bal/Amt')?.currency ?? '';
  const nothing = { balances: null, from_day: '', to_day: '', sequence: null };
  return { statement_id, iban, currency, ...nothing, lines: [], fault: error };
}

function joinNotices(notices: readonly (string | undefined)[]): string {
  return notices.filter((notice) => notice !== undefined).join(' ');
}

interface Page {
  head: Element;
  /** Elements of the head before the first entry. */
  headSize: number;
  document: Element | undefined;
  id: string;
  iban: string | undefined;
  number: number | undefined;
  isLast: boolean;
  place: Parameters<typeof readEntry>[1];
  lines: StatementLine[];
  /** Lines of reversals with the opposite sign. */
  opposite: { at: number; count: number; lines: StatementLine[] }[];
  entries: number;
  /** Entries of each bank reference. */
  ordinals: Map<string | null, number>;
  notice?: string;
}

function beginPage(head: Element, entry?: Element): Page {
  const closing = findBalance(head, ['CLBD']);
  const currency = [textAt(head, 'Acct/Ccy'), find(closing, 'Amt')?.currency];
  const others = [find(head, 'Bal/Amt')?.currency, find(entry, 'Amt')?.currency];
  assertValid(head);
  const account = readHead(
    head,
    [...currency, ...others].find((each) => each !== undefined),
  );
  return {
    ...{ head, headSize: head.children.length, document: undefined },
    ...{ id: account.statement_id, iban: readAccount(head) },
    ...{ number: undefined, isLast: false },
    place: { ...account, to_day: (closing && readDay(closing, 'Dt')) ?? '' },
    ...{ lines: [], opposite: [], entries: 0, ordinals: new Map() },
  };
}

/** Entries that are no part of the balance. */
const NOT_BOOKED = new Set(['PDNG', 'INFO', 'FUTR']);

/** @returns how many lines it has */
function addEntry(page: Page, entry: Element, share: Sharer): number {
  const { place, ordinals, lines } = page;
  const reference = readEntryReference(entry);
  const ordinal = (ordinals.get(reference) ?? 0) + 1;
  ordinals.set(reference, ordinal);
  page.entries += 1;
  if (NOT_BOOKED.has(textAt(entry, 'Sts/Cd') ?? textAt(entry, 'Sts') ?? '')) return 0;
  assertValid(entry);
  const at = lines.length;
  const position = { number: page.entries, ordinal };
  for (const line of readEntry(entry, place, position)) lines.push(compact(line, share));
  const count = lines.length - at;
  if (!isTrueAt(entry, 'RvslInd')) return count;
  const opposite = [...readEntry(entry, place, { ...position, isOpposite: true })];
  page.opposite.push({ at, count, lines: opposite.map((line) => compact(line, share)) });
  return count * 2;
}

type Sharer = <T>(value: T) => T;

/** Lets lines share texts that most of them have. */
function compact(line: StatementLine, share: Sharer): StatementLine {
  line.day = share(line.day);
  line.value_date = share(line.value_date);
  line.currency = share(line.currency);
  line.kind = share(line.kind);
  return line;
}

const AFTER_ENTRIES = /^(?:Addtl|Splmtry)/;

function endPage(page: Page, head: Element, document: Element | undefined): Page {
  assertValid(head);
  const late = head.children.slice(page.headSize).find(({ name }) => !AFTER_ENTRIES.test(name));
  if (page.entries > 0 && late !== undefined) {
    throw fault(`Statement ${page.id} has ${late.name} after its entries.`);
  }
  const number = textAt(head, `${head.name}Pgntn/PgNb`);
  return {
    ...{ ...page, head, document },
    number: number === undefined ? undefined : Number(number),
    isLast: isTrueAt(head, `${head.name}Pgntn/LastPgInd`),
  };
}

type Pages = [Page, ...Page[]];

/** Joins the pages within a message, else within the file. */
function joinPages(pages: readonly Page[]): Pages[] {
  const documents = [...new Set(pages.map(({ document }) => document))];
  const near = documents.flatMap((one) => groupPages(pages.filter((p) => p.document === one)));
  const far = groupPages(near.filter((group) => findLack(group) !== undefined).flat());
  return [...near.filter((group) => findLack(group) === undefined), ...far];
}

function groupPages(pages: readonly Page[]): Pages[] {
  const groups = new Map<string, Pages>();
  for (const page of pages.toSorted((a, b) => Number(a.number) - Number(b.number))) {
    const key = JSON.stringify([page.head.name, page.id, page.iban]);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [page]);
    else group.push(page);
  }
  return [...groups.values()];
}

function findLack(pages: Pages): string | undefined {
  const missing = pages.findIndex(({ number }, at) => number !== at + 1);
  if (missing >= 0) return `page ${missing + 1}`;
  const last = pages.findIndex(({ isLast }) => isLast);
  return last === pages.length - 1 ? undefined : 'its last page';
}

function readPages(pages: Pages): Statement {
  const [first] = pages;
  const last = pages.at(-1) ?? first;
  const statement =
    first.head.name === 'Stmt'
      ? readStatement(first.head, last.head)
      : readNotification(first.head, first.document, first.place.currency);
  const { statement_id, currency, to_day } = statement;
  if (pages.some(({ place }) => place.currency !== currency)) {
    const message = `Statement ${statement_id} has pages of several currencies.`;
    throw new InvalidStatement('wrong_currency', message);
  }
  continueNumbers(pages);
  const lines = joinLines(pages, to_day, (page) => page.lines);
  const opposite = readOpposite(pages, statement, lines);
  const notice = joinNotices([
    ...pages.map((page) => page.notice),
    opposite &&
      `The reversals of statement ${statement_id} were read with the opposite sign: only so do ` +
        'its lines lead to its closing balance.',
  ]);
  return { ...statement, lines: opposite ?? lines, ...(notice === '' ? {} : { notice }) };
}

/** Continues positions from page to page. */
function continueNumbers(pages: Pages): void {
  let entries = 0;
  const ordinals = new Map<string | null, number>();
  for (const page of pages) {
    const lines = [...page.lines, ...page.opposite.flatMap((each) => each.lines)];
    for (const line of pages.length > 1 ? lines : []) {
      line.entry += entries;
      const [ordinal, part] = line.position?.split('.') ?? [];
      if (ordinal === undefined) continue;
      line.position = `${Number(ordinal) + (ordinals.get(line.bank_reference) ?? 0)}.${part}`;
    }
    entries += page.entries;
    for (const [reference, count] of page.ordinals) {
      ordinals.set(reference, (ordinals.get(reference) ?? 0) + count);
    }
  }
}

/** Gives lines without a day that of the statement, which the last page has. */
function joinLines(
  pages: Pages,
  to_day: string,
  listOf: (page: Page) => StatementLine[],
): StatementLine[] {
  const [first] = pages;
  const lines = pages.length === 1 ? listOf(first) : pages.flatMap(listOf);
  for (const line of lines) line.day ||= to_day;
  return lines;
}

/**
 * Reads reversals with the opposite sign, where only that leads to the closing balance: some banks
 * give them the sign of what they reverse.
 */
function readOpposite(
  pages: Pages,
  { balances, to_day }: Head,
  lines: readonly StatementLine[],
): StatementLine[] | undefined {
  if (balances === null || !lines.some(isReversal)) return undefined;
  if (findMissing(balances, lines) === 0n) return undefined;
  const replaced = joinLines(pages, to_day, ({ lines, opposite }) => {
    let from = 0;
    return [...opposite, { at: lines.length, count: 0, lines: [] }].flatMap((each) => {
      const before = lines.slice(from, each.at);
      from = each.at + each.count;
      return [...before, ...each.lines];
    });
  });
  return findMissing(balances, replaced) === 0n ? replaced : undefined;
}

type Head = Omit<Statement, 'lines'>;

function readHead(head: Element, currency: string | undefined) {
  const statement_id = textAt(head, 'Id') ?? '';
  const iban = readAccount(head);
  if (iban === undefined) {
    throw new InvalidStatement(
      'bank_account_unknown',
      `Statement ${statement_id} names its account neither by an IBAN nor by another id.`,
    );
  }
  if (currency === undefined || !isCurrency(currency)) {
    throw new InvalidStatement(
      'wrong_currency',
      `Statement ${statement_id} has no currency that ISO 4217 lists with minor units.`,
    );
  }
  const sequence = textAt(head, 'ElctrncSeqNb') ?? textAt(head, 'LglSeqNb') ?? null;
  return { statement_id, iban, currency, sequence };
}

function readAccount(head: Element): string | undefined {
  const id = textAt(head, 'Acct/Id/IBAN') ?? textAt(head, 'Acct/Id/Othr/Id');
  return id && normalizeAccount(id);
}

/** @param last page with the closing balance, or the same */
function readStatement(head: Element, last: Element): Head {
  const closingBalance = findBalance(last, ['CLBD']);
  const openingBalance = findBalance(head, ['OPBD', 'PRCD']);
  const id = textAt(head, 'Id');
  if (closingBalance === undefined || openingBalance === undefined) {
    throw fault(
      `Statement ${id} lacks its opening balance (OPBD, PRCD) or closing one (CLBD), as a page of a ` +
        'longer one does: import all of its pages in one file.',
    );
  }
  assertValid(openingBalance);
  assertValid(closingBalance);
  const account = readHead(head, textAt(head, 'Acct/Ccy') ?? find(closingBalance, 'Amt')?.currency);
  const [opening, closing] = [openingBalance, closingBalance].map((balance) =>
    readSigned(balance, account),
  );
  const to_day = readDay(closingBalance, 'Dt');
  if (to_day === undefined || opening === undefined || closing === undefined) {
    throw fault(`Statement ${id} has no day.`);
  }
  const isPrevious = textAt(openingBalance, 'Tp/CdOrPrtry/Cd') === 'PRCD';
  const opened = readDay(openingBalance, 'Dt') ?? to_day;
  const from =
    textAt(head, 'FrToDt/FrDtTm')?.slice(0, 10) ?? (isPrevious ? addDays(opened, 1) : opened);
  return {
    ...account,
    balances: { opening, closing },
    from_day: from < to_day ? from : to_day,
    to_day,
  };
}

function findBalance(head: Element, codes: readonly string[]): Element | undefined {
  const balances = findAll(head, 'Bal');
  for (const code of codes) {
    const balance = balances.find((each) => textAt(each, 'Tp/CdOrPrtry/Cd') === code);
    if (balance !== undefined) return balance;
  }
  return undefined;
}

/** @param document with the header of the message */
function readNotification(
  head: Element,
  document: Element | undefined,
  currency: string | undefined,
): Head {
  const created = textAt(head, 'CreDtTm') ?? textAt(document, 'GrpHdr/CreDtTm') ?? '';
  const to_day = (textAt(head, 'FrToDt/ToDtTm') ?? created).slice(0, 10);
  const from_day = (textAt(head, 'FrToDt/FrDtTm') ?? created).slice(0, 10);
  if (!isDay(to_day) || !isDay(from_day)) {
    throw fault(`Notification ${textAt(head, 'Id')} has no day.`);
  }
  return { ...readHead(head, currency), balances: null, from_day, to_day };
}
