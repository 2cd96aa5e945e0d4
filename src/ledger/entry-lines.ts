import type { Direction, Outcome } from '../domain/banks/movement';
import { MAIN_BALANCE } from '../domain/money/money';
import type { EntryKind, EntryLine } from './entries';
import {
  ACQUIRER_FEES,
  ADJUSTMENTS,
  type Against,
  available,
  BANK_FEES,
  clearing,
  DEPOSITS,
  due,
  FEES,
  FUNDING,
  getOppositeAccount,
  LATE,
  PLATFORM_ACCOUNTS,
  type PlatformKind,
  RECEIVABLE,
  REFUNDS,
  readAvailable,
  reserved,
  SENT,
  UNMATCHED,
} from './ledger-accounts';

/** Parts of a statement line, in its minor units: above 0 comes in. */
interface StatementParts {
  /** Movements of merchants' money. */
  clearing?: number;
  bank_fees?: number;
  unmatched?: number;
}

function buildStatementLines(from: string, parts: StatementParts, sign: 1 | -1): EntryLine[] {
  const { clearing = 0, bank_fees = 0, unmatched = 0 } = parts;
  return dropZeroLines([
    { account: from, amount: -sign * (clearing + bank_fees + unmatched) },
    { account: 'clearing', amount: sign * clearing },
    { account: BANK_FEES, amount: sign * bank_fees },
    { account: UNMATCHED, amount: sign * unmatched },
  ]);
}

/** Lines of each kind of entry, in minor units. @see docs/ledger.md */
export const ENTRY_LINES = {
  /** @param connector whose bank has it; absent: it only exists in the sandbox */
  funded: (balance: string, amount: number, connector?: string) =>
    transfer(connector === undefined ? FUNDING : clearing(connector), available(balance), amount),
  /**
   * @param amount below 0 debits
   * @param owed part of a debit that the balance does not hold
   */
  adjusted: (balance: string, amount: number | bigint, against: Against, owed = 0) =>
    owed === 0
      ? transfer(getOppositeAccount(against), available(balance), amount)
      : dropZeroLines([
          { account: getOppositeAccount(against), amount: -amount },
          { account: available(balance), amount: Number(amount) + owed },
          { account: RECEIVABLE, amount: -owed },
        ]),
  /**
   * Debt may be collected by now, so what the merchant owed comes to the entry's balance, or `main`:
   * an entry changes what is available of one balance only.
   */
  reversed: (lines: readonly EntryLine[]) => {
    const opposite = lines.map(({ account, amount }) => ({ account, amount: -amount }));
    const isForgiven = ({ account, amount }: EntryLine) => account === RECEIVABLE && amount > 0;
    const [{ name } = { name: MAIN_BALANCE }] = lines.flatMap(
      ({ account }) => readAvailable(account) ?? [],
    );
    const balance = available(name);
    const debt = opposite.filter(isForgiven).map(({ amount }) => ({ account: balance, amount }));
    return mergeLines([...opposite.filter((line) => !isForgiven(line)), ...debt]);
  },
  /** @param days balances of days that have come */
  made_available: (balance: string, days: ReadonlyMap<string, number>) => [
    ...[...days].map(([day, amount]) => ({ account: due(balance, day), amount: -amount })),
    {
      account: available(balance),
      amount: [...days.values()].reduce((sum, each) => sum + each, 0),
    },
  ],
  debt_collected: (balance: string, amount: number) =>
    transfer(available(balance), RECEIVABLE, amount),
  /** @param amount below 0 leaves the bank account */
  platform_posted: (connector: string, kind: PlatformKind, amount: number) =>
    transfer(clearing(connector), PLATFORM_ACCOUNTS[kind], amount),
  /**
   * @param fee part of the amount that the merchant bears
   * @param day on which the merchant may use the rest
   * @see docs/decisions.md#balances
   */
  payment_settled: (connector: string, amount: number, held = 0, fee = 0, day?: string | null) => [
    ...dropZeroLines([
      { account: clearing(connector), amount: held - amount },
      { account: LATE, amount: -held },
    ]),
    ...creditNet(day ? due(MAIN_BALANCE, day) : available(MAIN_BALANCE), amount, fee),
  ],
  payment_held: holdMovement,
  payment_resolved: resolveMovement,
  payment_clawed_back: (connector: string, held: number, owed: number) =>
    dropZeroLines([
      { account: clearing(connector), amount: held + owed },
      { account: available(MAIN_BALANCE), amount: -held },
      { account: RECEIVABLE, amount: -owed },
    ]),
  /**
   * @param held part that `main` holds; the merchant owes the rest
   * @param fee part of both that is the acquirer's fee
   */
  payment_dispute_opened: (connector: string, held: number, owed: number, fee = 0) =>
    dropZeroLines([
      { account: clearing(connector), amount: held + owed - fee },
      { account: available(MAIN_BALANCE), amount: -held },
      { account: RECEIVABLE, amount: -owed },
      { account: ACQUIRER_FEES, amount: fee },
    ]),
  /** @param fee that the merchant has back, besides the amount */
  payment_dispute_won: (connector: string, amount: number, fee = 0) =>
    dropZeroLines([
      { account: clearing(connector), amount: -amount },
      { account: available(MAIN_BALANCE), amount: amount + fee },
      { account: ACQUIRER_FEES, amount: -fee },
    ]),
  /** @see docs/decisions.md#balances */
  refund_accepted: (amount: number) => transfer(available(MAIN_BALANCE), REFUNDS, amount),
  /** @param held part that is in suspense, since the bank has reported it before */
  refund_settled: (connector: string, amount: number, sent: number, held = 0) =>
    dropZeroLines([
      { account: REFUNDS, amount: -amount },
      { account: SENT, amount: held },
      { account: clearing(connector), amount: sent - held },
      { account: available(MAIN_BALANCE), amount: amount - sent },
    ]),
  refund_failed: (amount: number) => transfer(REFUNDS, available(MAIN_BALANCE), amount),
  refund_held: holdMovement,
  refund_resolved: resolveMovement,
  payout_reserved: (balance: string, amount: number, fee: number) =>
    transfer(available(balance), reserved(balance), amount + fee),
  payout_captured: (balance: string, connector: string, amount: number, fee: number, held = 0) =>
    dropZeroLines([
      { account: reserved(balance), amount: -amount - fee },
      { account: SENT, amount: held },
      { account: clearing(connector), amount: amount - held },
      { account: FEES, amount: fee },
    ]),
  payout_released: (balance: string, amount: number, fee: number) =>
    transfer(reserved(balance), available(balance), amount + fee),
  /** @param held part that came back before, and is in suspense */
  payout_reversed: (balance: string, connector: string, amount: number, fee: number, held = 0) =>
    dropZeroLines([
      { account: clearing(connector), amount: held - amount },
      { account: LATE, amount: -held },
      { account: FEES, amount: -fee },
      { account: available(balance), amount: amount + fee },
    ]),
  payout_returned: (balance: string, connector: string, amount: number, held = 0) =>
    dropZeroLines([
      { account: clearing(connector), amount: held - amount },
      { account: LATE, amount: -held },
      { account: available(balance), amount },
    ]),
  payout_held: holdMovement,
  payout_resolved: resolveMovement,
  crypto_payment_held: (connector: string, amount: bigint) =>
    transfer(clearing(connector), DEPOSITS, amount),
  crypto_payment_credited: (connector: string, amount: bigint, held = false) =>
    transfer(held ? DEPOSITS : clearing(connector), available(MAIN_BALANCE), amount),
  crypto_payment_returned: (connector: string, amount: bigint) =>
    transfer(available(MAIN_BALANCE), clearing(connector), amount),
  crypto_payment_withdrawn: (amount: bigint) => transfer(available(MAIN_BALANCE), DEPOSITS, amount),
  crypto_payment_sent_back: (connector: string, amount: bigint) =>
    transfer(DEPOSITS, clearing(connector), amount),
  /** @param isGone whether the chain has removed it, which is a loss */
  crypto_payment_written_off: (connector: string, amount: bigint, isGone: boolean) =>
    isGone
      ? transfer(ADJUSTMENTS, clearing(connector), amount)
      : transfer(DEPOSITS, ADJUSTMENTS, amount),
  crypto_settlement_reserved: (amount: bigint) =>
    transfer(available(MAIN_BALANCE), reserved(MAIN_BALANCE), amount),
  crypto_settlement_captured: (connector: string, amount: bigint, held = 0n) =>
    dropZeroLines([
      { account: reserved(MAIN_BALANCE), amount: -amount },
      { account: SENT, amount: held },
      { account: clearing(connector), amount: amount - held },
    ]),
  crypto_settlement_released: (amount: bigint) =>
    transfer(reserved(MAIN_BALANCE), available(MAIN_BALANCE), amount),
  bank_opening: (amount: number) => transfer('cash', 'external.opening', amount),
  bank_line: (parts: StatementParts) => buildStatementLines('cash', parts, 1),
  bank_line_matched: (parts: Omit<StatementParts, 'unmatched'>) =>
    buildStatementLines(UNMATCHED, parts, 1),
  bank_line_unmatched: (parts: Omit<StatementParts, 'unmatched'>) =>
    buildStatementLines(UNMATCHED, parts, -1),
  bank_line_abandoned: (parts: StatementParts) => buildStatementLines('cash', parts, -1),
  crypto_settlement_held: holdMovement,
  crypto_settlement_resolved: resolveMovement,
  /** Posted in the book of the network's own asset. */
  crypto_settlement_fee: (connector: string, amount: bigint) =>
    transfer('expense.network', clearing(connector), amount),
} satisfies Record<EntryKind, (...args: never[]) => EntryLine[]>;

/** @throws RangeError unless lines sum to zero, in whole units, one for each account */
export function assertBalanced(lines: readonly EntryLine[]): void {
  const accounts = new Set(lines.map(({ account }) => account));
  const isWhole = lines.every(({ amount }) =>
    typeof amount === 'number'
      ? Number.isSafeInteger(amount)
      : amount < UNITS_MAX && amount > -UNITS_MAX,
  );
  const sum = isWhole ? lines.reduce((total, { amount }) => total + BigInt(amount), 0n) : undefined;
  if (sum !== 0n || lines.length < 2 || accounts.size < lines.length) {
    const each = lines.map(({ account, amount }) => `${account} ${amount}`);
    throw new RangeError(`Not a balanced journal entry: ${each.join(', ')}`);
  }
}

/** Largest amount of a line; the database adds up to 34 digits exactly. */
const UNITS_MAX = 10n ** 28n;

/** Minor units, or an asset's smallest as a bigint. */
type Amount = number | bigint;

export interface Bearer {
  as: Outcome;
  connector: string;
  balance: string;
  /** Part of the merchant's that the balance does not hold. */
  owed: number;
  /** Acquirer's, of what the merchant has; absent: none. */
  fee?: number;
  /** From which the merchant may use what came. */
  day?: string | undefined;
}

/** Holds what came, or was sent, until somebody decides. */
function holdMovement(connector: string, direction: Direction, amount: Amount): EntryLine[] {
  return direction === 'in'
    ? transfer(clearing(connector), LATE, amount)
    : transfer(SENT, clearing(connector), amount);
}

function resolveMovement(direction: Direction, amount: Amount, bearer: Bearer): EntryLine[] {
  const { as, balance, owed, fee = 0 } = bearer;
  if (direction === 'in' && fee > 0) {
    return [
      { account: LATE, amount: -amount },
      ...creditNet(getAccount(bearer), Number(amount), fee),
    ];
  }
  if (direction === 'in') return transfer(LATE, getAccount(bearer), amount);
  if (as !== 'merchant') return transfer(getAccount(bearer), SENT, amount);
  const held = typeof amount === 'bigint' ? amount - BigInt(owed) : amount - owed;
  return dropZeroLines([
    { account: available(balance), amount: -held },
    { account: RECEIVABLE, amount: -owed },
    { account: SENT, amount },
  ]);
}

/** Picks `clearing` for what goes to the bank, or never was: it leaves as it came. */
function getAccount({ as, connector, balance, day }: Bearer): string {
  if (as === 'merchant') return day ? due(balance, day) : available(balance);
  return as === 'loss' ? ADJUSTMENTS : clearing(connector);
}

/** A fee of all of it still has its balance transaction. */
function creditNet(account: string, amount: number, fee: number): EntryLine[] {
  return [
    ...dropZeroLines([{ account: ACQUIRER_FEES, amount: fee }]),
    { account, amount: amount - fee },
  ];
}

function transfer(from: string, to: string, amount: number | bigint): EntryLine[] {
  return [
    { account: from, amount: -amount },
    { account: to, amount },
  ];
}

function dropZeroLines(lines: EntryLine[]): EntryLine[] {
  return lines.filter(({ amount }) => amount !== 0 && amount !== 0n);
}

export function mergeLines(lines: readonly EntryLine[]): EntryLine[] {
  const sums = new Map<string, number | bigint>();
  for (const { account, amount } of lines) {
    const before = sums.get(account);
    // An asset's amounts exceed what a number holds.
    if (typeof before === 'bigint') sums.set(account, before + BigInt(amount));
    else if (typeof amount === 'bigint') sums.set(account, BigInt(before ?? 0) + amount);
    else sums.set(account, (before ?? 0) + amount);
  }
  return [...sums].map(([account, amount]) => ({ account, amount }));
}
