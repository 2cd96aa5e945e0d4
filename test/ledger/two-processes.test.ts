import { randomUUID } from 'node:crypto';
import { verifyLedger } from '../../src/ledger-check/verify';
import { retryUntilDone } from '../support/insist';
import { useProcesses, type WorkerProcess } from '../support/processes';
import { payoutFacts } from '../support/records';
import { expectWholeBook } from './whole-books';

const AMOUNT = 1_000;
const PAYOUTS = 20;
const FEE = 10;

const processes = useProcesses();
const workers = () => [processes.left, processes.right];

afterEach(() => jest.restoreAllMocks());

/** Authorizes `count` payments with each worker. @returns a settlement of each payment */
async function authorizePayments(account_id: string, count: number) {
  const authorize = async (worker: WorkerProcess) => {
    const one = () => worker.authorizedPayment(worker.records, { account_id, amount: AMOUNT });
    const payments = await Promise.all(Array.from({ length: count }, one));
    return payments.map(
      (facts) => () => retryUntilDone(() => worker.settle(worker.records, facts)),
    );
  };
  return (await Promise.all(workers().map(authorize))).flat();
}

const verify = () => {
  const { mongo, db } = processes.left.records;
  return verifyLedger(mongo, db.databaseName);
};

const readBalances = (account_id: string) =>
  processes.left.records.stores.ledger.balances(account_id, false);

test('settlements of one merchant have no write conflict, and every payout that fits meanwhile is paid', async () => {
  const SETTLEMENTS = 50;
  const DRAWN = 4_000;
  const account_id = `acct_${randomUUID()}`;
  const posts = workers().map(({ records }) => jest.spyOn(records.stores.ledger, 'post'));
  await Promise.all((await authorizePayments(account_id, SETTLEMENTS)).map((settle) => settle()));
  const second = await authorizePayments(account_id, SETTLEMENTS);
  const pay = async (worker: WorkerProcess) => {
    const facts = payoutFacts({ account_id, amount: DRAWN });
    const { opening } = await retryUntilDone(() => worker.openPayout(worker.records, facts));
    const created = { status: 'created', version: 1, transition: 1 } as const;
    await retryUntilDone(() =>
      worker.transitionPayout(worker.records, facts, created, ['submitted', 'sent']),
    );
    return opening.outcome;
  };
  const payouts = Array.from({ length: PAYOUTS / 2 }, () => workers().map(pay)).flat();

  let isOver = false;
  const working = Promise.all([Promise.all(payouts), ...second.map((settle) => settle())]);
  const over = working.finally(() => {
    isOver = true;
  });
  while (!isOver) expect((await verify()).differences).toEqual([]);
  const [outcomes] = await over;
  expect(outcomes).toEqual(Array.from({ length: PAYOUTS }, () => 'accepted'));
  // A write conflict fails the post; a busy server may end a transaction for its age alone.
  const settled = posts.flatMap(({ mock }) =>
    mock.results.filter((_result, call) => mock.calls[call]?.[0].kind === 'payment_settled'),
  );
  expect(settled.length).toBeGreaterThanOrEqual(4 * SETTLEMENTS);
  const ends = await Promise.allSettled(settled.map(({ value }) => value));
  const faults = ends.flatMap((end) => (end.status === 'rejected' ? [end.reason.codeName] : []));
  expect(faults).not.toContain('WriteConflict');
  const available = 4 * SETTLEMENTS * AMOUNT - PAYOUTS * DRAWN;
  expect(await readBalances(account_id)).toEqual([
    { balance_account: 'main', currency: 'EUR', available, reserved: 0 },
  ]);
  await expectWholeBook(processes.left.records, account_id);
});

test('two processes settle and pay out on one book at once, and every entry is exact', async () => {
  const SETTLEMENTS = 40;
  const DRAWN = 7_000;
  const { left, right } = processes;
  // Processes that shared modules would share locks, and never have a write conflict.
  expect(left.openRecords).not.toBe(right.openRecords);
  const { stores, db } = left.records;
  const account_id = `acct_${randomUUID()}`;
  const ids = Array.from({ length: PAYOUTS }, () => randomUUID());
  const openAll = async () => {
    const open = async (worker: WorkerProcess, payout_id: string) => {
      const facts = payoutFacts({ payout_id, account_id, amount: DRAWN, fee: FEE });
      const { opening } = await retryUntilDone(() => worker.openPayout(worker.records, facts));
      // The workflow answers a refusal once for all; each of the two calls here is one attempt.
      if (opening.outcome === 'accepted') return payout_id;
      expect(opening.code).toMatch(/^(insufficient_balance|balance_account_not_found)$/);
      return undefined;
    };
    const opened = workers().flatMap((worker) => ids.map((id) => open(worker, id)));
    return new Set((await Promise.all(opened)).filter((id) => id !== undefined));
  };

  const before = (await verify()).postings;
  const settlements = await authorizePayments(account_id, SETTLEMENTS);
  const settling = settlements.map((settle) => settle());
  const accepted = await openAll();
  await Promise.all(settling);

  const payouts = await stores.payouts.list({ account_id, livemode: false, limit: 100 });
  expect(payouts.map(({ _id }) => _id).sort()).toEqual([...accepted].sort());
  const reserved = accepted.size * (DRAWN + FEE);
  const credited = 2 * SETTLEMENTS * AMOUNT;
  expect(credited - reserved).toBeGreaterThanOrEqual(0);
  expect(await readBalances(account_id)).toEqual([
    { balance_account: 'main', currency: 'EUR', available: credited - reserved, reserved },
  ]);
  const { postings, differences } = await verify();
  expect(differences).toEqual([]);
  expect(postings - before).toBe(2 * SETTLEMENTS + accepted.size);
  const settled = { account_id, type: 'payment.settled' };
  expect(await db.collection('events').countDocuments(settled)).toBe(2 * SETTLEMENTS);

  // With all settlements posted, as many payouts are accepted as fit, and not one more.
  const fits = Math.floor(credited / (DRAWN + FEE));
  expect((await openAll()).size).toBe(fits);
  expect((await verify()).differences).toEqual([]);
  expect(await readBalances(account_id)).toMatchObject([
    { available: credited - fits * (DRAWN + FEE), reserved: fits * (DRAWN + FEE) },
  ]);
});
