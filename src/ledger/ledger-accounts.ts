import { Decimal128, type Document, Long, MongoServerError } from 'mongodb';
import { parseBookCurrency } from '../domain/crypto/assets';
import { ServiceError } from '../domain/errors';
import { BOOKS_REFUSED } from '../domain/lifecycle';
import { isBalanceAccountName } from '../domain/money/money';

export const available = (name: string) => `balances.${checkName(name)}.available`;
/** Money that is settled, and can be used from a day on: `YYYY-MM-DD`. */
export const due = (name: string, day: string) => `due.${checkName(name)}.${day}`;
export const reserved = (name: string) => `balances.${checkName(name)}.reserved`;
export const clearing = (connector: string) => `clearing.${checkName(connector)}`;
export const FUNDING = 'external.funding';
export const REFUNDS = 'transit.refunds';
export const FEES = 'income.fees';
export const ACQUIRER_FEES = 'income.acquirer_fees';
export const LATE = 'suspense.late';
export const DEPOSITS = 'suspense.deposits';
export const ADJUSTMENTS = 'external.adjustments';
export const RECEIVABLE = 'receivable.merchant';

const HELD = 'suspense.held';

export const SENT = 'suspense.sent';

export const BANK_FEES = 'expense.bank_fees';

export const UNMATCHED = 'suspense.unmatched';

export const IN_TRANSIT = 'platform.in_transit';

/** Accounts of the service's own book, by the kind of `platform post`. */
export const PLATFORM_ACCOUNTS = {
  fee_sweep: 'platform.fees',
  interest: 'platform.interest',
  transfer: IN_TRANSIT,
  acquirer_payout: IN_TRANSIT,
} as const;
export type PlatformKind = keyof typeof PLATFORM_ACCOUNTS;

/** Opposite side of an operator's correction. */
export type Against = keyof typeof AGAINST | `clearing:${string}`;

const AGAINST = {
  adjustments: ADJUSTMENTS,
  receivable: RECEIVABLE,
  suspense: HELD,
  bank_fees: BANK_FEES,
} as const;

const isNamed = (name: string): name is keyof typeof AGAINST => Object.hasOwn(AGAINST, name);

export function parseAgainst(text: string): Against | undefined {
  if (isNamed(text)) return text;
  const connector = readConnector(text);
  return connector !== undefined && isBalanceAccountName(connector)
    ? `clearing:${connector}`
    : undefined;
}

export function readConnector(against: string): string | undefined {
  return /^clearing:(.+)$/.exec(against)?.[1];
}

export function getOppositeAccount(against: Against): string {
  return isNamed(against) ? AGAINST[against] : clearing(readConnector(against) ?? '');
}

/** @returns the balance, and the day from which it can be used: '' now; undefined of another account */
export function readAvailable(account: string): { name: string; day: string } | undefined {
  const [, now, later, day = ''] =
    /^(?:balances\.([^.]+)\.available|due\.([^.]+)\.([^.]+))$/.exec(account) ?? [];
  const name = now ?? later;
  return name === undefined ? undefined : { name, day };
}

/** @returns the connector whose money an account is; undefined of another account */
export function readClearing(account: string): string | undefined {
  return /^clearing\.(.+)$/.exec(account)?.[1];
}

type Bound = 'not_negative' | 'not_positive' | null;

/** Side of 0 on which each balance stays; null: both. `*` is any name. */
export const LEDGER_ACCOUNTS: Readonly<Record<string, Bound>> = {
  'balances.*.available': 'not_negative',
  'balances.*.reserved': 'not_negative',
  'due.*.*': 'not_negative',
  [REFUNDS]: 'not_negative',
  [LATE]: 'not_negative',
  [HELD]: 'not_negative',
  [DEPOSITS]: 'not_negative',
  [SENT]: null,
  [UNMATCHED]: null,
  [RECEIVABLE]: 'not_positive',
  'clearing.*': null,
  clearing: null,
  cash: null,
  'income.*': null,
  'expense.*': null,
  'external.*': null,
  'platform.*': null,
};

export function mustNotBeNegative(account: string): boolean {
  return findBound(account) === 'not_negative';
}

export function mustNotBePositive(account: string): boolean {
  return findBound(account) === 'not_positive';
}

function findBound(account: string): Bound {
  const named = account.replace(/^balances\.[^.]+\./, 'balances.*.').replace(/^due\..+/, 'due.*.*');
  return LEDGER_ACCOUNTS[named] ?? null;
}

function checkName(name: string): string {
  if (!isBalanceAccountName(name)) throw new RangeError(`No name of a ledger account: ${name}`);
  return name;
}

export type StoredInteger = Long | Decimal128;

/** Converts to 64 bits for money, to 34 digits for an asset, so that sums of a book stay exact. */
export function toStoredInteger(amount: number | bigint, currency: string): StoredInteger {
  if (parseBookCurrency(currency) !== undefined) return Decimal128.fromString(String(amount));
  return typeof amount === 'bigint' ? Long.fromBigInt(amount) : Long.fromNumber(amount);
}

/** @returns undefined for any other value */
export function toBigInt(value: unknown): bigint | undefined {
  if (typeof value === 'bigint') return value;
  if (value instanceof Decimal128) {
    const text = value.toString();
    return /^-?\d+$/.test(text) ? BigInt(text) : undefined;
  }
  return typeof value === 'number' && Number.isSafeInteger(value) ? BigInt(value) : undefined;
}

/** Lines are numbers that sum to zero. @see docs/ledger.md#validators */
export const ENTRY_VALIDATOR: Document = {
  $expr: {
    $cond: [
      { $isArray: '$lines' },
      {
        $and: [
          { $gte: [{ $size: '$lines' }, 2] },
          { $allElementsTrue: [mapEach('$lines', 'line', { $isNumber: '$$line.amount' })] },
          { $eq: [{ $sum: '$lines.amount' }, 0] },
        ],
      },
      false,
    ],
  },
};

/** Balances are on their side of 0. */
export const BOOK_VALIDATOR: Document = {
  $expr: {
    $and: Object.entries(LEDGER_ACCOUNTS).flatMap(([account, bound]) =>
      bound === null
        ? []
        : [checkSide(account.split('.'), '$$CURRENT', bound === 'not_negative' ? '$gte' : '$lte')],
    ),
  },
};

/** Follows a path, of which `*` is every name. */
function checkSide(
  [name, ...rest]: readonly string[],
  at: string,
  operator: '$gte' | '$lte',
): Document {
  if (name === undefined) return { [operator]: [{ $ifNull: [at, 0] }, 0] };
  if (name !== '*') return checkSide(rest, `${at}.${name}`, operator);
  const named = { $objectToArray: { $ifNull: [at, {}] } };
  return { $allElementsTrue: [mapEach(named, 'each', checkSide(rest, '$$each.v', operator))] };
}

function mapEach(input: unknown, name: string, to: Document): Document {
  return { $map: { input, as: name, in: to } };
}

/** Error of an entry that a validator refuses: a fault of the service. The transaction aborts. */
export class BooksRefused extends ServiceError {
  override readonly name = 'BooksRefused';

  constructor(what: string) {
    super(
      BOOKS_REFUSED,
      `The books refuse ${what}: its lines do not sum to zero, or a balance would pass its ` +
        'bound. Nothing was written. This is a fault of the service: report it to its developers.',
    );
  }
}

const VALIDATION_FAILED = 121;

/** @param what is written, for people @throws BooksRefused */
export async function orRefused<T>(what: string, write: () => Promise<T>): Promise<T> {
  try {
    return await write();
  } catch (error) {
    const isRefused =
      error instanceof MongoServerError &&
      [error, ...[error['writeErrors'] ?? []].flat()].some(
        ({ code }) => code === VALIDATION_FAILED,
      );
    throw isRefused ? new BooksRefused(what) : error;
  }
}
