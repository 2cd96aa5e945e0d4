import { randomUUID } from 'node:crypto';
import { verifyLedger } from '../../src/ledger-check/verify';
import { retryUntilDone } from '../support/insist';
import { useProcesses, type WorkerProcess } from '../support/processes';
import { type PayoutFacts, payoutFacts } from '../support/records';

const processes = useProcesses();

const SETTLEMENTS = 40;
const AMOUNT = 1_000;
const PAYOUTS = 20;
const DRAWN = 7_000;
const FEE = 10;

test('two processes settle and pay out on one book at once, and every posting is exact', async () => {
  const { left, right } = processes;
  // Otherwise they would take turns, and never meet in MongoDB.
  expect(left.openRecords).not.toBe(right.openRecords);
  const { records } = left;
  const account_id = `acct_${randomUUID()}`;
  const of = (payout_id: string): PayoutFacts =>
    payoutFacts({ payout_id, account_id, amount: DRAWN, fee: FEE });
  const ids = Array.from({ length: PAYOUTS }, () => randomUUID());
  const settlements = (await Promise.all([authorized(left), authorized(right)])).flat();

  async function authorized(worker: WorkerProcess) {
    const one = () => worker.authorizedPayment(worker.records, { account_id, amount: AMOUNT });
    const made = await Promise.all(Array.from({ length: SETTLEMENTS }, one));
    return made.map((facts) => () => retryUntilDone(() => worker.settle(worker.records, facts)));
  }
  const open = (worker: WorkerProcess) =>
    ids.map((id) => () => retryUntilDone(() => worker.openPayout(worker.records, of(id))));

  const asked = [...open(left), ...open(right)];
  const settling = settlements.map((settle) => settle());
  const answers = await Promise.all(asked.map((ask) => ask()));
  await Promise.all(settling);
  // A refusal is answered once for all by the workflow; each of these two stands for one attempt.
  const accepted = new Set(
    answers.flatMap(({ payout_id, opening }) =>
      opening.outcome === 'accepted' ? [payout_id] : [],
    ),
  );
  const refused = answers.flatMap(({ opening }) =>
    opening.outcome === 'refused' ? [opening.code] : [],
  );
  for (const code of refused)
    expect(code).toMatch(/^(insufficient_balance|balance_account_not_found)$/);

  const payouts = await records.stores.payouts.list({ account_id, livemode: false, limit: 100 });
  expect(payouts.map(({ _id }) => _id).sort()).toEqual([...accepted].sort());
  const reserved = accepted.size * (DRAWN + FEE);
  const credited = 2 * SETTLEMENTS * AMOUNT;
  expect(await records.stores.ledger.balances(account_id, false)).toEqual([
    { balance_account: 'main', currency: 'EUR', available: credited - reserved, reserved },
  ]);
  expect(credited - reserved).toBeGreaterThanOrEqual(0);
  const { postings, differences } = await verifyLedger(records.mongo, records.db.databaseName);
  expect(differences).toEqual([]);
  expect(postings).toBe(2 * SETTLEMENTS + accepted.size);
  const settled = await records.db
    .collection('events')
    .countDocuments({ account_id, type: 'payment.settled' });
  expect(settled).toBe(2 * SETTLEMENTS);

  // All the money is there now: what fits is accepted, and not one more.
  const rest = await Promise.all([...open(left), ...open(right)].map((ask) => ask()));
  const fits = Math.floor(credited / (DRAWN + FEE));
  const held = rest.filter(({ opening }) => opening.outcome === 'accepted');
  expect(new Set(held.map(({ payout_id }) => payout_id)).size).toBe(fits);
  const after = await verifyLedger(records.mongo, records.db.databaseName);
  expect(after.differences).toEqual([]);
  expect(await records.stores.ledger.balances(account_id, false)).toMatchObject([
    { available: credited - fits * (DRAWN + FEE), reserved: fits * (DRAWN + FEE) },
  ]);
});
