import type { ErrorCode } from '../../src/domain/errors';
import { type Answer, idealPayment } from '../support/http';
import type { Account, Service } from '../support/service';
import { IN_ETHER, openCryptoShop } from './crypto-setting';
import { FUNDS, openShop } from './payout-setting';
import { cardRecipient } from './recipient-bodies';

/** A merchant who creates one kind of resource. */
export interface KeyedCreator extends Account {
  /** Body that every rule accepts. */
  body: object;
  /** Changes the status of a resource, so that a read of it differs from the first answer. */
  advance?: (id: string) => Promise<unknown>;
  /** Fails unless the money of one resource was taken. */
  expectTakenOnce?: () => Promise<void>;
  /** Makes the rules refuse a new resource with the code `forbidden`. */
  forbid?: () => Promise<unknown>;
}

/** A merchant who creates what a bank executes. */
export interface Creator extends Required<Omit<KeyedCreator, 'expectTakenOnce'>> {
  /** Creates a resource from the body, up to its bank. */
  make: () => Promise<Answer['body']>;
  /** Reports an event of the bank about a resource. */
  simulate: (id: string, body?: object) => Promise<Answer>;
}

interface Keyed<C> {
  name: string;
  path: string;
  operation: string;
  collection: string;
  /** Number of simultaneous calls with one key. */
  crowd: number;
  open: (service: Service) => Promise<C>;
  forbidden?: ErrorCode;
  /** Changes of the body that make it another body. */
  others: [what: string, change: object][];
  /** Changes of the body that are refused before anything is created. */
  refused: [what: string, change: object, code: ErrorCode][];
}

interface Creating extends Keyed<KeyedCreator & Creator> {
  resource: 'payment' | 'refund' | 'payout';
}

/** Resources that a bank executes. */
export const CREATES: Creating[] = [
  {
    name: 'payments',
    resource: 'payment',
    path: '/v1/payments',
    operation: 'createPayment',
    collection: 'payments',
    crowd: 50,
    open: async (service) => {
      const account = await service.account();
      return {
        ...account,
        body: idealPayment(),
        make: async () => (await account.post('/v1/payments', idealPayment())).body,
        simulate: (id, body) => account.post(`/v1/sandbox/payments/${id}/simulate`, body),
        forbid: () => service.stores.accounts.disableMethod(account.account_id, 'ideal'),
        advance: (id) => account.post(`/v1/payments/${id}/cancel`),
      };
    },
    forbidden: 'method_requirements_not_met',
    others: [
      ['another amount', { amount: 1_051 }],
      ['one field more', { metadata: {} }],
      ['a body that is not valid', { amount: 'much' }],
    ],
    refused: [
      ['a field that is not valid', { amount: 10.5 }, 'invalid_amount'],
      ['a currency that the method lacks', { currency: 'USD' }, 'method_requirements_not_met'],
      ['an unknown field', { extra: 1 }, 'invalid_request'],
    ],
  },
  {
    name: 'refunds',
    resource: 'refund',
    path: '/v1/refunds',
    operation: 'createRefund',
    collection: 'refunds',
    crowd: 20,
    open: async (service) => {
      const account = await service.account();
      const { id: payment_id } = await account.settledPayment();
      const simulate = (id: string, body?: object) =>
        account.post(`/v1/sandbox/refunds/${id}/simulate`, body);
      return {
        ...account,
        body: { payment_id, amount: 100 },
        make: async () => {
          const { id } = await account.settledPayment();
          return (await account.post('/v1/refunds', { payment_id: id })).body;
        },
        simulate,
        forbid: () => account.post('/v1/refunds', { payment_id }),
        advance: (id) => simulate(id, { event: 'failed' }),
        expectTakenOnce: async () => {
          expect((await service.stores.payments.get(payment_id))?.refunded).toBe(100);
        },
      };
    },
    forbidden: 'refund_amount_exceeds_balance',
    others: [
      ['another amount', { amount: 101 }],
      ['the amount left out', { amount: undefined }],
      ['a reason', { reason: 'Too big.' }],
      ['a body that is not valid', { amount: 1.5 }],
    ],
    refused: [
      ['its body', { amount: 1.5 }, 'invalid_amount'],
      ['its payment', { payment_id: 'some-id' }, 'payment_not_found'],
      ['the rules', { amount: 1_051 }, 'refund_amount_exceeds_balance'],
    ],
  },
  {
    name: 'payouts',
    resource: 'payout',
    path: '/v1/payouts',
    operation: 'createPayout',
    collection: 'payouts',
    crowd: 20,
    open: async (service) => {
      const { ask, paid, simulate, balance, untilSent, ...account } = await openShop(service);
      return {
        ...account,
        body: ask(),
        make: async () => (await paid()).body,
        simulate,
        forbid: () => service.stores.accounts.disableRail(account.account_id, 'sepa_instant'),
        advance: (id) => simulate(id, { event: 'completed' }),
        expectTakenOnce: async () => {
          await untilSent();
          expect(await balance()).toEqual([FUNDS.main - 1_000, 0]);
        },
      };
    },
    forbidden: 'rail_requirements_not_met',
    others: [
      ['another amount', { amount: 1_001 }],
      ['another rail', { method: 'sepa_credit_transfer' }],
      ['metadata', { metadata: { a: 1 } }],
      ['a body that is not valid', { amount: 1.5 }],
    ],
    refused: [
      ['its body', { amount: 1.5 }, 'invalid_amount'],
      ['its recipient', { recipient_id: 'some-id' }, 'recipient_not_found'],
      ['the rail', { currency: 'GBP' }, 'rail_requirements_not_met'],
      ['its balance', { amount: 99_999_999_999 }, 'insufficient_balance'],
      [
        'its balance account',
        { metadata: { balance_account: 'sales' } },
        'balance_account_not_found',
      ],
    ],
  },
];

/** Resources that a POST creates under an Idempotency-Key. */
export const KEYED: Keyed<KeyedCreator>[] = [
  ...CREATES,
  {
    name: 'payout recipients',
    path: '/v1/payout-recipients',
    operation: 'createRecipient',
    collection: 'recipients',
    crowd: 20,
    open: async (service) => ({ ...(await service.account()), body: cardRecipient() }),
    others: [
      ['another number', { card_number: '5555555555554444' }],
      ['a body that is not valid', { card_number: '4' }],
    ],
    refused: [['its body', { card_number: '4111111111111112' }, 'invalid_request']],
  },
  {
    name: 'crypto payments',
    path: '/v1/crypto/payments',
    operation: 'createCryptoPayment',
    collection: 'crypto_payments',
    crowd: 20,
    open: async (service) => {
      const shop = await openCryptoShop(service);
      const advance = (id: string) =>
        shop.post(`/v1/sandbox/crypto/payments/${id}/simulate`, { event: 'received' });
      return { ...shop, body: IN_ETHER, advance };
    },
    others: [
      ['another amount', { amount: 10_001 }],
      ['metadata', { metadata: { a: 1 } }],
    ],
    refused: [
      ['its body', { amount: 10.5 }, 'invalid_amount'],
      ['its asset', { asset: 'DOGE', network: 'dogecoin' }, 'asset_not_supported'],
    ],
  },
];
