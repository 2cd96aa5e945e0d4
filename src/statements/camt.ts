import type { XmlElement } from 'libxml2-wasm';
import { isCurrency } from '../domain/currencies';
import { normalizeAccount } from '../domain/iban';
import {
  addDays,
  InvalidStatement,
  isReversal,
  type Statement,
  type StatementLine,
} from '../domain/statement';
import { fault, readDay, readEntry, readEntryReference, readSigned } from './camt-entry';
import { findMissing } from './check';
import {
  childElements,
  type Element,
  find,
  findAll,
  isTrueAt,
  readElement,
  textAt,
  type Xml,
} from './xml';

const STATEMENTS: Readonly<Record<string, readonly [group: string, statement: string]>> = {
  'camt.053': ['BkToCstmrStmt', 'Stmt'],
  'camt.054': ['BkToCstmrDbtCdtNtfctn', 'Ntfctn'],
};

/** @throws InvalidStatement */
export function readCamt({ message, root }: Xml): Statement[] {
  const [containers = '', name = ''] = STATEMENTS[message.slice(0, 'camt.053'.length)] ?? [];
  return [...childElements(root, containers)].flatMap((container) => {
    const group = readElement(container, name);
    const elements = [...childElements(container, name)];
    return joinPages(elements.map((each) => readPage(each, `${name}Pgntn`))).map((pages) => {
      const [{ head: first, element, id: statement_id, iban }] = pages;
      const { head: last } = pages.at(-1) ?? pages[0];
      try {
        const statement =
          name === 'Stmt' ? readStatement(first, last) : readNotification(first, group, element);
        const lines = [...readLines(pages, statement)];
        return readOpposite(pages, statement, lines) ?? { ...statement, lines };
      } catch (error) {
        const isAlone = elements.length === 1 || iban === undefined;
        if (isAlone || !(error instanceof InvalidStatement)) throw error;
        // Statements of other accounts in the file are not concerned.
        const nothing = { currency: '', balances: null, from_day: '', to_day: '', sequence: null };
        return { statement_id, iban, ...nothing, lines: [], fault: error };
      }
    });
  });
}

/**
 * Reads reversals with the opposite sign, where only that leads to the closing balance: some banks
 * give them the sign of what they reverse.
 */
function readOpposite(
  pages: Pages,
  statement: Head,
  lines: readonly StatementLine[],
): Statement | undefined {
  const { balances, statement_id } = statement;
  if (balances === null || !lines.some(isReversal)) return undefined;
  if (findMissing(balances, lines) === 0n) return undefined;
  const opposite = [...readLines(pages, statement, true)];
  if (findMissing(balances, opposite) !== 0n) return undefined;
  const notice =
    `The reversals of statement ${statement_id} were read with the opposite sign: only so do its ` +
    'lines lead to its closing balance.';
  return { ...statement, lines: opposite, notice };
}

function* readLines(pages: Pages, statement: Head, isOpposite = false): Generator<StatementLine> {
  let number = 0;
  const ordinals = new Map<string | null, number>();
  for (const { element } of pages) {
    for (const child of childElements(element, 'Ntry')) {
      const entry = readElement(child);
      const reference = readEntryReference(entry);
      const ordinal = (ordinals.get(reference) ?? 0) + 1;
      ordinals.set(reference, ordinal);
      number += 1;
      yield* readEntry(entry, statement, { number, ordinal, isOpposite });
    }
  }
}

type Head = Omit<Statement, 'lines'>;

interface Page {
  element: XmlElement;
  head: Element;
  id: string;
  iban: string | undefined;
  number: number | undefined;
  isLast: boolean;
}

function readPage(element: XmlElement, pagination: string): Page {
  const head = readElement(element, 'Ntry');
  const number = textAt(head, `${pagination}/PgNb`);
  return {
    ...{ element, head, id: textAt(head, 'Id') ?? '', iban: readAccount(head) },
    number: number === undefined ? undefined : Number(number),
    isLast: isTrueAt(head, `${pagination}/LastPgInd`),
  };
}

type Pages = [Page, ...Page[]];

/** @throws InvalidStatement when a page is missing */
function joinPages(all: readonly Page[]): Pages[] {
  const whole: Pages[] = [];
  const paged = new Map<string, Pages>();
  for (const page of all.toSorted((a, b) => (a.number ?? 0) - (b.number ?? 0))) {
    const { id, iban, number } = page;
    const key = JSON.stringify([id, iban]);
    const pages = paged.get(key);
    if (number === undefined) whole.push([page]);
    else if (pages === undefined) paged.set(key, [page]);
    else pages.push(page);
  }
  for (const pages of paged.values()) {
    const missing = pages.findIndex(({ number }, at) => number !== at + 1);
    const last = pages.findIndex(({ isLast }) => isLast);
    if (missing < 0 && last === pages.length - 1) continue;
    const which = missing < 0 ? 'its last page' : `page ${missing + 1}`;
    throw fault(
      `Statement ${pages[0].id} lacks ${which}: import a file with all of its pages, once each.`,
    );
  }
  return [...whole, ...paged.values()];
}

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

/** Accounts often have no currency: then the first entry's counts. */
function readNotification(head: Element, group: Element, page: XmlElement): Head {
  const created = textAt(head, 'CreDtTm') ?? textAt(group, 'GrpHdr/CreDtTm') ?? '';
  const to_day = (textAt(head, 'FrToDt/ToDtTm') ?? created).slice(0, 10);
  const from_day = (textAt(head, 'FrToDt/FrDtTm') ?? created).slice(0, 10);
  const [entry] = childElements(page, 'Ntry');
  const currency = textAt(head, 'Acct/Ccy') ?? find(entry && readElement(entry), 'Amt')?.currency;
  return { ...readHead(head, currency), balances: null, from_day, to_day };
}
