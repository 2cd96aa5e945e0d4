import { bookCurrency } from '../../domain/crypto/assets';
import {
  DEPOSIT_STEPS,
  type DepositStep,
  depositKey,
  listDepositSteps,
} from '../../domain/crypto/deposit';
import type { CryptoPaymentStatus } from '../../domain/crypto/payment';
import { buildDepositLines } from '../../ledger/crypto-entries';
import { bookId, type EntryKind, type ResourceEntryKind } from '../../ledger/entries';
import type { CryptoPaymentDocument } from '../../store/crypto-payments';
import type { ExpectedStep, ResourceRule } from '../rule';
import { COMMON } from './common';

const CRYPTO_PAYMENT_FIELDS = [
  ...COMMON,
  'connector',
  'asset',
  'network',
  'deposits',
  'reported',
] as const;

type CryptoPaymentPart = Pick<CryptoPaymentDocument, (typeof CRYPTO_PAYMENT_FIELDS)[number]>;

function listDeposits(payment: CryptoPaymentPart, step: DepositStep): ExpectedStep[] {
  const { deposits, connector, network, asset } = payment;
  const posted = deposits.filter((deposit) => listDepositSteps(deposit).includes(step));
  return posted.map((deposit) => {
    const currency = bookCurrency({ network, asset: deposit.asset ?? asset });
    return {
      step: depositKey(deposit),
      lines: buildDepositLines(step, connector, deposit),
      book: bookId({ ...payment, currency }),
    };
  });
}

const DEPOSITED = DEPOSIT_STEPS.map((step) => `crypto_payment_${step}` as const);

/** Each deposit has the entries of its own state, in any state of the payment. */
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
  lines: {
    crypto_payment_held: () => [],
    crypto_payment_credited: () => [],
    crypto_payment_returned: () => [],
    crypto_payment_withdrawn: () => [],
    crypto_payment_sent_back: () => [],
    crypto_payment_written_off: () => [],
  },
  steps: Object.fromEntries(
    DEPOSIT_STEPS.map((step) => [
      `crypto_payment_${step}`,
      (payment: CryptoPaymentPart) => listDeposits(payment, step),
    ]),
  ),
  reportedTransitions: ({ reported }) => reported.map(({ transition }) => transition),
};
