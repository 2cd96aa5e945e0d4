import { randomUUID } from 'node:crypto';
import { verifyLedger } from '../../src/ledger-check/verify';
import { retryUntilDone } from '../support/insist';
import { useProcesses, type WorkerProcess } from '../support/processes';
import { payoutFacts } from '../support/records';
import { expectWholeBook } from './whole-books';

const processes = useProcesses();

const SETTLEMENTS = 100;
const AMOUNT = 1_000;
const PAYOUTS = 20;
const DRAWN = 4_000;

test('settlements of one merchant never conflict, and beside them every payout that fits is paid', async () => {
  const { left, right } = processes;
  const account_id = `acct_${randomUUID()}`;
  const { records } = left;
  const authorized = async (worker: WorkerProcess) => {
    const one = () => worker.authorizedPayment(worker.records, { account_id, amount: AMOUNT });
    const made = await Promise.all(Array.from({ length: SETTLEMENTS / 2 }, one));
    return made.map((facts) => () => retryUntilDone(() => worker.settle(worker.records, facts)));
  };
  const settleAll = async () => {
    const settlements = (await Promise.all([authorized(left), authorized(right)])).flat();
    return () => Promise.all(settlements.map((settle) => settle()));
  };
  const posts = [left, right].map(({ records }) => jest.spyOn(records.stores.ledger, 'post'));
  await (await settleAll())();
  const second = await settleAll();
  const payouts = Array.from({ length: PAYOUTS }, (_, n) => {
    const worker = n % 2 === 0 ? left : right;
    const facts = payoutFacts({ account_id, amount: DRAWN });
    return async () => {
      const { opening } = await retryUntilDone(() => worker.openPayout(worker.records, facts));
      const created = { status: 'created', version: 1 } as const;
      const sent = ['submitted', 'sent'] as const;
      await retryUntilDone(() =>
        worker.transitionPayout(worker.records, facts, created, [...sent]),
      );
      return opening.outcome;
    };
  });

  const working = Promise.all([second(), ...payouts.map((pay) => pay())]);
  let isOver = false;
  const over = working.finally(() => {
    isOver = true;
  });
  while (!isOver) {
    const { differences } = await verifyLedger(records.mongo, records.db.databaseName);
    expect(differences).toEqual([]);
  }
  const [, ...outcomes] = await over;
  expect(outcomes).toEqual(Array.from({ length: PAYOUTS }, () => 'accepted'));
  // One that meets another fails there; a busy server may end a transaction for its age alone.
  const settled = posts.flatMap(({ mock }) =>
    mock.results.filter((_result, call) => mock.calls[call]?.[0].kind === 'payment_settled'),
  );
  expect(settled.length).toBeGreaterThanOrEqual(2 * SETTLEMENTS);
  const ends = await Promise.allSettled(settled.map(({ value }) => value));
  const faults = ends.flatMap((end) => (end.status === 'rejected' ? [end.reason.codeName] : []));
  expect(faults).not.toContain('WriteConflict');
  expect(await records.stores.ledger.balances(account_id, false)).toEqual([
    {
      balance_account: 'main',
      currency: 'EUR',
      available: 2 * SETTLEMENTS * AMOUNT - PAYOUTS * DRAWN,
      reserved: 0,
    },
  ]);
  await expectWholeBook(records, account_id);
});
