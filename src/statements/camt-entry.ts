import {
  InvalidStatement,
  parseResourceId,
  type Statement,
  type StatementLine,
} from '../domain/banks/statement';
import { parseDecimalMoney } from '../domain/money/money';
import { findCreditorReference } from '../domain/payment/creditor-reference';
import { parseReference } from './reference';
import { CREDITOR_REFERENCE, type Element, find, findAll, isTrueAt, MENTION, textAt } from './xml';

/** @see ISO 20022 external code list, BankTransactionSubFamily */
const CHARGES = new Set(['CHRG', 'COMM', 'COME', 'COMI', 'COMT', 'FEES']);

type Place = Pick<Statement, 'statement_id' | 'currency' | 'to_day'>;

interface OwnNames {
  reference: string | null;
  /** The reference has the form of our IDs. */
  isId: boolean;
  creditor_reference: string | undefined;
  /** `PmtInfId` and `MsgId`. */
  files: readonly string[];
  mentions: readonly string[];
}

interface Codes {
  /** Codes of the bank; undefined: none. */
  own: string | undefined;
  isCharge: boolean | undefined;
  /** `return AC04`. */
  returned: string | undefined;
}

/** Transaction in a form that takes little memory: an entry may have very many. */
interface EntryPart extends Element {
  amounts: readonly Element[];
  bank_reference: string | null;
  names: OwnNames;
  codes: Codes;
}

/** Reads a transaction before its entry ends. @param share returns one object for all that are equal */
export function readPart(element: Element, share: <T>(value: T) => T): EntryPart {
  const { children, name, text, currency } = element;
  const money = children.filter((child) => child.name === 'CdtDbtInd' || child.name === 'Chrgs');
  return {
    name,
    text,
    currency,
    fault: element.fault,
    children: share(money),
    amounts: findAllAt(element, PART_AMOUNTS),
    bank_reference: parseReference(textAt(element, 'Refs/AcctSvcrRef')),
    names: readNames(element),
    codes: share(readCodes(element)),
  };
}

function isPart(element: Element): element is EntryPart {
  return 'codes' in element;
}

export interface EntryPlace {
  /** Position in the statement. */
  number: number;
  /** Position among the entries with its bank reference, in any message about them. */
  ordinal: number;
  /** A reversal has the sign of what it reverses. */
  isOpposite?: boolean;
}

export function readEntryReference(entry: Element): string | null {
  return parseReference(textAt(entry, 'AcctSvcrRef'));
}

/** Reads several lines for a batch whose parts add up; none for an entry of 0. */
export function* readEntry(
  entry: Element,
  place: Place,
  { number, ordinal, isOpposite = false }: EntryPlace,
): Generator<StatementLine> {
  // Pending and informative entries are no part of the balance.
  if ((textAt(entry, 'Sts/Cd') ?? textAt(entry, 'Sts')) !== 'BOOK') return;
  const sign = isOpposite && isTrueAt(entry, 'RvslInd') ? -1 : 1;
  const amount = readSigned(entry, place) * sign || 0;
  if (amount === 0) return;
  const day = readDay(entry, 'BookgDt') ?? readDay(entry, 'ValDt') ?? place.to_day;
  const parts = findAll(entry, 'NtryDtls/TxDtls').filter(isPart);
  const [first] = parts;
  const only = parts.length === 1 ? first : undefined;
  const codes = readCodes(entry);
  const isReversal = isTrueAt(entry, 'RvslInd');
  const booked = {
    day,
    value_date: readDay(entry, 'ValDt') ?? null,
    currency: place.currency,
    kind: describeKind(codes, isReversal, only?.codes),
    is_fee: codes.isCharge ?? false,
    entry: number,
    bank_reference: readEntryReference(entry),
  };
  const { bank_reference } = booked;
  const files = ['PmtInfId', 'MsgId'].flatMap((name) => readTexts(entry, `NtryDtls/Btch/${name}`));
  const money = { ...place, isReversal };
  const split =
    parts.length > 1 ? splitEntry(entry, { parts, amount, sign, place: money }) : undefined;
  if (split !== undefined) {
    for (const [index, part] of parts.entries()) {
      const own = split.lines[index];
      if (own === undefined || own.amount === 0) continue;
      const { bank_reference: of_part } = part;
      const isPlace = of_part === null && bank_reference !== null;
      const line = buildLine(booked, own, describeOurs(part.names, part.names.mentions, files));
      line.kind = describeKind(codes, isReversal, part.codes);
      line.is_fee = part.codes.isCharge ?? booked.is_fee;
      line.batch = parts.length;
      line.bank_reference = of_part ?? bank_reference;
      if (isOther(of_part, bank_reference)) line.entry_reference = bank_reference;
      if (isPlace) line.position = `${ordinal}.${index + 1}`;
      yield line;
    }
    if (split.fee === 0) return;
    yield buildLine({ ...booked, is_fee: true }, { amount: -split.fee, fee: 0 });
    return;
  }
  const of_part = first?.bank_reference ?? null;
  const counts = readTexts(entry, 'NtryDtls/Btch/NbOfTxs').map(Number);
  const count = counts.length > 0 ? add(counts) : parts.length;
  const texts = [only?.names.mentions ?? [], readTexts(entry, MENTION)].flat();
  const ours = describeOurs(only?.names, texts, files);
  // One payout of a file is said to be one.
  const isCounted = count > 1 || (ours.files !== undefined && counts.length > 0);
  const line = buildLine(booked, { amount, ...readFee([only, entry], amount, money) }, ours);
  line.bank_reference = bank_reference ?? of_part;
  if (only !== undefined && isOther(bank_reference, of_part)) line.part_reference = of_part;
  if (isCounted) line.batch = count;
  yield line;
}

type Booked = Omit<StatementLine, 'amount' | 'fee' | 'reference' | 'batch'>;
type Moved = Pick<StatementLine, 'amount' | 'fee' | 'charges'>;
type Ours = Pick<StatementLine, 'reference' | 'creditor_reference' | 'files' | 'mentions'>;

/** Builds a line in a form that takes a third of the memory of one by spreads. */
function buildLine(
  { day, value_date, currency, bank_reference, kind, is_fee, entry }: Booked,
  { amount, fee, charges }: Moved,
  { reference, creditor_reference, files, mentions }: Ours = { reference: null },
): StatementLine {
  const line: StatementLine = {
    day,
    value_date,
    amount,
    currency,
    reference,
    bank_reference,
    fee,
    batch: null,
    kind,
    is_fee,
    entry,
  };
  if (creditor_reference !== undefined) line.creditor_reference = creditor_reference;
  if (charges !== undefined) line.charges = charges;
  if (files !== undefined) line.files = files;
  if (mentions !== undefined) line.mentions = mentions;
  return line;
}

function isOther(own: string | null, other: string | null): other is string {
  return own !== null && other !== null && own !== other;
}

/**
 * Reads the lines of parts that add up, each less its charges or not.
 * @returns undefined where they do not; `fee`: charges of the whole entry
 */
function splitEntry(
  entry: Element,
  {
    parts,
    amount,
    sign,
    place,
  }: { parts: readonly EntryPart[]; amount: number; sign: number; place: Money },
): { lines: Moved[]; fee: number } | undefined {
  const amounts = parts.map((part) => {
    const own = part.amounts.find(({ currency }) => currency === place.currency);
    if (own === undefined) return Number.NaN;
    return readAmount(own, place) * readSign(part, Math.sign(amount) * sign) * sign || 0;
  });
  const sum = add(amounts);
  if (sum === amount) {
    const lines = amounts.map((own, index) => ({
      amount: own,
      ...readFee([parts[index]], own, place),
    }));
    return { lines, fee: 0 };
  }
  const ofEntry = [0, ...listFees(entry, place)];
  const plain = ofEntry.find((fee) => sum - fee === amount);
  if (plain !== undefined) {
    return { lines: amounts.map((own) => ({ amount: own, fee: 0 })), fee: plain };
  }
  const ofParts = parts.map((part) => listFees(part, place));
  for (const rank of FEE_RANKS) {
    const fees = ofParts.map((each) => each[Math.min(rank, each.length - 1)] ?? 0);
    const fee = ofEntry.find((each) => sum - add(fees) - each === amount);
    if (fee === undefined) continue;
    const lines = amounts.map((own, index) => ({
      amount: own - (fees[index] ?? 0),
      fee: fees[index] ?? 0,
    }));
    return { lines, fee };
  }
  return undefined;
}

const add = (amounts: readonly number[]) => amounts.reduce((total, each) => total + each, 0);

/** Form of the `MsgId` and `PmtInfId` that we write. */
const FILE_ID = /^[0-9a-f]{32}$/;

const findAllAt = (element: Element | undefined, paths: readonly string[]) =>
  paths.flatMap((path) => findAll(element, path));
const readTexts = (element: Element | undefined, path: string) =>
  findAll(element, path).map(({ text }) => text);

function readNames(part: Element): OwnNames {
  const end_to_end_id = textAt(part, 'Refs/EndToEndId') ?? '';
  const original = findAll(part, 'Refs/Prtry').find(
    (each) => textAt(each, 'Tp') === 'OrgnlEndToEndId',
  );
  const reference = parseReference(textAt(original, 'Ref') ?? end_to_end_id);
  return {
    reference,
    isId: parseResourceId(reference) !== null,
    // Payers may also give our reference as `EndToEndId`.
    creditor_reference:
      textAt(part, CREDITOR_REFERENCE) ?? findCreditorReference([end_to_end_id]) ?? undefined,
    files: ['PmtInfId', 'MsgId'].flatMap((name) => readTexts(part, `Refs/${name}`)),
    mentions: readTexts(part, MENTION),
  };
}

const NO_NAMES = { reference: null, isId: false, creditor_reference: undefined, files: [] };

/** Describes what of ours a part names; also its entry, where it has no other. */
function describeOurs(
  { reference, isId, files: ofPart, creditor_reference }: Omit<OwnNames, 'mentions'> = NO_NAMES,
  mentions: readonly string[],
  ofBatch: readonly string[],
): Ours {
  const names = [...ofBatch, ...ofPart].map((name) => name.toLowerCase());
  const files = [...new Set(names.filter((name) => FILE_ID.test(name)))];
  const isOther = isId && !names.includes(String(reference).toLowerCase());
  const ours: Ours = { reference };
  if (creditor_reference !== undefined) ours.creditor_reference = creditor_reference;
  if (files.length > 0 && !isOther) ours.files = files;
  if (mentions.length > 0) ours.mentions = [...new Set(mentions)];
  return ours;
}

const PART_AMOUNTS = ['Amt', 'AmtDtls/TxAmt/Amt', 'AmtDtls/InstdAmt/Amt'];
/** That of an entry itself differs from itself by nothing. */
const GROSS = [...PART_AMOUNTS, 'NtryDtls/Btch/TtlAmt'];

/**
 * Reads charges within the amount: those by which it differs from one that is stated next to it, or
 * those that say so. Others may be in it, too, or an entry of their own.
 * @param levels part and entry
 */
function readFee(
  levels: readonly (Element | undefined)[],
  amount: number,
  place: Money,
): Pick<StatementLine, 'fee' | 'charges'> {
  if (levels.every((each) => find(each, 'Chrgs') === undefined)) return { fee: 0 };
  const ofLevels = levels.map((each) => listFees(each, place));
  const all = add(ofLevels.map(([first = 0]) => first));
  const fees = [...new Set([...ofLevels.flat(), all])].filter((fee) => fee !== 0);
  if (fees.length === 0) return { fee: 0 };
  const proved = levels
    .flatMap((each) => (each && isPart(each) ? each.amounts : findAllAt(each, GROSS)))
    .filter(({ currency }) => currency === place.currency)
    .map((each) => readAmount(each, place) * Math.sign(amount) - amount)
    .find((fee) => fees.includes(fee));
  if (proved !== undefined) return { fee: proved };
  const records = levels.map(readRecords).find((each) => each.length > 0) ?? [];
  const included = records.filter((record) => isTrueAt(record, 'ChrgInclInd'));
  const fee = sumFees(included, ['Amt', 'Tax/Amt'], place);
  const charges = fees.filter((each) => each !== fee);
  return charges.length === 0 ? { fee } : { fee, charges };
}

/** Places in the fees of a part. */
const FEE_RANKS = [0, 1, 2, 3, 4, 5];

/**
 * Lists what the charges of an element may sum up to: their total, or the records with their tax, or
 * without it. A charge lowers what comes in; a reversal may give it back.
 */
function listFees(element: Element | undefined, place: Money): number[] {
  const records = readRecords(element);
  const fees = [
    sumFees(findAll(element, 'Chrgs'), ['TtlChrgsAndTaxAmt'], place),
    sumFees(records, ['Amt', 'Tax/Amt'], place),
    sumFees(records, ['Amt'], place),
  ].filter((fee) => fee !== 0);
  const signs = place.isReversal ? [1, -1] : [1];
  return [...new Set(signs.flatMap((sign) => fees.map((fee) => fee * sign)))];
}

function readRecords(element: Element | undefined): readonly Element[] {
  const records = findAll(element, 'Chrgs/Rcrd');
  return records.length > 0 ? records : findAll(element, 'Chrgs');
}

function sumFees(records: readonly Element[], paths: readonly string[], place: Money): number {
  return add(
    records.map((record) => {
      const amounts = paths
        .flatMap((path) => findAll(record, path))
        .filter(({ currency }) => currency === place.currency);
      return -add(amounts.map((amount) => readAmount(amount, place))) * readSign(record, -1);
    }),
  );
}

function readCodes(element: Element): Codes {
  const code = find(element, 'BkTxCd');
  const paths = ['Domn/Cd', 'Domn/Fmly/Cd', 'Domn/Fmly/SubFmlyCd'];
  const names = paths.flatMap((path) => textAt(code, path) ?? []);
  const sub = textAt(code, 'Domn/Fmly/SubFmlyCd');
  const reason = textAt(element, 'RtrInf/Rsn/Cd') ?? '';
  return {
    own: code && (names.length > 0 ? names.join('.') : (textAt(code, 'Prtry/Cd') ?? '')),
    isCharge: sub === undefined ? undefined : CHARGES.has(sub),
    returned: find(element, 'RtrInf') && `return ${reason}`.trim(),
  };
}

/** Describes a line by the bank's codes: `PMNT.ICDT.RRTN return AC04`. */
function describeKind(entry: Codes, isReversal: boolean, part?: Codes): string {
  const words = [part?.own ?? entry.own, isReversal ? 'reversal' : '', part?.returned];
  return words.filter(Boolean).join(' ');
}

type Money = Pick<Place, 'statement_id' | 'currency'> & { isReversal?: boolean };

export function readDay(element: Element, path: string): string | undefined {
  return (textAt(element, `${path}/Dt`) ?? textAt(element, `${path}/DtTm`))?.slice(0, 10);
}

function readAmount(amount: Element, { statement_id, currency }: Money): number {
  if (amount.currency !== currency) {
    throw new InvalidStatement(
      'wrong_currency',
      `Statement ${statement_id} is in ${currency}, and has an amount in ${amount.currency}.`,
    );
  }
  const minor = parseDecimalMoney(amount.text, currency);
  if (minor !== undefined) return minor;
  throw fault(`Statement ${statement_id} has an amount that is no exact number of ${currency}.`);
}

/** Reads an amount; above 0 is credit. */
export function readSigned(element: Element, place: Money): number {
  const amount = find(element, 'Amt');
  if (amount === undefined) throw fault(`Statement ${place.statement_id} lacks an amount.`);
  // Avoids -0, which is shown otherwise.
  return readAmount(amount, place) * readSign(element) || 0;
}

function readSign(element: Element, otherwise = 1): number {
  const direction = textAt(element, 'CdtDbtInd');
  if (direction === undefined) return otherwise;
  return direction === 'DBIT' ? -1 : 1;
}

export function fault(message: string): InvalidStatement {
  return new InvalidStatement('file_invalid', message);
}
