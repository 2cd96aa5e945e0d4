import { omitUndefined } from '../domain/defined';
import { parseDecimalMoney } from '../domain/money';
import { findCreditorReference } from '../domain/payment/creditor-reference';
import {
  InvalidStatement,
  parseReference,
  type Statement,
  type StatementLine,
} from '../domain/statement';
import { CREDITOR_REFERENCE, type Element, find, findAll, isTrueAt, textAt } from './xml';

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
  const [only] = parts;
  const booked = {
    day,
    value_date: readDay(entry, 'ValDt') ?? null,
    currency: place.currency,
    kind: describeKind(entry, parts.length === 1 ? only : undefined),
    is_fee: CHARGES.has(textAt(entry, 'BkTxCd/Domn/Fmly/SubFmlyCd') ?? ''),
    entry: number,
  };
  const bank_reference = readEntryReference(entry);
  const fee = readFee(entry, parts.length === 1 ? only : undefined, amount, place);
  if (parts.length > 1) {
    const amounts = parts.map((part) => {
      const own = readPart(part, Math.sign(amount) * sign, place);
      return own === undefined ? own : own * sign || 0;
    });
    const sum = amounts.reduce<number>((total, each) => total + (each ?? Number.NaN), 0);
    if (sum === amount || sum === amount + fee) {
      for (const [index, part] of parts.entries()) {
        const own = parseReference(textAt(part, 'Refs/AcctSvcrRef'));
        const line = { amount: amounts[index] ?? 0, reference: readReference(part), fee: 0 };
        if (line.amount === 0) continue;
        const kind = describeKind(entry, part);
        const position =
          own === null && bank_reference !== null ? `${ordinal}.${index + 1}` : undefined;
        const names = {
          ...readCreditorReference(part),
          bank_reference: own ?? bank_reference,
          ...omitUndefined({ position }),
        };
        yield { ...booked, ...line, ...names, kind, batch: parts.length };
      }
      if (sum === amount) return;
      const charge = { amount: -fee, reference: null, fee: 0, is_fee: true };
      yield { ...booked, ...charge, bank_reference, batch: null };
      return;
    }
  }
  const count = Number(textAt(entry, 'NtryDtls/Btch/NbOfTxs') ?? parts.length);
  yield {
    ...booked,
    amount,
    reference: parts.length === 1 && only !== undefined ? readReference(only) : null,
    ...(parts.length === 1 && only !== undefined ? readCreditorReference(only) : {}),
    bank_reference: bank_reference ?? parseReference(textAt(only, 'Refs/AcctSvcrRef')),
    fee,
    batch: count > 1 ? count : null,
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
  const amount = find(part, 'Amt') ?? find(part, 'AmtDtls/TxAmt/Amt');
  if (amount?.currency !== place.currency) return undefined;
  return readAmount(amount, place) * readSign(part, sign);
}

/**
 * Reads charges within the amount: those that say so, or by which it differs from the
 * transaction's.
 */
function readFee(entry: Element, part: Element | undefined, amount: number, place: Money): number {
  const own = readCharges(part);
  const charges = (own.length > 0 ? own : readCharges(entry)).filter(
    (charge) => find(charge, 'Amt')?.currency === place.currency,
  );
  const sum = (some: readonly Element[]) =>
    some.reduce((total, charge) => {
      const charged = find(charge, 'Amt');
      // A charge lowers what comes in, so that its own sign is a debit.
      return charged ? total - readAmount(charged, place) * readSign(charge, -1) : total;
    }, 0);
  const included = charges.filter((charge) => isTrueAt(charge, 'ChrgInclInd'));
  if (included.length > 0) return sum(included);
  const fee = sum(charges.filter((charge) => textAt(charge, 'ChrgInclInd') === undefined));
  const gross = ['AmtDtls/TxAmt/Amt', 'AmtDtls/InstdAmt/Amt'].flatMap((path) =>
    [part, entry].flatMap((each) => findAll(each, path)),
  );
  const isIncluded = gross.some(
    (each) =>
      each.currency === place.currency &&
      readAmount(each, place) * Math.sign(amount) === amount + fee,
  );
  return isIncluded ? fee : 0;
}

function readCharges(element: Element | undefined): readonly Element[] {
  const records = findAll(element, 'Chrgs/Rcrd');
  return records.length > 0 ? records : findAll(element, 'Chrgs');
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

type Money = Pick<Place, 'statement_id' | 'currency'>;

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
