import { listCreditorReferences } from '../payment/creditor-reference';

/** Holds nothing about people. @see docs/statements.md */
export interface StatementLine {
  /** `YYYY-MM-DD`. */
  day: string;
  value_date: string | null;
  /** Minor units; above 0 comes in. */
  amount: number;
  /** ISO 4217. */
  currency: string;
  /** EndToEndId; of the original in a return. */
  reference: string | null;
  /** Reference of ours that a transfer names. */
  creditor_reference?: string;
  bank_reference: string | null;
  /** The bank's reference of the whole entry, where `bank_reference` is that of a part. */
  entry_reference?: string;
  /** The bank's reference of the only part, where `bank_reference` is that of the entry. */
  part_reference?: string;
  /** `entry.part` among those of one bank reference, where a part has none of its own. */
  position?: string;
  /** Minor units taken out of the amount; below 0: given back. */
  fee: number;
  /** Charges that are stated, where no amount next to them says whether they are in this one. */
  charges?: readonly number[];
  /** `MsgId` and `PmtInfId` that may be those of a file of ours, where it names no payout. */
  files?: readonly string[];
  /** Resource IDs, creditor references and names of own transfers in its free text. */
  mentions?: readonly string[];
  /** Number of movements, where the bank booked several as one sum. */
  batch: number | null;
  /** The fee is that of a contract, and named by the bank's connector: no limit of charges holds it. */
  is_agreed?: true;
  /** It is one end of a transfer between own accounts: its id, and names that the other end may have. */
  transfer?: readonly string[];
  /** Codes of the bank. */
  kind: string;
  /** The whole line is a charge. */
  is_fee: boolean;
  /** Position in the statement, which the parts of a batch share. */
  entry: number;
}

/** How a bank counts its statements. */
export const NUMBERINGS = ['continuous', 'yearly', 'none'] as const;
export type Numbering = (typeof NUMBERINGS)[number];

/** Statement (`camt.053`, CSV), or earlier notification (`camt.054`). */
export interface Statement {
  statement_id: string;
  /** IBAN without spaces, in upper case; or another id of the account, as the bank writes it. */
  iban: string;
  /** ISO 4217. */
  currency: string;
  /** Minor units; null in a notification. */
  balances: { opening: number; closing: number } | null;
  /** `YYYY-MM-DD`, like `to_day`. */
  from_day: string;
  to_day: string;
  sequence: string | null;
  lines: readonly StatementLine[];
  /** How it was read otherwise than it says. */
  notice?: string;
  /** Why nothing else of it could be read. */
  fault?: InvalidStatement;
}

/** Movement of a balance, as its connector reports it. */
export interface MadeLine {
  bank_reference: string;
  /** Minor units before the fee; above 0 comes in. */
  amount: number;
  /** Minor units that the bank took out of the amount; below 0: given back. */
  fee: number;
  /** Codes of the bank. */
  kind: string;
  /** The whole line is a charge. */
  is_fee: boolean;
  /** `YYYY-MM-DD`. */
  value_date?: string;
  /**
   * It is a transfer to or from another account of ours: its id here, and names that it may have at the
   * other bank.
   */
  transfer?: readonly string[];
}

/** Facts that are known of a transfer after its line was made. */
export interface MadeTransfer {
  bank_reference: string;
  /** As those of its line. */
  names: readonly string[];
  /** References of the movements that it has paid out; absent where the bank does not say. */
  parts?: readonly string[];
}

/**
 * Statement of a UTC day, which a connector makes where its bank has none.
 * @see docs/connectors.md#statements-of-a-balance
 */
export interface MadeStatement {
  /** Id of the account at the bank. */
  account: string;
  /** ISO 4217. */
  currency: string;
  /** `YYYY-MM-DD`. */
  day: string;
  /** Minor units. */
  opening: number;
  closing: number;
  lines: readonly MadeLine[];
}

/** Minor units that the lines lack to lead from one balance to the other. */
export function findUnexplained({
  opening,
  closing,
  lines,
}: Pick<MadeStatement, 'opening' | 'closing' | 'lines'>): number {
  return lines.reduce((left, { amount, fee }) => left - (amount - fee), closing - opening);
}

/** Builds the line of what an operator has accepted without an explanation of the bank. */
export function buildUnexplained(day: string, amount: number): MadeLine {
  return {
    bank_reference: `unexplained:${day}`,
    amount,
    fee: 0,
    kind: 'unexplained',
    is_fee: false,
  };
}

/** Builds what an import reads, as of a bank's file. */
export function buildMadeStatement({
  account: iban,
  currency,
  day,
  opening,
  closing,
  lines,
}: MadeStatement): Statement {
  return {
    ...{ statement_id: `${day} ${currency}`, iban, currency, balances: { opening, closing } },
    ...{ from_day: day, to_day: day, sequence: null },
    lines: lines.map(({ amount, value_date = null, ...line }, index) => ({
      ...{
        ...line,
        day,
        value_date,
        currency,
        amount: amount - line.fee,
        is_agreed: true as const,
      },
      ...{ reference: null, batch: null, entry: index + 1 },
    })),
  };
}

export function isReversal({ kind }: Pick<StatementLine, 'kind'>): boolean {
  return /\breversal\b/.test(kind);
}

export type StatementFault =
  | 'file_too_large'
  | 'file_invalid'
  | 'format_not_supported'
  | 'wrong_currency'
  | 'bank_account_unknown';

/** Facts that distinguish a statement from others of its account, whichever file has it. */
export interface StatementFacts {
  /** A notification moves no money. */
  kind: 'statement' | 'notification';
  /** The bank's own id, which may begin again each year. */
  statement_id: string;
  sequence: string | null;
  /** `YYYY-MM-DD`, like `to_day`; in a notification those of its lines. */
  from_day: string;
  to_day: string;
  /** Minor units; null in a notification. */
  opening: number | null;
  closing: number | null;
  lines: number;
  /** SHA-256 of end, balances and lines in any order, hex. */
  content: string;
}

/** The message has only names and line numbers of the file. */
export class InvalidStatement extends Error {
  override readonly name = 'InvalidStatement';
  readonly code: StatementFault;

  constructor(code: StatementFault, message: string) {
    super(message);
    this.code = code;
  }
}

/** A statement may lack an announced movement for so long. */
export const ANNOUNCED_DAYS = 5;

/** Attention reason of a credit that no statement has after that. */
export const NOT_REPEATED = 'not_repeated';

/** Attention reason of lines that match no entry for longer than their account allows. */
export const LINES_OPEN = 'lines_open';

/** Days for which a line may be open, unless its account says otherwise. */
export const OPEN_DAYS = 5;

/** Groups accounts by the day before which their lines must not be open. */
export function groupByOldest(
  accounts: readonly { _id: string; open_days?: number }[],
  now: Date,
): { before: string; accounts: string[] }[] {
  const groups = new Map<string, string[]>();
  for (const { _id, open_days = OPEN_DAYS } of accounts) {
    const before = subtractDays(now, open_days);
    groups.set(before, [...(groups.get(before) ?? []), _id]);
  }
  return [...groups].map(([before, ids]) => ({ before, accounts: ids }));
}

/** Day before which an announced movement should be on a statement. */
export function announcedBefore(now: Date): string {
  return subtractDays(now, ANNOUNCED_DAYS);
}

function subtractDays(now: Date, days: number): string {
  return addDays(now.toISOString().slice(0, 'YYYY-MM-DD'.length), -days);
}

/** Days from the booking to the value date. */
export const VALUE_DAYS_MAX = 30;

const DAY_MS = 86_400_000;

export function addDays(day: string, days: number): string {
  return new Date(Date.parse(day) + days * DAY_MS).toISOString().slice(0, 10);
}

/** Lists what may be the id of a file of ours; that of a payout has the same form. */
export function listFileNames({
  files = [],
  reference,
  mentions = [],
}: Pick<StatementLine, 'files' | 'reference' | 'mentions'>): string[] {
  const ids = [reference, ...mentions].flatMap((name) => parseResourceId(name) ?? []);
  return [...new Set([...files, ...ids.map((id) => id.replaceAll('-', ''))])];
}

/** Bounds what a text of hex digits alone would find. */
const MENTIONS_MAX = 50;

/** Texts cut an id anywhere, and put up to three characters there. */
const HEX_RUN = /[0-9a-f](?:[^0-9a-z]{0,3}[0-9a-f]){31,}/gi;
/** Version and variant that this service makes. */
const UUID = /^.{12}[48].{3}[89ab]/;

/**
 * Finds resource IDs and creditor references that a text may mean, and names of own transfers: all else
 * in it is private.
 */
export function findMentions(text: string, names: readonly string[] = []): string[] {
  const found = new Set(listCreditorReferences(text));
  for (const name of names) if (hasName(text, name)) found.add(name);
  for (const [run] of text.matchAll(HEX_RUN)) {
    const hex = run.replace(/[^0-9a-f]/gi, '').toLowerCase();
    for (let at = 0; at + 32 <= hex.length && found.size < MENTIONS_MAX; at += 1) {
      const digits = hex.slice(at, at + 32);
      const id = UUID.test(digits) && /[a-f]/.test(digits) ? parseResourceId(digits) : null;
      if (id !== null) found.add(id);
    }
  }
  return [...found];
}

/** Shorter ones are found in any text. */
const NAME_MIN = 4;

const toWords = (text: string) =>
  text
    .toUpperCase()
    .replace(/[^A-Z0-9]+/g, ' ')
    .trim();

/** Whether a text has the words of a name, one after another. */
export function hasName(text: string, name: string): boolean {
  const words = toWords(name);
  return words.length >= NAME_MIN && ` ${toWords(text)} `.includes(` ${words} `);
}

/** Accepts ids without dashes. */
export function parseResourceId(reference: string | null): string | null {
  const hex = reference?.replaceAll('-', '').toLowerCase() ?? '';
  if (!/^[0-9a-f]{32}$/.test(hex)) return null;
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
