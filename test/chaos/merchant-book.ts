import { randomUUID } from 'node:crypto';
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

    const refund = same(
      await both(({ openRefund, records }) =>
        openRefund(records, payment, REFUND, randomUUID(), `refund-${n}`),
      ),
    );
    expect(refund.opening).toMatchObject({ outcome: 'accepted', version: 1 });
    const { refund_id } = refund;
    const opened = same(
      await both((worker) =>
        openedPayout(worker, payoutFacts({ account_id, ...PAYOUT }), `payout-${n}`),
      ),
    );
    expect(opened.opening).toMatchObject({ outcome: 'accepted', version: 1 });
    const { payout_id } = opened;
    await both((worker) => worker.transitionRefund(worker.records, payment, refund_id, refundEnd));
    const payout: PayoutFacts = payoutFacts({ account_id, payout_id, ...PAYOUT });
    const created = { status: 'created', version: 1 } as const;
    const sent = same(
      await both((worker) =>
        worker.transitionPayout(worker.records, payout, created, ['submitted', 'sent']),
      ),
    );
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

/** Answers of both attempts, which are equal. */
function same<T>([first, second]: [T, T]): T {
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
  const ids = async (collection: string, filter: object) =>
    (await find(collection, filter)).map(({ _id }) => String(_id)).sort();
  const sorted = (texts: string[]) => texts.toSorted();

  const stored = await find('payments', { account_id, status: 'settled' });
  const refunded = stored.map(({ _id, refunded }) => `${_id} ${refunded}`).sort();
  expect(refunded).toEqual(
    sorted(courses.map((of) => `${of.payment_id} ${of.refundEnd === 'settled' ? REFUND : 0}`)),
  );
  for (const end of ['settled', 'failed'] as const) {
    const ended = courses.filter(({ refundEnd }) => refundEnd === end);
    expect(await ids('refunds', { account_id, status: end })).toEqual(
      sorted(ended.map(({ refund_id }) => refund_id)),
    );
  }
  for (const end of END_NAMES) {
    const ended = courses.filter(({ payoutEnd }) => payoutEnd === end);
    expect(await ids('payouts', { account_id, status: end })).toEqual(
      sorted(ended.map(({ payout_id }) => payout_id)),
    );
  }
  for (const resources of ['payments', 'refunds', 'payouts', 'idempotency']) {
    const each = resources === 'idempotency' ? 3 : 1;
    expect(await find(resources, { account_id })).toHaveLength(each * courses.length);
  }
  const events = await find('events', { account_id });
  const told = events.map(({ resource_id, type }) => `${resource_id} ${type}`).sort();
  expect(told).toEqual(sorted(courses.flatMap(listEventIds)));
  const book = `${account_id}:sandbox:EUR`;
  expect(await ids('ledger_postings', { book })).toEqual(sorted(courses.flatMap(listEntryIds)));
  const available = courses.reduce((sum, of) => sum + calculateGain(of), 0);
  const balances = await retryUntilDone(() => stores.ledger.balances(account_id, false));
  expect(balances).toEqual([{ balance_account: 'main', currency: 'EUR', available, reserved: 0 }]);
  const { differences } = await retryUntilDone(() => verifyLedger(records.mongo, db.databaseName));
  expect(differences).toEqual([]);
}

function listEventIds({
  payment_id,
  refund_id,
  payout_id,
  refundEnd,
  payoutEnd,
}: Course): string[] {
  const paid = ['awaiting_customer', 'authorized', 'settled'];
  return [
    ...paid.map((status) => `${payment_id} payment.${status}`),
    `${refund_id} refund.${refundEnd}`,
    ...['submitted', 'sent', payoutEnd].map((status) => `${payout_id} payout.${status}`),
  ];
}

function listEntryIds({
  payment_id,
  refund_id,
  payout_id,
  refundEnd,
  payoutEnd,
}: Course): string[] {
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
