import { setImmediate } from 'node:timers/promises';
import type { PayeeResult } from '../../src/domain/banks/callback';
import { nameMovement } from '../../src/domain/banks/movement';
import {
  InvalidStatement,
  isReversal,
  listFileNames,
  parseResourceId,
  type Statement,
  type StatementLine,
} from '../../src/domain/banks/statement';
import { omitUndefined } from '../../src/domain/defined';
import { parseDecimalMoney } from '../../src/domain/money/money';
import type { MovementReference } from '../../src/service/banks/sepa/book';
import { createCamtReader } from '../../src/statements/camt';
import { type FileSource, readFiles } from '../../src/statements/intake';
import { parseReference } from '../../src/statements/reference';
import {
  ANSWER_MESSAGES,
  assertValid,
  type Element,
  findAll,
  type MessageFamily,
  type Part,
  readMessages,
  STATEMENT_MESSAGES,
  textAt,
} from '../../src/statements/xml';

export interface StatusReport {
  /** `MsgId` of the file. */
  file_id: string;
  /** `MsgId` of the message. */
  message_id: string | null;
  /** `CreDtTm`, ISO 8601 in UTC; null: not a time. */
  created_at: string | null;
  status: string | null;
  code: string | null;
  /** Those that have a status. */
  payouts: PayoutStatus[];
  verification: FileVerification | null;
}

interface PayoutStatus {
  payout_id: string;
  status: string;
  code: string | null;
  /** The payout has no status of its own. */
  isOfBatch?: true;
}

/** Results of a check of the recipients' names in a file. @see docs/sepa.md#verification-of-payee */
export interface FileVerification {
  /** Whether it says nothing else, so that the bank may hold the file. */
  isAlone: boolean;
  results: ReadonlyMap<string, PayeeResult>;
  /** Result of the payouts that are not `listed`; null: none. */
  others: PayeeResult | null;
  listed: readonly string[];
}

/** The last two are corrections of the bank. */
type MovementKind = 'booked' | 'returned' | 'debit_reversed' | 'return_reversed';

export interface Movement {
  payout_id: string;
  kind: MovementKind;
  source: MovementReference['source'];
  /** Minor units, before the bank's charges. */
  amount: number;
  /** Amounts that it may be instead: after charges, or before other ones. */
  readings?: readonly number[];
  currency: string;
  value_date: string | null;
  bank_reference: string | null;
  /** The bank's name for the entry that it is a part of, or for the only part. */
  also?: string;
  /** ISO code of a return. */
  code: string | null;
}

type Money = Omit<Movement, 'payout_id' | 'kind' | 'code'>;

export interface Credit extends Money {
  reference: string;
  /** The bank takes it back. */
  isReversal?: true;
}

/** Entry that may be about a whole file. */
export interface FileSum extends Money {
  kind: MovementKind;
  /** IDs that it names; one may be that of a file. */
  names: readonly string[];
  /** Number of payouts; null: not stated. */
  count: number | null;
}

/** Booking with a text that may name what it is about. */
export interface Mentioning extends Money {
  /** Null: a transfer to us. */
  kind: 'booked' | 'returned' | null;
  code: string | null;
  mentions: readonly string[];
  /** Name in its own field, which counts where it is one of ours; so does `reference`. */
  payout_id: string | null;
  reference: string | null;
}

/** An answer, or all that a file has of another kind; a notice is about what is not read. */
export type BankMessage = { message: string; notices?: string[] } & (
  | { kind: 'status'; reports: StatusReport[] }
  | { kind: 'returns'; movements: Movement[] }
  | ({ kind: 'statements'; statements: Statement[] } & Bookings)
);

/** Bookings of the connector's own account. */
export interface Bookings {
  movements: Movement[];
  credits: Credit[];
  sums: FileSum[];
  mentioning: Mentioning[];
}

const SEPA_MESSAGES: MessageFamily = {
  kinds: { ...STATEMENT_MESSAGES.kinds, ...ANSWER_MESSAGES },
  expected: 'this connector reads pain.002, camt.053, camt.054 and pacs.004',
};

/**
 * Reads all messages of a file, or of a ZIP of files, and no personal data: answers to our files
 * first, all oldest first.
 * @param iban account whose bookings count; absent: all
 * @throws InvalidStatement
 */
export async function readBankMessages(source: FileSource, iban?: string): Promise<BankMessage[]> {
  const answers: { created: number; answer: BankMessage }[] = [];
  const camt = createCamtReader();
  const returned: Movement[] = [];
  const [camtNames, returnNames] = [new Set<string>(), new Set<string>()];
  let note = camt.note;
  const take = (part: Part): Element | undefined => {
    const { message, element, parent } = part;
    if (message.startsWith('camt')) {
      note = camt.note;
      camtNames.add(message);
      return camt.take(part);
    }
    assertValid(element);
    if (message.startsWith('pain')) {
      const created = Date.parse(textAt(element, 'GrpHdr/CreDtTm') ?? '');
      const answer: BankMessage = { message, kind: 'status', reports: [readStatus(element)] };
      answers.push({ created, answer });
      note = (notice) => {
        answer.notices = [...(answer.notices ?? []), notice];
      };
    } else {
      returnNames.add(message);
      if (element.name === 'TxInf') returned.push(...readReturn(element, parent));
      note = () => {};
    }
    return undefined;
  };
  const reader = { take, note: (notice: string) => note(notice) };
  await readFiles(source, (file) => readMessages(file, SEPA_MESSAGES, reader));
  const messages = answers.toSorted((a, b) => a.created - b.created).map(({ answer }) => answer);
  if (returnNames.size > 0) {
    messages.push({ message: joinNames(returnNames), kind: 'returns', movements: returned });
  }
  const statements = camt.end();
  if (camtNames.size > 0) {
    const own = statements.filter((each) => iban === undefined || each.iban === iban);
    const bookings = await readBookings(own);
    messages.push({ message: joinNames(camtNames), kind: 'statements', statements, ...bookings });
  }
  if (messages.length === 0) throw new InvalidStatement('file_invalid', 'The ZIP has no file.');
  return messages;
}

function joinNames(names: ReadonlySet<string>): string {
  return [...names].join(', ');
}

/** Lines between two pauses. */
const BATCH = 10_000;

async function readBookings(statements: readonly Statement[]): Promise<Bookings> {
  const all: Bookings = { movements: [], credits: [], sums: [], mentioning: [] };
  for (const statement of statements) {
    const { lines } = statement;
    for (let at = 0; at < lines.length; ) {
      let end = at + BATCH;
      const most = Math.min(lines.length, end + BATCH);
      // The parts of an entry are summed up: a file of ours has no more.
      while (end < most && lines[end]?.entry === lines[end - 1]?.entry) end += 1;
      const some = { ...statement, lines: lines.slice(at, end) };
      at = end;
      addLines(some, all);
      for (const sum of readSums(some)) all.sums.push(sum);
      for (const mention of readMentioning(some)) all.mentioning.push(mention);
      await setImmediate();
    }
  }
  return all;
}

function readStatus(report: Element): StatusReport {
  const batches = findAll(report, 'OrgnlPmtInfAndSts');
  const payouts = batches.flatMap((batch) => {
    const batchCode = readReason([batch]);
    return findAll(batch, 'TxInfAndSts').flatMap((transaction) => {
      const payout_id = readPayoutId(transaction);
      const own = textAt(transaction, 'TxSts');
      const status = own ?? textAt(batch, 'PmtInfSts');
      if (payout_id === null || status === undefined) return [];
      const code = readReason([transaction]);
      if (own !== undefined) return [{ payout_id, status, code }];
      return [{ payout_id, status, code: code ?? batchCode, isOfBatch: true as const }];
    });
  });
  const group = findAll(report, 'OrgnlGrpInfAndSts')[0];
  const header = findAll(report, 'GrpHdr')[0];
  const text = textAt(header, 'CreDtTm') ?? '';
  // One without an offset is read as UTC.
  const time = new Date(/(?:Z|[+-]\d\d:\d\d)$/.test(text) ? text : `${text}Z`);
  const [batch] = batches;
  // A file has one batch: whatever the group says, its status is that of the file.
  const statuses = [textAt(batch, 'PmtInfSts'), textAt(group, 'GrpSts')].filter(
    (status) => status !== undefined,
  );
  const listed = batches
    .flatMap((each) => findAll(each, 'TxInfAndSts'))
    .map(readPayoutId)
    .filter((id) => id !== null);
  return {
    file_id: (textAt(group, 'OrgnlMsgId') ?? '').toLowerCase(),
    message_id: parseReference(textAt(header, 'MsgId')),
    created_at: Number.isNaN(time.getTime()) ? null : time.toISOString(),
    status: statuses[0] ?? null,
    code: readReason([batch, group]),
    payouts,
    verification: readVerification(statuses, payouts, listed),
  };
}

const RESULTS: Partial<Record<string, PayeeResult>> = {
  RCVC: 'match',
  RVMC: 'close_match',
  RVNM: 'no_match',
  RVNA: 'not_possible',
};
/** Statuses of a file with which payouts that it does not list match. */
const CHECKED: readonly string[] = ['RCVC', 'RCVM'];
/** With `RVNC`, there is no result yet. */
export const VERIFICATION: readonly string[] = [...Object.keys(RESULTS), 'RCVM', 'RVNC'];
/** Statuses of a file that waits at the bank. */
export const PENDING: readonly string[] = ['PDNG', 'RCVD', 'ACTC'];

/** @param statuses of the batch, then of the group */
function readVerification(
  statuses: readonly string[],
  payouts: StatusReport['payouts'],
  listed: readonly string[],
): FileVerification | null {
  const own = statuses.find((status) => VERIFICATION.includes(status));
  if (own === undefined && !payouts.some(({ status }) => VERIFICATION.includes(status)))
    return null;
  const results = payouts.flatMap(({ payout_id, status }) => {
    const result = RESULTS[status];
    return result === undefined ? [] : [[payout_id, result] as const];
  });
  const [status] = statuses;
  const isAlone = status === undefined || VERIFICATION.includes(status) || PENDING.includes(status);
  const unlisted = CHECKED.includes(own ?? '') ? 'match' : null;
  // Where it lists nobody, the status of the file is that of all.
  const others = listed.length > 0 ? unlisted : (RESULTS[own ?? ''] ?? null);
  return { isAlone, results: new Map(results), others, listed };
}

/** Whether the customer withdrew it at the bank, or its time to release it is over. */
export function isWithdrawn(code: string | null): code is string {
  return code !== null && ['DS02', 'DS24', 'DS25'].includes(code);
}

/**
 * Reasons of a rejection by which what it names had arrived before: the first copy may be executed.
 * @see ISO 20022 external code list
 */
const ARRIVED_BEFORE = new Set(['DUPL', 'AM05', 'DU01', 'DU02', 'DU03', 'DU04', 'DU05']);

export function hasArrivedBefore(code: string | null): code is string {
  return code !== null && ARRIVED_BEFORE.has(code);
}

/** Reads the first of several reasons, but one that says that it had arrived before any other. */
function readReason(elements: readonly (Element | undefined)[]): string | null {
  const reasons = elements.flatMap((element) => findAll(element, 'StsRsnInf'));
  const codes = reasons.map((reason) => readCode(reason, 'Rsn')).filter((code) => code !== null);
  return codes.find(hasArrivedBefore) ?? codes[0] ?? null;
}

function readPayoutId(transaction: Element): string | null {
  return (
    parseResourceId(textAt(transaction, 'OrgnlEndToEndId') ?? null) ??
    parseResourceId(textAt(transaction, 'OrgnlInstrId') ?? null)
  );
}

/** Reads an ISO code, or the bank's own of the same form. */
function readCode(element: Element | undefined, path: string): string | null {
  const code = textAt(element, `${path}/Cd`) ?? textAt(element, `${path}/Prtry`) ?? '';
  return /^[A-Z0-9]{2,8}$/.test(code) ? code : null;
}

/** @param message with the day of all its returns, in some versions */
function readReturn(transaction: Element, message: Element | undefined): Movement[] {
  const payout_id = readPayoutId(transaction);
  const amount = readMoney(findAll(transaction, 'RtrdIntrBkSttlmAmt')[0]);
  if (payout_id === null || amount === undefined) return [];
  const charges = findAll(transaction, 'ChrgsInf').map((each) =>
    readMoney(findAll(each, 'Amt')[0]),
  );
  const own = charges.filter((charge) => charge?.currency === amount.currency);
  const day = textAt(message, 'GrpHdr/IntrBkSttlmDt');
  const charged = own.reduce((sum, charge) => sum + (charge?.minor ?? 0), 0);
  return [
    {
      ...{ payout_id, kind: 'returned', source: 'interbank', currency: amount.currency },
      amount: amount.minor + charged,
      value_date: (textAt(transaction, 'IntrBkSttlmDt') ?? day)?.slice(0, 10) ?? null,
      bank_reference: parseReference(textAt(transaction, 'RtrId')),
      code: readCode(transaction, 'RtrRsnInf/Rsn'),
    },
  ];
}

function readMoney(element: Element | undefined) {
  const { text = '', currency = '' } = element ?? {};
  const minor = parseDecimalMoney(text, currency);
  return minor === undefined ? undefined : { minor, currency };
}

function addLines({ lines, balances }: Statement, { movements, credits }: Bookings): void {
  for (const line of lines) {
    if (line.is_fee) continue;
    const money = describeMoney(line, balances);
    const payout_id = parseResourceId(line.reference);
    const { creditor_reference: reference, amount, kind } = line;
    if (payout_id !== null) {
      movements.push({ ...money, payout_id, kind: readKind(line), code: readReturnCode(line) });
      // What comes back has the reference of its original.
    } else if (reference !== undefined && isReversal(line) !== amount > 0 && !RETURNED.test(kind)) {
      credits.push({ ...money, reference, ...(isReversal(line) ? { isReversal: true } : {}) });
    }
  }
}

function readReturnCode({ kind }: StatementLine): string | null {
  return /\breturn ([A-Z0-9]{2,8})$/.exec(kind)?.[1] ?? null;
}

/** @see ISO 20022 external code list, BankTransactionSubFamily: returns and recalls */
const RETURNED = /\breturn\b|[.](?:RRTN|RPCR)\b/;

/** A correction of the bank is no return, which has a code. */
function readKind(line: StatementLine): MovementKind {
  const { amount, kind } = line;
  if (amount < 0) return isReversal(line) ? 'return_reversed' : 'booked';
  return isReversal(line) && !RETURNED.test(kind) ? 'debit_reversed' : 'returned';
}

/** Reads each entry as one, also where it has parts. */
function readSums({ lines, balances }: Statement): FileSum[] {
  const entries = new Map<number, StatementLine[]>();
  for (const line of lines.filter(({ is_fee }) => !is_fee)) {
    const parts = entries.get(line.entry);
    if (parts === undefined) entries.set(line.entry, [line]);
    else parts.push(line);
  }
  return [...entries.values()].flatMap((parts): FileSum[] => {
    const names = [...new Set(parts.flatMap(listFileNames))];
    const [first] = parts;
    if (first === undefined || names.length === 0) return [];
    const about = { kind: readKind(first), names, count: first.batch };
    const money = describeMoney(first, balances);
    if (parts.length === 1) return [{ ...money, ...about }];
    const sum = (measure: (line: StatementLine) => number) =>
      Math.abs(parts.reduce((total, line) => total + measure(line), 0));
    const isPlace = first.position !== undefined;
    const bank_reference = first.entry_reference ?? (isPlace ? first.bank_reference : null);
    const amount = sum((line) => line.amount + line.fee);
    const whole = { amount, readings: [sum((line) => line.amount)], bank_reference };
    return [omitUndefined({ ...money, ...about, ...whole, also: undefined })];
  });
}

function readMentioning({ lines, balances }: Statement): Mentioning[] {
  return lines.flatMap((line) => {
    const { mentions, is_fee, amount, creditor_reference: reference = null } = line;
    const isReturn = RETURNED.test(line.kind);
    if (mentions === undefined || is_fee || (isReversal(line) && !isReturn)) return [];
    const isIn = amount > 0;
    if (isReturn && !isIn) return [];
    const kind = isReturn ? ('returned' as const) : isIn ? null : ('booked' as const);
    const named = { mentions, reference, payout_id: parseResourceId(line.reference) };
    return [{ ...describeMoney(line, balances), ...named, kind, code: readReturnCode(line) }];
  });
}

function describeMoney(line: StatementLine, balances: Statement['balances']): Money {
  const { amount, fee, charges = [], currency, value_date, day, position } = line;
  const { bank_reference, entry_reference, part_reference } = line;
  const gross = amount + fee;
  const others = [amount, ...charges.map((charge) => amount + charge)];
  const readings = [...new Set(others)].filter((each) => each !== gross).map(Math.abs);
  const also = entry_reference ?? part_reference ?? (position && bank_reference);
  return {
    source: balances === null ? ('notification' as const) : ('statement' as const),
    ...{ amount: Math.abs(gross), currency, bank_reference: nameMovement(line) },
    value_date: value_date ?? day,
    ...(readings.length > 0 ? { readings } : {}),
    ...(also ? { also } : {}),
  };
}
