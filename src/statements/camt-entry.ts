import { omitUndefined } from '../domain/defined';
import { parseDecimalMoney } from '../domain/money';
import { findCreditorReference } from '../domain/payment/creditor-reference';
import {
  InvalidStatement,
  parseReference,
  parseResourceId,
  type Statement,
  type StatementLine,
} from '../domain/statement';
import { CREDITOR_REFERENCE, type Element, find, findAll, isTrueAt, MENTION, textAt } from './xml';

/** @see ISO 20022 external code list, BankTransactionSubFamily */
const CHARGES = new Set(['CHRG', 'COMM', 'COME', 'COMI', 'COMT', 'FEES']);

type Place = Pick<Statement, 'statement_id' | 'currency' | 'to_day'>;

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
  const parts = findAll(entry, 'NtryDtls/TxDtls');
  const [first] = parts;
  const only = parts.length === 1 ? first : undefined;
  const booked = {
    day,
    value_date: readDay(entry, 'ValDt') ?? null,
    currency: place.currency,
    kind: describeKind(entry, only),
    is_fee: isCharge(entry),
    entry: number,
  };
  const bank_reference = readEntryReference(entry);
  const batch = readBatch(entry);
  const isReversal = isTrueAt(entry, 'RvslInd');
  const money = { ...place, isReversal };
  const split =
    parts.length > 1 ? splitEntry(entry, { parts, amount, sign, place: money }) : undefined;
  if (split !== undefined) {
    for (const [index, part] of parts.entries()) {
      const { amount: own, ...charged } = split.lines[index] ?? { amount: 0, fee: 0 };
      if (own === 0) continue;
      const of_part = parseReference(textAt(part, 'Refs/AcctSvcrRef'));
      const position =
        of_part === null && bank_reference !== null ? `${ordinal}.${index + 1}` : undefined;
      const names = {
        ...describeOurs([part], batch.files),
        bank_reference: of_part ?? bank_reference,
        ...nameOther('entry_reference', of_part, bank_reference),
        ...omitUndefined({ position }),
      };
      const kinds = { kind: describeKind(entry, part), is_fee: isCharge(part, booked.is_fee) };
      yield { ...booked, amount: own, ...charged, ...names, ...kinds, batch: parts.length };
    }
    if (split.fee === 0) return;
    const charge = { amount: -split.fee, reference: null, fee: 0, is_fee: true };
    yield { ...booked, ...charge, bank_reference, batch: null };
    return;
  }
  const of_part = parseReference(textAt(first, 'Refs/AcctSvcrRef'));
  const { count = parts.length } = batch;
  const ours = describeOurs([only, entry], batch.files);
  // One payout of a file is said to be one.
  const isCounted = count > 1 || (ours.files !== undefined && batch.count !== undefined);
  yield {
    ...booked,
    amount,
    ...ours,
    bank_reference: bank_reference ?? of_part,
    ...(only === undefined ? {} : nameOther('part_reference', bank_reference, of_part)),
    ...readFee([only, entry], amount, money),
    batch: isCounted ? count : null,
  };
}

function nameOther(
  field: 'entry_reference' | 'part_reference',
  own: string | null,
  other: string | null,
) {
  return own === null || other === null || own === other ? {} : { [field]: other };
}

function isCharge(element: Element, otherwise = false): boolean {
  const code = textAt(element, 'BkTxCd/Domn/Fmly/SubFmlyCd');
  return code === undefined ? otherwise : CHARGES.has(code);
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
  }: { parts: readonly Element[]; amount: number; sign: number; place: Money },
): { lines: Pick<StatementLine, 'amount' | 'fee' | 'charges'>[]; fee: number } | undefined {
  const amounts = parts.map((part) => {
    const own = readPart(part, Math.sign(amount) * sign, place);
    return own === undefined ? Number.NaN : own * sign || 0;
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

function readBatch(entry: Element): { files: string[]; count?: number } {
  const counts = findAll(entry, 'NtryDtls/Btch/NbOfTxs').map(({ text }) => Number(text));
  return {
    files: ['PmtInfId', 'MsgId'].flatMap((name) => readTexts(entry, `NtryDtls/Btch/${name}`)),
    ...(counts.length > 0 ? { count: add(counts) } : {}),
  };
}

const readTexts = (element: Element | undefined, path: string) =>
  findAll(element, path).map(({ text }) => text);

/** Reads what of ours a part names; also its entry, where it has no other. */
function describeOurs(
  [part, entry]: readonly (Element | undefined)[],
  ofBatch: readonly string[],
): Pick<StatementLine, 'reference' | 'creditor_reference' | 'files' | 'mentions'> {
  const reference = part === undefined ? null : readReference(part);
  const ofPart = ['PmtInfId', 'MsgId'].flatMap((name) => readTexts(part, `Refs/${name}`));
  const names = new Set([...ofBatch, ...ofPart].map((name) => name.toLowerCase()));
  const files = [...names].filter((name) => FILE_ID.test(name));
  const isOther =
    parseResourceId(reference) !== null && !names.has(String(reference).toLowerCase());
  const mentions = [...new Set([part, entry].flatMap((each) => readTexts(each, MENTION)))];
  return {
    reference,
    ...(part === undefined ? {} : readCreditorReference(part)),
    ...(files.length > 0 && !isOther ? { files } : {}),
    ...(mentions.length > 0 ? { mentions } : {}),
  };
}

function readReference(part: Element): string | null {
  const proprietary = findAll(part, 'Refs/Prtry').find(
    (each) => textAt(each, 'Tp') === 'OrgnlEndToEndId',
  );
  return parseReference(textAt(proprietary, 'Ref') ?? textAt(part, 'Refs/EndToEndId'));
}

/** Payers may also give our reference as `EndToEndId`. */
function readCreditorReference(part: Element): Pick<StatementLine, 'creditor_reference'> {
  const end_to_end_id = textAt(part, 'Refs/EndToEndId') ?? '';
  const named = textAt(part, CREDITOR_REFERENCE) ?? findCreditorReference([end_to_end_id]);
  return named === null ? {} : { creditor_reference: named };
}

function readPart(part: Element, sign: number, place: Money): number | undefined {
  const amount = PART_AMOUNTS.flatMap((path) => findAll(part, path)).find(
    ({ currency }) => currency === place.currency,
  );
  return amount && readAmount(amount, place) * readSign(part, sign);
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
  const ofLevels = levels.map((each) => listFees(each, place));
  const all = add(ofLevels.map(([first = 0]) => first));
  const fees = [...new Set([...ofLevels.flat(), all])].filter((fee) => fee !== 0);
  if (fees.length === 0) return { fee: 0 };
  const proved = levels
    .flatMap((each) => GROSS.flatMap((path) => findAll(each, path)))
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

/** Describes a line by the bank's codes: `PMNT.ICDT.RRTN return AC04`. */
function describeKind(entry: Element, part: Element | undefined): string {
  const code = find(part, 'BkTxCd') ?? find(entry, 'BkTxCd');
  const names = ['Domn/Cd', 'Domn/Fmly/Cd', 'Domn/Fmly/SubFmlyCd'].flatMap(
    (path) => textAt(code, path) ?? [],
  );
  const reason = textAt(part, 'RtrInf/Rsn/Cd');
  return [
    names.length > 0 ? names.join('.') : (textAt(code, 'Prtry/Cd') ?? ''),
    ...(isTrueAt(entry, 'RvslInd') ? ['reversal'] : []),
    ...(find(part, 'RtrInf') === undefined ? [] : [`return ${reason ?? ''}`.trim()]),
  ]
    .filter((word) => word !== '')
    .join(' ');
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
