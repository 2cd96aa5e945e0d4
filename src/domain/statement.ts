/**
 * Line of a bank's statement: ids, amounts and days, and nothing about people.
 * @see docs/statements.md
 */
export interface StatementLine {
  /** Day on which the bank booked it, `YYYY-MM-DD`. */
  day: string;
  value_date: string | null;
  /** Minor units; above 0 comes in. */
  amount: number;
  /** ISO 4217. */
  currency: string;
  /** EndToEndId; in a return that of the original. */
  reference: string | null;
  /** Creditor reference of ours that a transfer to us names. */
  creditor_reference?: string;
  /** Name that the bank gave the movement. */
  bank_reference: string | null;
  /** Charges that the bank took out of the amount, minor units; below 0 it gave them back. */
  fee: number;
  /** Movements in the line, where the bank booked several as one sum. */
  batch: number | null;
  /** Description in the bank's codes. */
  kind: string;
  /** Whether the whole line is a charge of the bank. */
  is_fee: boolean;
  /** Position of the bank's entry in the statement; the parts of a batch share it. */
  entry: number;
}

/** Statement (`camt.053`, CSV), or notification of movements before it (`camt.054`). */
export interface Statement {
  /** Id that the bank gave it. */
  statement_id: string;
  /** Without spaces, in upper case. */
  iban: string;
  /** ISO 4217. */
  currency: string;
  /** Minor units; null in a notification. */
  balances: { opening: number; closing: number } | null;
  /** First and last day, `YYYY-MM-DD`. */
  from_day: string;
  to_day: string;
  /** Number that the bank gave it. */
  sequence: string | null;
  lines: readonly StatementLine[];
}

/** Code of a file that cannot be read. */
export type StatementFault =
  | 'file_too_large'
  | 'file_invalid'
  | 'format_not_supported'
  | 'wrong_currency'
  | 'bank_account_unknown';

/** Refusal of a file; its message has nothing of the file but names and numbers of lines. */
export class InvalidStatement extends Error {
  override readonly name = 'InvalidStatement';
  readonly code: StatementFault;

  constructor(code: StatementFault, message: string) {
    super(message);
    this.code = code;
  }
}

/** Days for which a statement may lack what a notification announced. */
export const ANNOUNCED_DAYS = 5;

/** Days by which the value date may follow the booking. */
export const VALUE_DAYS_MAX = 30;

const DAY_MS = 86_400_000;

export function addDays(day: string, days: number): string {
  return new Date(Date.parse(day) + days * DAY_MS).toISOString().slice(0, 10);
}

/** References that mean none. */
const NO_REFERENCE = /^(?:NOTPROVIDED|NONREF|NONE|N\/A|)$/i;

export function parseReference(text: string | undefined): string | null {
  const reference = text?.trim() ?? '';
  return NO_REFERENCE.test(reference) ? null : reference;
}

/** Parses our id in a reference, where it has no dashes; null for any other text. */
export function parseResourceId(reference: string | null): string | null {
  const hex = reference?.replaceAll('-', '').toLowerCase() ?? '';
  if (!/^[0-9a-f]{32}$/.test(hex)) return null;
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
