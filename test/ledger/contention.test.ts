import { randomUUID } from 'node:crypto';
import { bookId } from '../../src/ledger/entries';
import { withLock } from '../../src/ledger/locks';
import { verifyLedger } from '../../src/ledger-check/verify';
import { retryUntilDone } from '../support/insist';
import {
  authorizedPayment,
  fund,
  openRefund,
  payoutFacts,
  recordPayoutKey,
  settle,
  useRecords,
} from '../support/records';

const records = useRecords();

test('accepts of 200 refunds of one payment at once, each requested twice, exactly those that fit', async () => {
  const facts = await authorizedPayment(records, { amount: 1_500 });
  await settle(records, facts);
  const ids = Array.from({ length: 200 }, () => randomUUID());
  const made = await Promise.all([...ids, ...ids].map((id) => openRefund(records, facts, 10, id)));
  const accepted = made.filter(({ opening }) => opening.outcome === 'accepted');
  expect(new Set(accepted.map(({ refund_id }) => refund_id)).size).toBe(150);
  expect(accepted).toHaveLength(300);
  const payment = await records.stores.payments.get(facts.payment_id);
  expect(payment?.refunded).toBe(1_500);
}, 600_000);

describe('payouts that wait for the lock of one book', () => {
  const AMOUNT = 50;
  const FEE = 10;
  const LATE = 'temporarily_unavailable';

  type Inputs = Awaited<ReturnType<typeof recordPayoutKey>>[];

  test.each<{
    rule: string;
    funded: number;
    count: number;
    /** Requests that are made of the recorded payouts. */
    request: (all: Inputs) => Inputs;
    outcomes: string[];
    reserved: number;
  }>([
    {
      rule: 'are all reserved but one that is late',
      ...{ funded: 1_000, count: 6, reserved: 5 },
      request: (all) => all.map((each, n) => (n === 0 ? { ...each, accept_by_ms: 1 } : each)),
      outcomes: [LATE, ...Array(5).fill('accepted')],
    },
    {
      rule: 'are reserved as far as the balance holds them',
      ...{ funded: 2 * (AMOUNT + FEE) + 1, count: 3, reserved: 2 },
      request: (all) => all,
      outcomes: ['accepted', 'accepted', 'insufficient_balance'],
    },
    {
      rule: 'are reserved once each, also when one is requested twice',
      ...{ funded: 1_000, count: 2, reserved: 2 },
      request: (all) => [...all.slice(0, 1), ...all],
      outcomes: ['accepted', 'accepted', 'accepted'],
    },
  ])('$rule', async ({ funded, count, request, outcomes, reserved }) => {
    const common = { account_id: `acct_${randomUUID()}`, amount: AMOUNT, fee: FEE };
    const facts = Array.from({ length: count }, () => payoutFacts(common));
    await fund(records, payoutFacts(common), funded);
    const inputs = await Promise.all(facts.map((each) => recordPayoutKey(records, each)));
    // Holds the lock until all requests wait for it.
    const lock = withLock(
      { book: bookId(payoutFacts(common)), by: 0 },
      () => new Promise((resolve) => setImmediate(resolve)),
    );
    const opening = request(inputs).map((input) =>
      retryUntilDone(() => records.payouts.openPayout(input)),
    );
    await lock;
    const results = (await Promise.all(opening)).map((opened) =>
      opened.outcome === 'refused' ? opened.code : opened.outcome,
    );
    expect(results.toSorted()).toEqual(outcomes.toSorted());
    expect(results.indexOf(LATE)).toBe(outcomes.indexOf(LATE));
    const held = reserved * (AMOUNT + FEE);
    expect(await records.stores.ledger.balances(common.account_id, false)).toEqual([
      { balance_account: 'main', currency: 'EUR', available: funded - held, reserved: held },
    ]);
    const { differences_total } = await verifyLedger(records.mongo, records.db.databaseName);
    expect(differences_total).toBe(0);
  });

  test('are refused when they are late by the clock of the worker, and the refusal says so', async () => {
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
});
