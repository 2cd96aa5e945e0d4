import { randomUUID } from 'node:crypto';
import type { Document } from 'mongodb';
import { verifyLedger } from '../../src/ledger-check/verify';
import { retryUntilDone } from '../support/insist';
import type { Processes, WorkerProcess } from '../support/processes';
import { type PayoutFacts, payoutFacts } from '../support/records';

const PAYMENT = 1_000;
const REFUND = 100;
const PAYOUT = { amount: 50, fee: 1 };

/** Ends of a payout: what it posts last, and what the merchant's balance has less then. */
const ENDS = {
  completed: { posting: [], cost: PAYOUT.amount + PAYOUT.fee },
  failed: { posting: ['payout_reversed'], cost: 0 },
  returned: { posting: ['payout_returned'], cost: PAYOUT.fee },
} as const;
const END_NAMES = ['completed', 'failed', 'returned'] as const;

/** A payment that is settled and refunded in part, and a payout. */
interface Course {
  payment_id: string;
  refund_id: string;
  payout_id: string;
  refundEnd: 'settled' | 'failed';
  payoutEnd: (typeof END_NAMES)[number];
}

export type MerchantBook = ReturnType<typeof openMerchantBook>;

/**
 * Book of one merchant that two processes write. Both get each step at once, as an attempt that was
 * given up continues next to its successor, and repeat it until it answers.
 */
export function openMerchantBook({ left, right }: Processes) {
  const account_id = `acct_${randomUUID()}`;
  const courses: Course[] = [];
  let begun = 0;
  let answered = 0;

  /** Both answers, which are acknowledged now. */
  async function both<T>(step: (worker: WorkerProcess) => Promise<T>): Promise<[T, T]> {
    const answers = await Promise.all([
      retryUntilDone(() => step(left)),
      retryUntilDone(() => step(right)),
    ]);
    answered += 1;
    return answers;
  }

  async function live(): Promise<void> {
    const n = begun;
    begun += 1;
    const refundEnd = n % 2 === 0 ? 'settled' : 'failed';
    const payoutEnd = END_NAMES[n % END_NAMES.length] ?? 'completed';
    const wanted = { account_id, payment_id: randomUUID(), amount: PAYMENT };
    const [payment] = await both((worker) => worker.authorizedPayment(worker.records, wanted));
    await both((worker) => worker.settle(worker.records, payment));

    const { refund_id, opening } = await both(({ openRefund, records }) =>
      openRefund(records, payment, REFUND, randomUUID(), `refund-${n}`),
    ).then(assertSame);
    const accepted = { outcome: 'accepted', version: 1 };
    expect(opening).toMatchObject(accepted);
    const opened = await both((worker) =>
      openedPayout(worker, payoutFacts({ account_id, ...PAYOUT }), `payout-${n}`),
    ).then(assertSame);
    expect(opened.opening).toMatchObject(accepted);
    const { payout_id } = opened;
    await both((worker) => worker.transitionRefund(worker.records, payment, refund_id, refundEnd));
    const payout = payoutFacts({ account_id, payout_id, ...PAYOUT });
    const created = { status: 'created', version: 1, transition: 1 } as const;
    const sent = await both((worker) =>
      worker.transitionPayout(worker.records, payout, created, ['submitted', 'sent']),
    ).then(assertSame);
    await both((worker) =>
      worker.transitionPayout(worker.records, payout, { ...sent, status: 'sent' }, [payoutEnd]),
    );
    courses.push({ payment_id: payment.payment_id, refund_id, payout_id, refundEnd, payoutEnd });
  }

  return {
    live,
    /** Steps that have been acknowledged. */
    answered: () => answered,
    /** Holds all that was acknowledged against what is stored. */
    expectExact: () => expectExact(left, account_id, courses),
  };
}

/** Opens a payout and, where another attempt's is not to be seen yet, looks again as its workflow does. */
async function openedPayout(
  { records, openPayout }: WorkerProcess,
  facts: PayoutFacts,
  key: string,
) {
  const { payout_id, opening } = await openPayout(records, facts, key);
  if (opening.outcome === 'accepted') return { payout_id, opening };
  const input = { ...facts, payout_id, created_at: '', accept_by_ms: 0 };
  return { payout_id, opening: await records.payouts.abandonPayout(input) };
}

/** Gives the answer of both attempts, which are equal. */
function assertSame<T>([first, second]: [T, T]): T {
  expect(second).toEqual(first);
  return first;
}

async function expectExact(
  { records }: WorkerProcess,
  account_id: string,
  courses: readonly Course[],
): Promise<void> {
  const { db, stores } = records;
  // An election that a starved node calls may interrupt any read.
  const find = (collection: string, filter: object) =>
    retryUntilDone(() => db.collection(collection).find(filter).toArray());
  const list = async (collection: string, filter: object, name: (row: Document) => string) =>
    (await find(collection, filter)).map(name).sort();
  const expected = (describe: (course: Course) => string[]) => courses.flatMap(describe).sort();

  const byState = ({ _id, status, refunded = '' }: Document) => `${_id} ${status} ${refunded}`;
  expect(await list('payments', { account_id }, byState)).toEqual(
    expected((of) => [`${of.payment_id} settled ${of.refundEnd === 'settled' ? REFUND : 0}`]),
  );
  expect(await list('refunds', { account_id }, byState)).toEqual(
    expected((of) => [`${of.refund_id} ${of.refundEnd} `]),
  );
  expect(await list('payouts', { account_id }, byState)).toEqual(
    expected((of) => [`${of.payout_id} ${of.payoutEnd} `]),
  );
  expect(await find('idempotency_records', { account_id })).toHaveLength(3 * courses.length);
  const byType = ({ resource_id, type }: Document) => `${resource_id} ${type}`;
  expect(await list('events', { account_id }, byType)).toEqual(expected(listEvents));
  const book = `${account_id}:sandbox:EUR`;
  expect(await list('journal_entries', { book }, ({ _id }) => String(_id))).toEqual(
    expected(listEntryIds),
  );
  const available = courses.reduce((sum, of) => sum + calculateGain(of), 0);
  const balances = await retryUntilDone(() => stores.ledger.balances(account_id, false));
  expect(balances).toEqual([{ balance_account: 'main', currency: 'EUR', available, reserved: 0 }]);
  const { differences } = await retryUntilDone(() => verifyLedger(records.mongo, db.databaseName));
  expect(differences).toEqual([]);
}

function listEvents(course: Course): string[] {
  const { payment_id, refund_id, payout_id, refundEnd, payoutEnd } = course;
  const paid = ['awaiting_customer', 'authorized', 'settled'];
  return [
    ...paid.map((status) => `${payment_id} payment.${status}`),
    `${refund_id} refund.${refundEnd}`,
    ...['submitted', 'sent', payoutEnd].map((status) => `${payout_id} payout.${status}`),
  ];
}

function listEntryIds(course: Course): string[] {
  const { payment_id, refund_id, payout_id, refundEnd, payoutEnd } = course;
  const paidOut = ['payout_reserved', 'payout_captured', ...ENDS[payoutEnd].posting];
  return [
    `payment_settled:${payment_id}`,
    ...['refund_accepted', `refund_${refundEnd}`].map((kind) => `${kind}:${refund_id}`),
    ...paidOut.map((kind) => `${kind}:${payout_id}`),
  ];
}

function calculateGain({ refundEnd, payoutEnd }: Course): number {
  return PAYMENT - (refundEnd === 'settled' ? REFUND : 0) - ENDS[payoutEnd].cost;
}
