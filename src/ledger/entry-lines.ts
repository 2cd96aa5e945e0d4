import { isBalanceAccountName, MAIN_BALANCE } from '../domain/account/balance-account';
import type { EntryKind, EntryLine } from './entries';

const available = (name: string) => `balances.${checkName(name)}.available`;
const reserved = (name: string) => `balances.${checkName(name)}.reserved`;
const clearing = (connector: string) => `clearing.${checkName(connector)}`;
const REFUNDS = 'transit.refunds';
const FEES = 'income.fees';
const LATE = 'suspense.late';
const ADJUSTMENTS = 'external.adjustments';
const RECEIVABLE = 'receivable.merchant';
const OWED_BY_BANK = 'receivable.bank';

/** @throws RangeError when a name cannot be part of a path */
function checkName(name: string): string {
  if (!isBalanceAccountName(name)) throw new RangeError(`No name of a ledger account: ${name}`);
  return name;
}

function transfer(from: string, to: string, amount: number | bigint): EntryLine[] {
  return [
    { account: from, amount: -amount },
    { account: to, amount },
  ];
}

function dropZeroLines(lines: EntryLine[]): EntryLine[] {
  return lines.filter(({ amount }) => amount !== 0);
}

/** Lines of each kind of entry; amounts in minor units. */
export const ENTRY_LINES = {
  funded: (balance: string, amount: number) =>
    transfer('external.funding', available(balance), amount),
  /** Below 0 debits. Debt of a merchant is collected against the receivable. */
  adjusted: (balance: string, amount: number | bigint, against: 'adjustments' | 'receivable') =>
    transfer(against === 'receivable' ? RECEIVABLE : ADJUSTMENTS, available(balance), amount),
  reversed: (lines: readonly EntryLine[]) =>
    lines.map(({ account, amount }) => ({ account, amount: -amount })),
  /**
   * Credits `main`, without a processing fee; what an operator accepts comes from suspense first.
   * @see docs/decisions.md#balances
   */
  payment_settled: (connector: string, amount: number, held = 0) =>
    dropZeroLines([
      { account: clearing(connector), amount: held - amount },
      { account: LATE, amount: -held },
      { account: available(MAIN_BALANCE), amount },
    ]),
  /** Holds late funds until they are sent back … */
  payment_late_received: (connector: string, amount: number) =>
    transfer(clearing(connector), LATE, amount),
  /** … which the bank confirms. */
  payment_late_reversed: (connector: string, amount: number) =>
    transfer(LATE, clearing(connector), amount),
  /** Holds any money in question, until it is credited … */
  payment_receipt_held: (connector: string, amount: number) =>
    transfer(clearing(connector), LATE, amount),
  /** … or sent back. */
  payment_receipt_returned: (connector: string, amount: number) =>
    transfer(LATE, clearing(connector), amount),
  /** Takes from `main` as much as it holds; the merchant owes the rest. */
  payment_clawed_back: (connector: string, held: number, owed: number) =>
    dropZeroLines([
      { account: clearing(connector), amount: held + owed },
      { account: available(MAIN_BALANCE), amount: -held },
      { account: RECEIVABLE, amount: -owed },
    ]),
  /** Debits the default balance when the refund is accepted. @see docs/decisions.md#balances */
  refund_accepted: (amount: number) => transfer(available(MAIN_BALANCE), REFUNDS, amount),
  /** Credits what the bank did not send, where it sent less than the refund. */
  refund_settled: (connector: string, amount: number, sent: number) =>
    dropZeroLines([
      { account: REFUNDS, amount: -amount },
      { account: clearing(connector), amount: sent },
      { account: available(MAIN_BALANCE), amount: amount - sent },
    ]),
  refund_failed: (amount: number) => transfer(REFUNDS, available(MAIN_BALANCE), amount),
  /** Debits what the bank sent although the refund had failed; the merchant owes the rest. */
  refund_sent_late: (connector: string, held: number, owed: number) =>
    dropZeroLines([
      { account: clearing(connector), amount: held + owed },
      { account: available(MAIN_BALANCE), amount: -held },
      { account: RECEIVABLE, amount: -owed },
    ]),
  /** Money that the bank sent once more, without being asked. */
  refund_sent_again: (connector: string, amount: number) =>
    transfer(OWED_BY_BANK, clearing(connector), amount),
  /** Amount and fee are reserved at creation … */
  payout_reserved: (balance: string, amount: number, fee: number) =>
    transfer(available(balance), reserved(balance), amount + fee),
  /** … captured at `sent` … */
  payout_captured: (balance: string, connector: string, amount: number, fee: number) =>
    dropZeroLines([
      { account: reserved(balance), amount: -amount - fee },
      { account: clearing(connector), amount },
      { account: FEES, amount: fee },
    ]),
  /** … released when it fails before that … */
  payout_released: (balance: string, amount: number, fee: number) =>
    transfer(reserved(balance), available(balance), amount + fee),
  /** … and given back, both, when it fails after it. */
  payout_reversed: (balance: string, connector: string, amount: number, fee: number) =>
    dropZeroLines([
      { account: clearing(connector), amount: -amount },
      { account: FEES, amount: -fee },
      { account: available(balance), amount: amount + fee },
    ]),
  payout_returned: (balance: string, connector: string, amount: number) =>
    transfer(clearing(connector), available(balance), amount),
  payout_sent_again: (connector: string, amount: number) =>
    transfer(OWED_BY_BANK, clearing(connector), amount),
  crypto_payment_credited: (connector: string, amount: bigint) =>
    transfer(clearing(connector), available(MAIN_BALANCE), amount),
  crypto_payment_returned: (connector: string, amount: bigint) =>
    transfer(available(MAIN_BALANCE), clearing(connector), amount),
  /** Reserves what a settlement pays out when it is accepted … */
  crypto_settlement_reserved: (amount: bigint) =>
    transfer(available(MAIN_BALANCE), reserved(MAIN_BALANCE), amount),
  /** … captured when the chain has confirmed it … */
  crypto_settlement_captured: (connector: string, amount: bigint) =>
    transfer(reserved(MAIN_BALANCE), clearing(connector), amount),
  /** … and released when it fails. */
  crypto_settlement_released: (amount: bigint) =>
    transfer(reserved(MAIN_BALANCE), available(MAIN_BALANCE), amount),
} satisfies Record<EntryKind, (...args: never[]) => EntryLine[]>;

export function mustNotBeNegative(account: string): boolean {
  return /^(balances|transit|suspense)\./.test(account);
}

/** Whether a balance may never rise above 0. */
export function mustNotBePositive(account: string): boolean {
  return account === RECEIVABLE;
}

/** Asserts that lines sum to zero, in whole units, one for each account. @throws RangeError */
export function assertBalanced(lines: readonly EntryLine[]): void {
  const accounts = new Set(lines.map(({ account }) => account));
  const isWhole = lines.every(({ amount }) => isWithin(amount));
  const sum = isWhole ? lines.reduce((total, { amount }) => total + BigInt(amount), 0n) : undefined;
  if (sum !== 0n || lines.length < 2 || accounts.size < lines.length) {
    const each = lines.map(({ account, amount }) => `${account} ${amount}`);
    throw new RangeError(`Not a balanced journal entry: ${each.join(', ')}`);
  }
}

/** Largest amount of a line; the database adds up to 34 digits exactly. */
const UNITS_MAX = 10n ** 28n;

function isWithin(amount: number | bigint): boolean {
  if (typeof amount === 'number') return Number.isSafeInteger(amount);
  return amount < UNITS_MAX && amount > -UNITS_MAX;
}
