import { randomUUID } from 'node:crypto';
import type { ClientSession } from 'mongodb';
import { buildPosition, TIES } from '../../src/domain/cursor';
import { PAYMENT_STATUSES } from '../../src/domain/payment/payment';
import { PAYOUT_STATUSES } from '../../src/domain/payout/payout';
import { REFUND_STATUSES } from '../../src/domain/refund/refund';
import { hashPayToken } from '../../src/encryption/pay-token';
import { settledPayment } from '../support/http';
import type { Account, Service } from '../support/service';
import { writeOnce } from '../support/write-once';
import { storedPayout } from './payout-setting';

/** Moment in which the rows of a test were made. */
export const OLD = '2026-01-02T03:04:05.678Z';

/** Writes as many rows as asked of one millisecond, as the service writes them; gives their ids. */
type Insert = (count: number, created_at?: string, changes?: object) => Promise<string[]>;

export interface Listed extends Account {
  path: string;
  insert: Insert;
}

interface Row {
  _id: string;
  position: string;
  created_at: string;
}

/** As many as a busy machine writes within the life of a transaction. */
const ROWS_AT_ONCE = 20;

/** The last tie-break; the next ones are out of order, and each is of one row. */
let tie = 0;
const STEP = 618_033;

interface RowStore<R> {
  insert: (row: R, session: ClientSession) => Promise<unknown>;
  get: (id: string) => Promise<object | null>;
}

function insertOf<R extends Row>(
  { mongo }: Service,
  make: (row: Row) => R,
  store: RowStore<R>,
): Insert {
  return async (count, created_at = OLD, changes = {}) => {
    const rows = Array.from({ length: count }, () => {
      tie = (tie + STEP) % TIES;
      const position = buildPosition(Date.parse(created_at), tie);
      return { ...make({ _id: randomUUID(), position, created_at }), ...changes };
    });
    for (let from = 0; from < rows.length; from += ROWS_AT_ONCE) {
      await insertAll(mongo, store, rows.slice(from, from + ROWS_AT_ONCE));
    }
    return rows.map(({ _id }) => _id);
  };
}

/** All of the rows or none, in one transaction. */
async function insertAll<R extends Row>(
  mongo: Service['mongo'],
  { insert, get }: RowStore<R>,
  rows: readonly R[],
): Promise<void> {
  const write = async (session: ClientSession) => {
    for (const row of rows) await insert(row, session);
  };
  const isStored = async () => (await get(rows[0]?._id ?? '')) !== null;
  await writeOnce(mongo, write, isStored);
}

/** A payment and a refund that the service made, which rows are made like. */
export type Likeness = Awaited<ReturnType<typeof makeLikeness>>;

export async function makeLikeness(service: Service) {
  const { key, post } = await service.account();
  const { id: payment_id } = await settledPayment(service, key);
  const made = await post('/v1/refunds', { payment_id, amount: 1 });
  const payment = await service.stores.payments.get(payment_id);
  const refund = await service.stores.refunds.get(made.body.id);
  if (payment === null || refund === null) throw new Error('One of them is not stored.');
  return { payment, refund };
}

type Open = (service: Service, like: Likeness) => Promise<Listed>;

/** Payments of an account that has none. */
const payments: Open = async (service, like) => {
  const owner = await service.account();
  const make = (row: Row) => ({
    ...like.payment,
    ...row,
    account_id: owner.account_id,
    token_hash: hashPayToken(row._id),
  });
  return {
    ...owner,
    path: '/v1/payments',
    insert: insertOf(service, make, service.stores.payments),
  };
};

/** Refunds of a payment of an account that has no refund. */
const refundsAt =
  (pathOf: (payment_id: string) => string): Open =>
  async (service, like) => {
    const { insert: insertPayment, ...owner } = await payments(service, like);
    const { account_id } = owner;
    const [payment_id = ''] = await insertPayment(1);
    const make = (row: Row) => ({ ...like.refund, ...row, account_id, payment_id });
    return {
      ...owner,
      path: pathOf(payment_id),
      insert: insertOf(service, make, service.stores.refunds),
    };
  };

/** Payouts of an account that has none. */
const payouts: Open = async (service) => {
  const owner = await service.account();
  const make = (row: Row) => storedPayout(owner, row);
  return { ...owner, path: '/v1/payouts', insert: insertOf(service, make, service.stores.payouts) };
};

/** Lists of the API: how one is opened, where its rows are read, and what filters it has not. */
export const LISTS = [
  {
    name: 'payments',
    open: payments,
    rows: '/v1/payments',
    statuses: PAYMENT_STATUSES,
    unknown: ['recipient_id'],
  },
  {
    name: 'all refunds',
    open: refundsAt(() => '/v1/refunds'),
    rows: '/v1/refunds',
    statuses: REFUND_STATUSES,
    unknown: ['method', 'reference', 'payment_id'],
  },
  {
    name: 'the refunds of a payment',
    open: refundsAt((payment_id) => `/v1/payments/${payment_id}/refunds`),
    rows: '/v1/refunds',
    statuses: REFUND_STATUSES,
    unknown: ['method', 'reference', 'payment_id'],
  },
  {
    name: 'payouts',
    open: payouts,
    rows: '/v1/payouts',
    statuses: PAYOUT_STATUSES,
    unknown: ['method', 'reference', 'recipient_id'],
  },
];
