import type { ErrorCode } from '../../src/domain/errors';
import { idealPayment, settledPayment } from '../support/http';
import type { Account, Service } from '../support/service';
import { FUNDS, openShop } from './payout-setting';

/** A merchant who creates one kind of resource. */
export interface Creator extends Account {
  /** Body that every rule accepts. */
  body: object;
  /** Moves the resource on, so that a read of it is another than the first answer. */
  move: (id: string) => Promise<unknown>;
  /** Fails unless the money of one resource was taken. */
  expectTakenOnce: () => Promise<void>;
}

interface Creating {
  name: string;
  path: string;
  operation: string;
  collection: string;
  /** Calls at once that a test makes with one key. */
  crowd: number;
  open: (service: Service) => Promise<Creator>;
  /** Changes of the body that make it another one. */
  others: [what: string, change: object][];
  /** Changes of the body that are refused before anything is made. */
  refused: [what: string, change: object, code: ErrorCode][];
}

/** Operations that create something, and so take an Idempotency-Key. */
export const CREATES: Creating[] = [
  {
    name: 'payments',
    path: '/v1/payments',
    operation: 'createPayment',
    collection: 'payments',
    crowd: 50,
    open: async (service) => {
      const account = await service.account();
      return {
        ...account,
        body: idealPayment(),
        move: (id) => account.post(`/v1/payments/${id}/cancel`),
        expectTakenOnce: async () => undefined,
      };
    },
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
    path: '/v1/refunds',
    operation: 'createRefund',
    collection: 'refunds',
    crowd: 20,
    open: async (service) => {
      const account = await service.account();
      const { id: payment_id } = await settledPayment(service, account.key);
      return {
        ...account,
        body: { payment_id, amount: 100 },
        move: (id) => account.post(`/v1/sandbox/refunds/${id}/simulate`, { event: 'failed' }),
        expectTakenOnce: async () => {
          expect((await service.stores.payments.get(payment_id))?.refunded).toBe(100);
        },
      };
    },
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
    path: '/v1/payouts',
    operation: 'createPayout',
    collection: 'payouts',
    crowd: 20,
    open: async (service) => {
      const { ask, simulate, balance, untilSent, ...account } = await openShop(service);
      return {
        ...account,
        body: ask(),
        move: (id) => simulate(id, { event: 'completed' }),
        expectTakenOnce: async () => {
          await untilSent();
          expect(await balance()).toEqual([FUNDS.main - 1_000, 0]);
        },
      };
    },
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
