import type { z } from 'zod';
import { availableEntry, catalogueEntry, PAYMENT_METHOD_IDS } from '../domain/catalogue';
import { CANCELLATIONS } from '../domain/payment';
import { RAIL_IDS, railEntry } from '../domain/rails';
import { SAMPLE_PAYMENT } from '../domain/sample-payment';
import type { CryptoPayment, CryptoSettlement } from '../domain/wire/crypto';
import type { Payment } from '../domain/wire/payments';
import type { Payout } from '../domain/wire/payouts';
import type { createRecipient } from '../domain/wire/recipients';
import type { Refund } from '../domain/wire/refunds';
import { PAYOUT_AMOUNT, SAMPLE_IDS } from './openapi-examples';

const CREATED = '2026-03-01T12:34:56.789Z';
const MOVED = '2026-03-01T12:35:12.003Z';
const EXPIRES = '2026-03-01T13:04:56.789Z';
/** Token of a page, in the form of a real one. */
const TOKEN = 'q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA';
const ADDRESS = '0x52908400098527886E0F7030069857D2E4169EE7';
const TRANSACTION = `0x${'4f'.repeat(32)}`;
/** Smallest units of a coin. */
const DUE = '40000000000000000';

type Recipient = z.output<typeof createRecipient.success.schema>;

/**
 * Examples of the answers to successful calls, by operation: what one example of its body leads to.
 * @param publicUrl base of the pages that answers lead to
 */
export function answerExamples(publicUrl: string): Readonly<Record<string, object>> {
  const payment: z.output<typeof Payment> = {
    id: SAMPLE_IDS.payment,
    object: 'payment',
    status: 'awaiting_customer',
    amount: SAMPLE_PAYMENT.amount,
    currency: SAMPLE_PAYMENT.currency,
    method: SAMPLE_PAYMENT.method,
    country: SAMPLE_PAYMENT.country,
    reference: SAMPLE_PAYMENT.reference,
    redirect_url: `${publicUrl}/pay/${TOKEN}`,
    customer: { email: null, first_name: null, last_name: null, reference: null },
    failure: null,
    livemode: false,
    metadata: {},
    authorized_at: null,
    settled_at: null,
    cancelled_at: null,
    created_at: CREATED,
    updated_at: CREATED,
  };
  const crypto: z.output<typeof CryptoPayment> = {
    id: SAMPLE_IDS.crypto_payment,
    object: 'crypto_payment',
    status: 'awaiting_deposit',
    amount: 10_000,
    currency: 'EUR',
    asset: 'ETH',
    network: 'ethereum',
    amount_due: DUE,
    amount_received: '0',
    address: ADDRESS,
    payment_uri: `ethereum:${ADDRESS}@1?value=${DUE}`,
    redirect_url: `${publicUrl}/pay/crypto/${TOKEN}`,
    deposits: [],
    reference: 'order-1001',
    livemode: false,
    metadata: {},
    expires_at: EXPIRES,
    received_at: null,
    created_at: CREATED,
    updated_at: CREATED,
  };
  const received: z.output<typeof CryptoPayment> = {
    ...crypto,
    ...{ status: 'received', amount_received: DUE, received_at: MOVED, updated_at: MOVED },
    deposits: [
      {
        ...{ transaction_id: TRANSACTION, amount: DUE, status: 'confirmed', seen_at: MOVED },
        ...{ confirmations: 3, required_confirmations: 3 },
      },
    ],
  };
  return {
    createPayment: payment,
    getPayment: payment,
    listPayments: pageOf(payment),
    cancelPayment: {
      ...payment,
      ...{ status: 'cancelled', cancelled_at: MOVED, updated_at: MOVED },
      failure: CANCELLATIONS.merchant,
    },
    simulatePayment: { ...payment, status: 'authorized', authorized_at: MOVED, updated_at: MOVED },
    createCryptoPayment: crypto,
    getCryptoPayment: crypto,
    listCryptoPayments: pageOf(crypto),
    simulateCryptoPayment: received,
    ...REFUNDS,
    ...RECIPIENTS,
    ...PAYOUTS,
    ...SETTLEMENTS,
    ...CATALOGUE,
  };
}

function pageOf(item: object): object {
  return { object: 'list', data: [item], has_more: false, next_cursor: null };
}

const refund: z.output<typeof Refund> = {
  id: SAMPLE_IDS.refund,
  object: 'refund',
  payment_id: SAMPLE_IDS.payment,
  amount: 500,
  currency: SAMPLE_PAYMENT.currency,
  status: 'processing',
  reason: 'One item came back.',
  failure: null,
  settled_at: null,
  created_at: CREATED,
};

const REFUNDS = {
  createRefund: refund,
  getRefund: refund,
  listRefunds: pageOf(refund),
  listPaymentRefunds: pageOf(refund),
  simulateRefund: { ...refund, status: 'settled', settled_at: MOVED },
};

const recipient: Recipient = {
  id: SAMPLE_IDS.recipient,
  object: 'payout_recipient',
  type: 'card',
  scheme: 'visa',
  last4: '1111',
  created_at: CREATED,
};

const RECIPIENTS = {
  createRecipient: recipient,
  deleteRecipient: { ...recipient, deleted: true },
};

const payout: z.output<typeof Payout> = {
  id: SAMPLE_IDS.payout,
  object: 'payout',
  status: 'sent',
  amount: PAYOUT_AMOUNT,
  currency: 'EUR',
  method: 'card_payout',
  recipient_id: SAMPLE_IDS.recipient,
  reference: 'invoice-2002',
  metadata: {},
  failure: null,
  returned: null,
  livemode: false,
  created_at: CREATED,
  completed_at: null,
};

const PAYOUTS = {
  createPayout: payout,
  getPayout: payout,
  listPayouts: pageOf(payout),
  simulatePayout: { ...payout, status: 'completed', completed_at: MOVED },
};

const settlement: z.output<typeof CryptoSettlement> = {
  id: SAMPLE_IDS.crypto_settlement,
  object: 'crypto_settlement',
  status: 'pending',
  asset: 'ETH',
  network: 'ethereum',
  amount: DUE,
  fee: '0',
  wallet_address: ADDRESS,
  transaction_id: null,
  failure: null,
  livemode: false,
  created_at: CREATED,
  completed_at: null,
};

const SETTLEMENTS = {
  createCryptoSettlement: settlement,
  getCryptoSettlement: settlement,
  listCryptoSettlements: pageOf(settlement),
  simulateCryptoSettlement: {
    ...settlement,
    ...{ status: 'completed', transaction_id: TRANSACTION, completed_at: MOVED },
  },
};

/** Methods of the catalogue that the example shows; the whole of it fills pages. */
const FIRST = PAYMENT_METHOD_IDS.slice(0, 2);

const CATALOGUE = {
  listPaymentMethods: { object: 'list', data: FIRST.map(catalogueEntry) },
  listAvailablePaymentMethods: { object: 'list', data: FIRST.map(availableEntry) },
  listPayoutMethods: { object: 'list', data: RAIL_IDS.map(railEntry) },
};
