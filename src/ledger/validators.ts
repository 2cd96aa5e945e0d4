import { type Document, MongoServerError } from 'mongodb';
import { ServiceError } from '../domain/errors';
import { BOOKS_REFUSED } from '../domain/lifecycle';
import { LEDGER_ACCOUNTS } from './ledger-accounts';

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
