import type { ErrorCode } from '../../src/domain/errors';
import { type Answer, idealPayment } from '../support/http';
import type { Account, Service } from '../support/service';
import { FUNDS, openShop } from './payout-setting';

/** A merchant who creates one kind of resource. */
export interface Creator extends Account {
  /** Body that every rule accepts. */
  body: object;
  /** One that is at its bank, made as the body says. */
  make: () => Promise<Answer['body']>;
  /** The bank says something about one. */
  simulate: (id: string, body?: object) => Promise<Answer>;
  /** Moves the resource on, so that a read of it is another than the first answer. */
  move: (id: string) => Promise<unknown>;
  /** Fails unless the money of one resource was taken. */
  expectTakenOnce: () => Promise<void>;
  /** From now on a new one is refused with `forbidden`. */
  forbid: () => Promise<unknown>;
}

interface Creating {
  name: 'payments' | 'refunds' | 'payouts';
  resource: 'payment' | 'refund' | 'payout';
  path: string;
  operation: string;
  /** Calls at once that a test makes with one key. */
  crowd: number;
  open: (service: Service) => Promise<Creator>;
  forbidden: ErrorCode;
  /** Changes of the body that make it another one. */
  others: [what: string, change: object][];
  /** Changes of the body that are refused before anything is made. */
  refused: [what: string, change: object, code: ErrorCode][];
}

/** Resources that a POST creates, and so under an Idempotency-Key. */
export const CREATES: Creating[] = [
  {
    name: 'payments',
    resource: 'payment',
    path: '/v1/payments',
    operation: 'createPayment',
    crowd: 50,
    open: async (service) => {
      const account = await service.account();
      return {
        ...account,
        body: idealPayment(),
        make: async () => (await account.post('/v1/payments', idealPayment())).body,
        simulate: (id, body) => account.post(`/v1/sandbox/payments/${id}/simulate`, body),
        forbid: () => service.stores.accounts.disableMethod(account.account_id, 'ideal'),
        move: (id) => account.post(`/v1/payments/${id}/cancel`),
        expectTakenOnce: async () => undefined,
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
        move: (id) => simulate(id, { event: 'failed' }),
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
    crowd: 20,
    open: async (service) => {
      const { ask, paid, simulate, balance, untilSent, ...account } = await openShop(service);
      return {
        ...account,
        body: ask(),
        make: async () => (await paid()).body,
        simulate,
        forbid: () => service.stores.accounts.disableRail(account.account_id, 'sepa_instant'),
        move: (id) => simulate(id, { event: 'completed' }),
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
