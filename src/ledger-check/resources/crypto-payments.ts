import type { Units } from '../../domain/banks/movement';
import { bookCurrency } from '../../domain/crypto/assets';
import {
  DEPOSIT_ENTRIES,
  type DepositEntry,
  findDepositMovement,
  isCredited,
  isFromSuspense,
  listDepositEntries,
} from '../../domain/crypto/deposit-money';
import type { CryptoPaymentStatus } from '../../domain/crypto/payment';
import { buildDepositLines } from '../../ledger/crypto-entries';
import { bookId, type EntryKind, type ResourceEntryKind } from '../../ledger/entries';
import type { CryptoPaymentDocument } from '../../store/crypto-payments';
import { compareValues, difference } from '../compare';
import { type CheckedMovement, COMMON, type ExpectedStep, type ResourceRule } from '../rule';

const CRYPTO_PAYMENT_FIELDS = [
  ...COMMON,
  'connector',
  'asset',
  'network',
  'deposits',
  'reported',
] as const;

type CryptoPaymentPart = Pick<CryptoPaymentDocument, (typeof CRYPTO_PAYMENT_FIELDS)[number]> & {
  movements: readonly CheckedMovement[];
};

/** Lists what the register says of its money; a deposit that counts, or waits, has a movement. */
function listDeposits(payment: CryptoPaymentPart, kind: DepositEntry): ExpectedStep[] {
  const { deposits, movements, network, asset } = payment;
  return deposits.flatMap((deposit): ExpectedStep[] => {
    const pair = { network, asset: deposit.asset ?? asset };
    const row = findDepositMovement(movements, deposit);
    const money = {
      amount: row?.amount ?? deposit.amount,
      isFromSuspense: row !== undefined && isFromSuspense(row),
      isReorged: row?.reason === 'deposit_undone',
    };
    // The entry of a movement that is missing is expected, too.
    const unmoved = deposit.status === 'confirmed' ? 'credited' : 'held';
    const isExpected =
      row === undefined
        ? deposit.status !== 'pending' && kind === unmoved
        : listDepositEntries(row).includes(kind);
    if (!isExpected) return [];
    return [
      {
        step: deposit.key,
        lines: buildDepositLines(kind, payment.connector, money),
        book: bookId({ ...payment, currency: row?.currency ?? bookCurrency(pair) }),
      },
    ];
  });
}

function describeDeposit(isCounted: boolean, amount: Units): string {
  return `${amount} ${isCounted ? 'counts' : 'does not count'}`;
}

const DEPOSITED = DEPOSIT_ENTRIES.map((step) => `crypto_payment_${step}` as const);

/** Each deposit has the entries of its own movement, in any state of the payment. */
export const CRYPTO_PAYMENTS: ResourceRule<
  CryptoPaymentPart,
  ResourceEntryKind<'crypto_payment'>
> = {
  collection: 'crypto_payments',
  fields: CRYPTO_PAYMENT_FIELDS,
  entries: {
    awaiting_deposit: DEPOSITED,
    underpaid: DEPOSITED,
    held: DEPOSITED,
    received: DEPOSITED,
    expired: DEPOSITED,
  } satisfies Record<CryptoPaymentStatus, readonly EntryKind[]>,
  steps: {
    crypto_payment_held: (payment) => listDeposits(payment, 'held'),
    crypto_payment_credited: (payment) => listDeposits(payment, 'credited'),
    crypto_payment_returned: (payment) => listDeposits(payment, 'returned'),
    crypto_payment_withdrawn: (payment) => listDeposits(payment, 'withdrawn'),
    crypto_payment_sent_back: (payment) => listDeposits(payment, 'sent_back'),
    crypto_payment_written_off: (payment) => listDeposits(payment, 'written_off'),
  },
  /** Compares what the document says of deposits with the register. */
  compare: ({ _id, deposits, movements }) =>
    deposits.flatMap((deposit) => {
      const { key, status, amount } = deposit;
      const found = describeDeposit(status === 'confirmed', amount);
      const row = findDepositMovement(movements, deposit);
      if (row !== undefined) {
        const expected = describeDeposit(isCredited(row), row.amount);
        return compareValues('deposit_differs', _id, key, expected, found);
      }
      return status === 'pending' ? [] : [difference('deposit_differs', _id, key, null, found)];
    }),
  reportedTransitions: ({ reported }) => reported.map(({ transition }) => transition),
};
