import { ApplicationFailure } from '@temporalio/activity';
import { abandon, inTransaction, isDuplicateKey } from '../src/base/mongo';
import { getVerificationMode } from '../src/domain/banks/callback';
import { isInSuspense } from '../src/domain/banks/movement';
import {
  assetRules,
  bookCurrency,
  paymentUri,
  sufficientAmount,
} from '../src/domain/crypto/assets';
import type { Deposit } from '../src/domain/crypto/deposit';
import type { DepositStep } from '../src/domain/crypto/deposit-money';
import {
  CRYPTO_PAYMENT_EVENTS,
  CRYPTO_PAYMENT_TRANSITIONS,
  type CryptoPaymentStatus,
} from '../src/domain/crypto/payment';
import type { CryptoPaymentInput } from '../src/domain/crypto/workflow';
import { derivePayTokenHash } from '../src/encryption/pay-token';
import { bookId } from '../src/ledger/entries';
import { InsufficientBalance } from '../src/ledger/locks';
import { recordDeposits } from '../src/movements/deposits';
import { listMovements } from '../src/movements/register';
import {
  ADDRESS_INDEX,
  type CryptoPaymentDocument,
  type ReportedStatus,
} from '../src/store/crypto-payments';
import type { PaymentActivityDeps } from './payments';
import { positionAt, readCryptoSubscribers } from './shared/events';
import { openWithRetry, throwMissing } from './shared/opening';
import { createRecord } from './shared/record';
import {
  buildCommonChange,
  type OpenedState,
  type RecordTable,
  type Transition,
} from './shared/record-table';

export type OpenCryptoPayment = Omit<CryptoPaymentInput, 'expires_in_seconds'> & {
  created_at: string;
  expires_at: string;
  /** Smallest units. */
  amount_due: string;
  rate: string;
  address: string;
  required_confirmations: number;
  chain_id: number | null;
  token_contract: string | null;
  play_url?: string;
};

export type CryptoPaymentFacts = ReturnType<typeof readFacts>;

export interface CryptoPaymentOpening extends OpenedState<CryptoPaymentStatus> {
  facts: CryptoPaymentFacts;
}

export interface CryptoPaymentChange {
  deposits: Deposit[];
  amount_received: string;
  accepted: boolean;
  reported: ReportedStatus[];
  steps: DepositStep[];
  /** ISO 8601, ms; set where the connector closed the window early. */
  closed_early_at?: string;
  is_reported: boolean;
}

type CryptoPaymentTransition = Transition<CryptoPaymentDocument, CryptoPaymentChange>;

export function createCryptoPaymentActivities(deps: PaymentActivityDeps) {
  const { stores } = deps;
  const table: RecordTable<CryptoPaymentDocument, CryptoPaymentChange> = {
    resource: 'crypto_payment',
    store: stores.crypto_payments,
    transitions: CRYPTO_PAYMENT_TRANSITIONS,
    events: CRYPTO_PAYMENT_EVENTS,
    eventData: ({ _id }) => ({ crypto_payment_id: _id }),
    buildChange: (transition) => {
      const { from, to, at, change } = transition;
      const { steps, is_reported, ...fields } = change;
      const isReceived = to.includes('received') && from.status !== 'received';
      return {
        ...buildCommonChange(transition),
        ...fields,
        ...(isReceived ? { received_at: at } : {}),
      };
    },
    posted: ['underpaid', 'held', 'received'],
    post: (payment, transition, session) =>
      recordDeposits(stores, payment, transition.change.steps ?? [], transition, session),
    isInSuspense: async ({ _id, attention }) =>
      (await listMovements(stores, _id)).some(
        (movement) => movement.reason === attention && isInSuspense(movement),
      ),
    shouldReport: ({ change }) => change.is_reported === true,
    getBook: (payment) => bookId({ ...payment, currency: bookCurrency(payment) }),
    readSubscribers: readCryptoSubscribers,
  };
  const record = createRecord(deps, table, async (payment, request_id) => {
    const { _id, deposits, accepted, reported } = payment;
    const facts = readFacts(payment, request_id);
    return { facts, deposits, accepted, reported, movements: await listMovements(stores, _id) };
  });
  return {
    openCryptoPayment: (input: OpenCryptoPayment): Promise<CryptoPaymentOpening> =>
      openWithRetry(() => openCryptoPayment(deps, input)),
    /** @throws ApplicationFailure `insufficient_balance` when a returned deposit was spent */
    recordCryptoPaymentMove: async (input: CryptoPaymentTransition) => {
      try {
        return await record.transition(input);
      } catch (error) {
        if (!(error instanceof InsufficientBalance)) throw error;
        throw ApplicationFailure.nonRetryable(error.message, 'insufficient_balance');
      }
    },
    recordCryptoPaymentAttention: record.setAttention,
    loadCryptoPayment: record.load,
  };
}

/** @throws ApplicationFailure not retryable, `address_in_use` */
async function openCryptoPayment(
  deps: PaymentActivityDeps,
  input: OpenCryptoPayment,
): Promise<CryptoPaymentOpening> {
  const { stores } = deps;
  const { crypto_payment_id, chain_id, token_contract, play_url = null, ...facts } = input;
  const { connector, request_id } = facts;
  const existing = await stores.crypto_payments.get(crypto_payment_id);
  if (existing !== null) return buildOpening(existing, request_id);
  const payment = await inTransaction(deps.mongo, async (session) => {
    const request = await stores.idempotency.clearRequest(crypto_payment_id, session);
    // Another attempt was first, or the request was released.
    if (request === null || !('crypto_payment' in request)) return await abandon(session);
    const fresh: CryptoPaymentDocument = {
      _id: crypto_payment_id,
      ...facts,
      ...request.crypto_payment,
      version: 1,
      transition: 1,
      position: positionAt(input.created_at),
      status: 'awaiting_deposit',
      amount_received: '0',
      payment_uri: paymentUri(input),
      play_url,
      deposits: [],
      accepted: false,
      reported: [],
      failure: null,
      received_at: null,
      updated_at: input.created_at,
      bank_reference: null,
      token_hash: derivePayTokenHash(deps.payTokenKey, crypto_payment_id),
      attention: null,
      audit: [],
    };
    await stores.crypto_payments.insert(fresh, session);
    return fresh;
  }).catch((error: unknown) => {
    if (!isDuplicateKey(error, ADDRESS_INDEX)) throw error;
    const ids = { crypto_payment_id, connector, request_id };
    deps.log.error(ids, 'address of another payment given');
    const message = 'The connector gave the address of another payment: nothing was opened.';
    throw ApplicationFailure.nonRetryable(message, 'address_in_use');
  });
  if (payment !== null) {
    deps.log.info({ crypto_payment_id, request_id }, 'crypto payment opened');
    return buildOpening(payment, request_id);
  }
  const storedPayment = await stores.crypto_payments.get(crypto_payment_id);
  if (storedPayment !== null) return buildOpening(storedPayment, request_id);
  return await throwMissing(stores, 'payment', crypto_payment_id);
}

/** Builds the first answer, whatever has happened since. */
function buildOpening(payment: CryptoPaymentDocument, request_id: string): CryptoPaymentOpening {
  const facts = readFacts(payment, request_id);
  return {
    status: 'awaiting_deposit',
    version: 1,
    transition: 1,
    facts,
    verification: getVerificationMode(payment.livemode),
  };
}

function readFacts(payment: CryptoPaymentDocument, request_id: string) {
  const { _id, account_id, livemode, connector, asset, network } = payment;
  const { amount_due, required_confirmations } = payment;
  const expires_at = payment.closed_early_at ?? payment.expires_at;
  // Tests may choose the amount of a sandbox deposit.
  const sufficient =
    payment.tolerance_percent === undefined ? undefined : String(sufficientAmount(payment));
  const least_deposit = livemode ? assetRules(asset, network)?.least_deposit : undefined;
  return {
    crypto_payment_id: _id,
    ...{ account_id, livemode, connector, asset, network },
    ...{ amount_due, required_confirmations, expires_at },
    ...{ least_deposit, sufficient, request_id },
  };
}
