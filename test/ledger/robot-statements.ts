import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Direction } from '../../src/domain/banks/movement';
import { decimalMoney } from '../../src/domain/money/money';
import { type CamtEntry, camt, TEST_IBAN, txDtls } from '../support/camt';
import type { Random } from '../support/random';

/** Line that a bank books on an account. */
export interface Booking {
  direction: Direction;
  /** Minor units, before what the bank keeps of it. */
  amount: number;
  currency: string;
  /** The bank's reference, of a part with its place: `REF#1.2`. */
  name: string;
  /** Name of our payouts and refunds; payers do not know our ids. */
  reference: string;
  /** `BkTxCd`. */
  code?: string;
  /** Corrects what the bank has booked before. */
  isReversal?: true;
  /** Minor units that the bank keeps of it, with or without saying so. */
  charge?: { amount: number; isNamed: boolean };
}

const CURRENCIES = ['EUR', 'USD'];

const REFERENCE = /^(.+)#1\.\d+$/;

/** Reference of the entry in which a part is booked. */
export function readEntryReference({ name }: Pick<Booking, 'name'>): string {
  return REFERENCE.exec(name)?.[1] ?? name;
}

/** Whether the parts of its entry are all on one statement. */
function isApart(booking: Booking, part: readonly Booking[]): boolean {
  const reference = readEntryReference(booking);
  if (reference === booking.name || part.includes(booking)) return true;
  return part.every((each) => readEntryReference(each) !== reference);
}

interface Hole {
  currency: string;
  /** Absent: the bank has none, and has only left out a number. */
  path?: string;
  /** Comes by itself at last. */
  isLate?: true;
}

/**
 * Statements of the accounts of a bank, one after the other: also wrong, withheld, or with a number left
 * out, until an operator asks for what is missing.
 */
export function createStatements(bookings: readonly Booking[], prefix: string, random: Random) {
  const folder = mkdtempSync(join(tmpdir(), 'robot-'));
  const accounts = new Map<string, { closing: number; sequence: number }>();
  const holes: Hole[] = [];
  const announced = new Set<string>();
  let written = 0;
  let notified = 0;
  let count = 0;

  const writeFile = (statement: object, message?: string): string => {
    count += 1;
    const path = join(folder, `${count}.xml`);
    const id = `${prefix}-${count}`;
    writeFileSync(path, camt([{ id, iban: TEST_IBAN, ...statement }], message ? { message } : {}));
    return path;
  };

  const writeStatement = (
    currency: string,
    day: string,
    entries: readonly CamtEntry[],
  ): string[] => {
    const { closing: opening, sequence: last } = accounts.get(currency) ?? {
      ...{ closing: 0, sequence: 0 },
    };
    const isFirst = last === 0;
    const hasHole = holes.some((hole) => hole.currency === currency);
    const sum = entries.reduce((total, { amount }) => total + amount, 0);
    const jumps = !isFirst && !hasHole && random.chance(0.1);
    if (jumps) holes.push({ currency });
    const sequence = last + (jumps ? 2 : 1);
    const closing = opening + sum;
    accounts.set(currency, { closing, sequence });
    const statement = { currency, day, opening, entries, sequence };
    const path = writeFile(statement);
    if (isFirst || jumps || hasHole) return [path];
    if (sum === 0 && random.chance(0.5)) {
      holes.push({ currency, path, isLate: true });
      return [];
    }
    if (!random.chance(0.1)) return [path];
    holes.push({ currency, path });
    return [writeFile({ ...statement, closing: closing + 1 })];
  };

  const listFresh = (share: number): readonly Booking[] => {
    const waiting = bookings.slice(written);
    const part = waiting.slice(0, Math.ceil(waiting.length * share));
    return part.length > 0 && waiting.every((each) => isApart(each, part)) ? part : waiting;
  };

  const listLate = (): string[] =>
    holes.flatMap((hole) => {
      if (!hole.isLate || hole.path === undefined) return [];
      holes.splice(holes.indexOf(hole), 1);
      return [hole.path];
    });

  return {
    hasMore: () => written < bookings.length || holes.some(({ isLate }) => isLate),
    /** @returns files, in the order of the bank */
    write: (day: string, share = 1): string[] => {
      const fresh = listFresh(share);
      const late = fresh.length === 0 || random.chance(0.3) ? listLate() : [];
      written += fresh.length;
      const files = CURRENCIES.flatMap((currency) => {
        const own = fresh.filter((each) => each.currency === currency);
        if (own.length === 0 && accounts.has(currency)) return [];
        const isSum = (reference: string) => announced.has(reference) && random.chance(0.3);
        return writeStatement(currency, day, buildEntries(own, isSum));
      });
      return [...files, ...late];
    },
    /** Writes what it has neither announced nor on a statement. @returns files */
    announce: (day: string): string[] => {
      const fresh = bookings.slice(Math.max(written, notified));
      notified = bookings.length;
      for (const each of fresh) announced.add(readEntryReference(each));
      return CURRENCIES.flatMap((currency) => {
        const own = fresh.filter((each) => each.currency === currency);
        if (own.length === 0) return [];
        const entries = buildEntries(own, () => false);
        return [writeFile({ currency, day, entries }, 'camt.054.001.08')];
      });
    },
    /** Gives what is missing of an account, once. @returns undefined where there is none */
    findMissing: (currency: string): string | undefined => {
      const at = holes.findIndex((hole) => hole.currency === currency);
      return at < 0 ? undefined : holes.splice(at, 1)[0]?.path;
    },
    close: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** Books the parts of one reference as one entry, or only as their sum. */
function buildEntries(
  bookings: readonly Booking[],
  isSum: (reference: string) => boolean,
): CamtEntry[] {
  const groups = new Map<string, Booking[]>();
  for (const each of bookings) {
    const reference = readEntryReference(each);
    groups.set(reference, [...(groups.get(reference) ?? []), each]);
  }
  return [...groups].map(([bank_reference, own]) => {
    const [only, ...more] = own;
    if (only !== undefined && more.length === 0) return buildEntry(only, bank_reference);
    const signed = own.map((each) => ({ ...each, amount: sign(each) }));
    const amount = signed.reduce((total, part) => total + part.amount, 0);
    const details = isSum(bank_reference)
      ? `<Btch><NbOfTxs>${own.length}</NbOfTxs></Btch>`
      : signed.map((each) => txDtls(each.currency, each.amount, each.reference)).join('');
    return { amount, bank_reference, details };
  });
}

const sign = ({ direction, amount }: Pick<Booking, 'direction' | 'amount'>) =>
  direction === 'in' ? amount : -amount;

function buildEntry(booking: Booking, bank_reference: string): CamtEntry {
  const { currency, reference, charge, code, isReversal } = booking;
  const amount = sign(booking) - (charge?.amount ?? 0);
  const text = charge?.isNamed
    ? `<Chrgs><Rcrd><Amt Ccy="${currency}">${decimalMoney(charge.amount, currency)}</Amt>` +
      '<CdtDbtInd>DBIT</CdtDbtInd><ChrgInclInd>true</ChrgInclInd></Rcrd></Chrgs>'
    : '';
  const kind = code === undefined ? {} : { code };
  const correction = isReversal === undefined ? {} : { reversal: true };
  return { amount, bank_reference, reference, more: text, ...kind, ...correction };
}
