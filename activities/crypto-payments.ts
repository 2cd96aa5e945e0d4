import { ApplicationFailure } from '@temporalio/activity';
import { senderCheck } from '../src/domain/callback-mac';
import type { CryptoPaymentRequest } from '../src/domain/creation';
import { bookCurrency, paymentUri } from '../src/domain/crypto';
import {
  CRYPTO_PAYMENT_EVENTS,
  CRYPTO_PAYMENT_MOVES,
  type CryptoPaymentAttention,
  type CryptoPaymentStatus,
} from '../src/domain/crypto-payment';
import type { CryptoPaymentInput } from '../src/domain/crypto-workflow';
import type { Deposit } from '../src/domain/deposit';
import { newTokenHash } from '../src/keys/pay-token';
import type { KeyRing } from '../src/keys/ring';
import { bookId, InsufficientBalance } from '../src/ledger/postings';
import { depositPosting } from '../src/ledger/steps';
import { abandon, inTransaction } from '../src/mongo';
import type { Stores } from '../src/store';
import type { CryptoPaymentDocument, Told } from '../src/store/crypto-payments';
import { cryptoSubscriptionOf, positionAt, tieBase } from './events';
import type { PaymentActivityDeps } from './payments';
import { createRecord, openedOnce } from './record';
import type { OpenedStanding, RecordMove } from './record-inputs';
import { type RecordTable, standingOf } from './record-table';

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
  /** Page on which a person plays the payer; absent from connectors that have none. */
  play_url?: string;
};

/** Facts for the workflow to go on with. */
export type CryptoPaymentFacts = ReturnType<typeof factsOf>;

export interface CryptoPaymentOpening extends OpenedStanding<CryptoPaymentStatus> {
  facts: CryptoPaymentFacts;
}

/** Fields that a move changes beside its status, and the writes that go with it. */
export interface CryptoPaymentChange {
  deposits: Deposit[];
  amount_received: string;
  accepted: boolean;
  told: Told[];
  /** Transactions of the deposits that begin to count. */
  credited: string[];
  /** Transactions of the deposits that go back; absent where there are none. */
  returned?: string[];
  /** Whether the merchant is told: of each state once. */
  tells: boolean;
}

type Move = RecordMove<CryptoPaymentStatus, CryptoPaymentAttention, CryptoPaymentChange>;

/** The writes of a crypto payment's lifecycle. One activity is one idempotent step. */
export function createCryptoPaymentActivities(deps: PaymentActivityDeps) {
  const record = createRecord(deps, recordTable(deps.stores));
  return {
    /** Writes the payment from its claim, with the rate and the address that were given. */
    openCryptoPayment: (input: OpenCryptoPayment): Promise<CryptoPaymentOpening> =>
      openedOnce(() => openCryptoPayment(deps, input)),
    /** @throws ApplicationFailure `insufficient_balance` where what goes back is not there any more */
    recordCryptoPaymentMove: async (input: Move) => {
      try {
        return await record.move(input);
      } catch (error) {
        if (!(error instanceof InsufficientBalance)) throw error;
        throw ApplicationFailure.nonRetryable(error.message, 'insufficient_balance');
      }
    },
    recordCryptoPaymentAttention: record.setAttention,
    loadCryptoPayment: record.load,
  };
}

/** A crypto payment's record: each deposit that begins to count credits the merchant. */
function recordTable(
  stores: Stores,
): RecordTable<
  CryptoPaymentStatus,
  CryptoPaymentAttention,
  CryptoPaymentChange,
  CryptoPaymentDocument,
  ReturnType<typeof loaded>
> {
  return {
    resource: 'crypto_payment',
    store: stores.crypto_payments,
    moves: CRYPTO_PAYMENT_MOVES,
    events: CRYPTO_PAYMENT_EVENTS,
    eventData: ({ _id }) => ({ crypto_payment_id: _id }),
    changeOf,
    posted: ['underpaid', 'received'],
    post: async (payment, { at, change }, session) => {
      const { credited = [], returned = [] } = change;
      for (const deposit of payment.deposits) {
        const { transaction_id } = deposit;
        const kind = returned.includes(transaction_id)
          ? 'crypto_payment_returned'
          : 'crypto_payment_credited';
        if (kind === 'crypto_payment_credited' && !credited.includes(transaction_id)) continue;
        await stores.ledger.post(depositPosting(kind, payment, deposit, at), session);
      }
    },
    tells: ({ change }) => change.tells === true,
    bookOf: (payment) => bookId({ ...payment, currency: bookCurrency(payment) }),
    subscriptionOf: cryptoSubscriptionOf,
    loaded,
  };
}

async function openCryptoPayment(
  deps: PaymentActivityDeps,
  input: OpenCryptoPayment,
): Promise<CryptoPaymentOpening> {
  const { stores } = deps;
  const { crypto_payment_id, request_id } = input;
  const existing = await stores.crypto_payments.get(crypto_payment_id);
  if (existing !== null) return opened(existing, request_id);
  const payment = await inTransaction(deps.mongo, async (session) => {
    const request = await stores.idempotency.emptyClaim(crypto_payment_id, session);
    // Emptied by another attempt, which was first; or released, after its workflow had ended.
    if (request === null || !('crypto_payment' in request)) return await abandon(session);
    const fresh = newPayment(deps.payTokens, input, request.crypto_payment);
    await stores.crypto_payments.insert(fresh, session);
    return fresh;
  });
  if (payment !== null) {
    deps.log.info({ crypto_payment_id, request_id }, 'crypto payment opened');
    return opened(payment, request_id);
  }
  const written = await stores.crypto_payments.get(crypto_payment_id);
  if (written !== null) return opened(written, request_id);
  const claim = await stores.idempotency.forResource(crypto_payment_id);
  // Emptied, but no majority has the other attempt's payment yet: try again.
  if (claim !== null) throw new Error(`The payment ${crypto_payment_id} is not to be seen yet.`);
  throw ApplicationFailure.nonRetryable('No claim holds this payment.', 'claim_missing');
}

/** As it was first answered, whatever has happened since. */
function opened(payment: CryptoPaymentDocument, request_id: string): CryptoPaymentOpening {
  const facts = factsOf(payment, request_id);
  return { status: 'awaiting_deposit', version: 1, facts, senders: senderCheck(payment.livemode) };
}

/** The document as it is first written. @see docs/api.md#crypto */
function newPayment(
  payTokens: KeyRing,
  input: OpenCryptoPayment,
  request: CryptoPaymentRequest,
): CryptoPaymentDocument {
  const { crypto_payment_id, chain_id, token_contract, play_url = null, ...facts } = input;
  return {
    _id: crypto_payment_id,
    ...facts,
    ...request,
    version: 1,
    position: positionAt(input.created_at, 0, tieBase(1)),
    status: 'awaiting_deposit',
    amount_received: '0',
    payment_uri: paymentUri(input),
    play_url,
    deposits: [],
    accepted: false,
    told: [],
    failure: null,
    received_at: null,
    updated_at: input.created_at,
    bank_reference: null,
    token_hash: newTokenHash(payTokens, { ...request, _id: crypto_payment_id }),
    attention: null,
    audit: [],
  };
}

function changeOf(move: Move): Partial<CryptoPaymentDocument> {
  const { from, to, at, change } = move;
  const { credited, returned, tells, ...fields } = change;
  const isReceived = to.includes('received') && from.status !== 'received';
  return { ...standingOf(move), ...fields, ...(isReceived ? { received_at: at } : {}) };
}

/** State and facts of a payment whose workflow starts again. */
function loaded(payment: CryptoPaymentDocument, request_id: string) {
  const { status, version, attention, deposits, accepted, told } = payment;
  const facts = factsOf(payment, request_id);
  return { facts, status, version, attention, deposits, accepted, told };
}

/** The facts that a workflow needs, from its opening or when it starts again. */
function factsOf(payment: CryptoPaymentDocument, request_id: string) {
  const { _id, account_id, livemode, connector, asset, network } = payment;
  const { amount_due, required_confirmations, expires_at } = payment;
  return {
    crypto_payment_id: _id,
    ...{ account_id, livemode, connector, asset, network },
    ...{ amount_due, required_confirmations, expires_at },
    request_id,
  };
}
