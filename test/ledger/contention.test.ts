import { randomUUID } from 'node:crypto';
import { verifyLedger } from '../../src/ledger-check/verify';
import { retryUntilDone } from '../support/insist';
import { useProcesses, type WorkerProcess } from '../support/processes';
import { payoutFacts, recordPayoutKey, useRecords } from '../support/records';
import { expectWholeBook } from './whole-books';

const records = useRecords();

test('a payout is refused when it is late by the clock of the worker, and the refusal says so', async () => {
  const input = await recordPayoutKey(records, payoutFacts());
  const late = { ...input, accept_by_ms: Date.now() - 3_000 };
  const readAge = () => Math.ceil((Date.now() - late.accept_by_ms + 5_000) / 1_000);
  const least = readAge();
  const opened = await retryUntilDone(() => records.payouts.openPayout(late));
  expect(opened.outcome).toBe('refused');
  const message = opened.outcome === 'refused' ? opened.message : '';
  const clock = / By the clock of this worker it was (\d+) s old, and it has 5 s\.$/;
  const seconds = Number(clock.exec(message)?.[1]);
  expect(seconds).toBeGreaterThanOrEqual(least);
  expect(seconds).toBeLessThanOrEqual(readAge());
});

const processes = useProcesses();

afterEach(() => jest.restoreAllMocks());

test('settlements of one merchant have no write conflict, and every payout that fits meanwhile is paid', async () => {
  const [SETTLEMENTS, AMOUNT, PAYOUTS, DRAWN] = [50, 1_000, 20, 4_000];
  const { left, right } = processes;
  // Processes that shared modules would share locks, and never have a write conflict.
  expect(left.openRecords).not.toBe(right.openRecords);
  const workers = [left, right];
  const account_id = `acct_${randomUUID()}`;
  /** Authorizes payments with each worker. @returns a settlement of each payment */
  const authorize = async () => {
    const settlements = workers.map(async ({ authorizedPayment, settle, records }) => {
      const one = () => authorizedPayment(records, { account_id, amount: AMOUNT });
      const payments = await Promise.all(Array.from({ length: SETTLEMENTS }, one));
      return payments.map((facts) => () => retryUntilDone(() => settle(records, facts)));
    });
    return (await Promise.all(settlements)).flat();
  };
  const posts = workers.map(({ records }) => jest.spyOn(records.stores.ledger, 'post'));
  await Promise.all((await authorize()).map((settle) => settle()));
  const second = await authorize();
  const pay = async (worker: WorkerProcess) => {
    const facts = payoutFacts({ account_id, amount: DRAWN });
    const { opening } = await retryUntilDone(() => worker.openPayout(worker.records, facts));
    const created = { status: 'created', version: 1, transition: 1 } as const;
    await retryUntilDone(() =>
      worker.transitionPayout(worker.records, facts, created, ['submitted', 'sent']),
    );
    return opening.outcome;
  };
  const payouts = Array.from({ length: PAYOUTS / 2 }, () => workers.map(pay)).flat();

  let isOver = false;
  const working = Promise.all([Promise.all(payouts), ...second.map((settle) => settle())]);
  const over = working.finally(() => {
    isOver = true;
  });
  const { mongo, db, stores } = left.records;
  while (!isOver) expect((await verifyLedger(mongo, db.databaseName)).differences).toEqual([]);
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
  expect(await stores.ledger.balances(account_id, false)).toEqual([
    { balance_account: 'main', currency: 'EUR', available, reserved: 0 },
  ]);
  await expectWholeBook(left.records, account_id);
});
