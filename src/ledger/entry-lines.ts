import { isBalanceAccountName, MAIN_BALANCE } from '../domain/account/balance-account';
import type { AnyLine, AssetLine, EntryKind, EntryLine } from './entries';

const available = (name: string) => `balances.${checkName(name)}.available`;
const reserved = (name: string) => `balances.${checkName(name)}.reserved`;
const clearing = (connector: string) => `clearing.${checkName(connector)}`;
const REFUNDS = 'transit.refunds';
const FEES = 'income.fees';
const LATE = 'suspense.late';
const ADJUSTMENTS = 'external.adjustments';
const RECEIVABLE = 'receivable.merchant';

/** Checks a name that becomes part of a path. @throws RangeError on any other text */
function checkName(name: string): string {
  if (!isBalanceAccountName(name)) throw new RangeError(`No name of a ledger account: ${name}`);
  return name;
}

/** Legs that move `amount` from one account to the other. */
function transfer(from: string, to: string, amount: number): EntryLine[] {
  return [
    { account: from, amount: -amount },
    { account: to, amount },
  ];
}

function transferUnits(from: string, to: string, amount: bigint): AssetLine[] {
  return [
    { account: from, amount: -amount },
    { account: to, amount },
  ];
}

function negateLine({ account, amount }: AnyLine): AnyLine {
  return typeof amount === 'bigint' ? { account, amount: -amount } : { account, amount: -amount };
}

function dropZeroLines(lines: EntryLine[]): EntryLine[] {
  return lines.filter(({ amount }) => amount !== 0);
}

/** Legs of each kind of posting; amounts in minor units. */
export const ENTRY_LINES = {
  /** An operator credits a balance. */
  funded: (balance: string, amount: number) =>
    transfer('external.funding', available(balance), amount),
  /**
   * An operator corrects a balance; below 0 debits it. What a merchant owes is collected against the
   * receivable.
   */
  adjusted: (
    balance: string,
    amount: number | bigint,
    against: 'adjustments' | 'receivable',
  ): AnyLine[] => {
    const from = against === 'receivable' ? RECEIVABLE : ADJUSTMENTS;
    return typeof amount === 'bigint'
      ? transferUnits(from, available(balance), amount)
      : transfer(from, available(balance), amount);
  },
  /** An operator undoes a posting. */
  reversed: (lines: readonly AnyLine[]): AnyLine[] => lines.map(negateLine),
  /** Credits `main`, without a processing fee. @see docs/decisions.md#balances */
  payment_settled: (connector: string, amount: number) =>
    transfer(clearing(connector), available(MAIN_BALANCE), amount),
  /** Holds money that came after the payment had ended, until it is sent back … */
  payment_late_received: (connector: string, amount: number) =>
    transfer(clearing(connector), LATE, amount),
  /** … which the bank confirms. */
  payment_late_reversed: (connector: string, amount: number) =>
    transfer(LATE, clearing(connector), amount),
  /**
   * Gives the bank back what it takes from a settled payment: from `main` as much as it holds, and
   * the merchant owes the rest.
   */
  payment_clawed_back: (connector: string, held: number, owed: number) =>
    dropZeroLines([
      { account: clearing(connector), amount: held + owed },
      { account: available(MAIN_BALANCE), amount: -held },
      { account: RECEIVABLE, amount: -owed },
    ]),
  /** Debits the default balance when the refund is accepted. @see docs/decisions.md#balances */
  refund_accepted: (amount: number) => transfer(available(MAIN_BALANCE), REFUNDS, amount),
  /** Credits what the bank has not sent, where it sent less than it was asked for. */
  refund_settled: (connector: string, amount: number, sent: number) =>
    dropZeroLines([
      { account: REFUNDS, amount: -amount },
      { account: clearing(connector), amount: sent },
      { account: available(MAIN_BALANCE), amount: amount - sent },
    ]),
  refund_failed: (amount: number) => transfer(REFUNDS, available(MAIN_BALANCE), amount),
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
  /** Credits the amount of a payout that came back; the fee stays. */
  payout_returned: (balance: string, connector: string, amount: number) =>
    transfer(clearing(connector), available(balance), amount),
  /** Credits a deposit that counts, in the units of its coin. */
  crypto_payment_credited: (connector: string, amount: bigint) =>
    transferUnits(clearing(connector), available(MAIN_BALANCE), amount),
  /** Takes a deposit off again that goes back to the payer. */
  crypto_payment_returned: (connector: string, amount: bigint) =>
    transferUnits(available(MAIN_BALANCE), clearing(connector), amount),
  /** Reserves what a settlement pays out when it is accepted … */
  crypto_settlement_reserved: (amount: bigint) =>
    transferUnits(available(MAIN_BALANCE), reserved(MAIN_BALANCE), amount),
  /** … which has left when the chain has it for good … */
  crypto_settlement_captured: (connector: string, amount: bigint) =>
    transferUnits(reserved(MAIN_BALANCE), clearing(connector), amount),
  /** … and is given back when it has failed. */
  crypto_settlement_released: (amount: bigint) =>
    transferUnits(reserved(MAIN_BALANCE), available(MAIN_BALANCE), amount),
} satisfies Record<EntryKind, (...args: never[]) => AnyLine[]>;

/** Whether a balance may never fall below 0. */
export function mustNotBeNegative(account: string): boolean {
  return /^(balances|transit|suspense)\./.test(account);
}

/** Whether a balance may never rise above 0: a merchant never owes less than nothing. */
export function mustNotBePositive(account: string): boolean {
  return account === RECEIVABLE;
}

/** Asserts that legs sum to zero, in whole minor units, one for each account. @throws RangeError */
export function assertBalanced(lines: readonly AnyLine[]): void {
  const accounts = new Set(lines.map(({ account }) => account));
  const isWhole = lines.every(({ amount }) => isWithin(amount));
  const sum = isWhole ? lines.reduce((total, { amount }) => total + BigInt(amount), 0n) : undefined;
  if (sum !== 0n || lines.length < 2 || accounts.size < lines.length) {
    const each = lines.map(({ account, amount }) => `${account} ${amount}`);
    throw new RangeError(`Not a balanced posting: ${each.join(', ')}`);
  }
}

/** Largest amount of a coin in one leg; the database adds up to 34 digits exactly. */
const UNITS_MAX = 10n ** 28n;

function isWithin(amount: number | bigint): boolean {
  if (typeof amount === 'number') return Number.isSafeInteger(amount);
  return amount < UNITS_MAX && amount > -UNITS_MAX;
}
