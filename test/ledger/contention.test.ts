import { randomUUID } from 'node:crypto';
import { bookId } from '../../src/ledger/entries';
import { withLock } from '../../src/ledger/locks';
import { verifyLedger } from '../../src/ledger-check/verify';
import { retryUntilDone } from '../support/insist';
import {
  authorizedPayment,
  fund,
  openPayout,
  openRefund,
  payoutFacts,
  recordPayoutKey,
  settle,
  useRecords,
} from '../support/records';

const records = useRecords();

test('200 refunds of one payment at once, each asked for twice, take turns and fit exactly', async () => {
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

test('200 payouts of one balance at once, each asked for twice, never overdraw it and fit exactly', async () => {
  const all = { account_id: `acct_${randomUUID()}`, balance_account: 'ads', amount: 10, fee: 2 };
  await fund(records, payoutFacts(all), 150 * 12 + 11);
  const asked = Array.from({ length: 200 }, () => payoutFacts(all));
  const made = await Promise.all([...asked, ...asked].map((facts) => openPayout(records, facts)));
  const accepted = made.filter(({ opening }) => opening.outcome === 'accepted');
  expect(new Set(accepted.map(({ payout_id }) => payout_id)).size).toBe(150);
  expect(accepted).toHaveLength(300);
  expect(await records.stores.ledger.balances(all.account_id, false)).toEqual([
    { balance_account: 'ads', currency: 'EUR', available: 11, reserved: 150 * 12 },
  ]);
  const refused = made.flatMap(({ opening }) =>
    opening.outcome === 'refused' ? [opening.code] : [],
  );
  expect(new Set(refused)).toEqual(new Set(['insufficient_balance']));
}, 600_000);

describe('payouts that wait for one book', () => {
  const AMOUNT = 50;
  const FEE = 10;

  /** Opens payouts of one balance that holds so much, all of which wait for the same turn. */
  async function openAll(funded: number, count: number) {
    const of = { account_id: `acct_${randomUUID()}`, amount: AMOUNT, fee: FEE };
    const facts = Array.from({ length: count }, () => payoutFacts(of));
    const book = bookId(payoutFacts(of));
    await fund(records, payoutFacts(of), funded);
    const inputs = await Promise.all(facts.map((each) => recordPayoutKey(records, each)));
    return async (change: (all: typeof inputs) => typeof inputs = (all) => all) => {
      // They have found the turn taken, and stand in line, before it ends.
      const taken = withLock(
        { book, by: 0 },
        () => new Promise((resolve) => setImmediate(resolve)),
      );
      const opening = change(inputs).map((input) =>
        retryUntilDone(() => records.payouts.openPayout(input)),
      );
      await taken;
      const outcomes = (await Promise.all(opening)).map((opened) =>
        opened.outcome === 'refused' ? opened.code : opened.outcome,
      );
      const [row] = await records.stores.ledger.balances(of.account_id, false);
      const { differences_total } = await verifyLedger(records.mongo, records.db.databaseName);
      expect(differences_total).toBe(0);
      return { outcomes, reserved: row?.reserved, available: row?.available };
    };
  }

  test('are all reserved, but for one that is late', async () => {
    const open = await openAll(1_000, 6);
    const opened = await open(([first, ...others]) =>
      first === undefined ? [] : [{ ...first, accept_by_ms: Date.now() - 1 }, ...others],
    );
    expect(opened).toEqual({
      outcomes: ['temporarily_unavailable', ...Array(5).fill('accepted')],
      reserved: 5 * (AMOUNT + FEE),
      available: 1_000 - 5 * (AMOUNT + FEE),
    });
  });

  test('that are late by the clock of the worker are refused, and the refusal says so', async () => {
    const input = await recordPayoutKey(records, payoutFacts());
    const late = { ...input, accept_by_ms: Date.now() - 3_000 };
    const age = () => Math.ceil((Date.now() - late.accept_by_ms + 5_000) / 1_000);
    const least = age();
    const opened = await retryUntilDone(() => records.payouts.openPayout(late));
    expect(opened.outcome).toBe('refused');
    const message = opened.outcome === 'refused' ? opened.message : '';
    const clock = / By the clock of this worker it was (\d+) s old, and it has 5 s\.$/;
    const seconds = Number(clock.exec(message)?.[1]);
    expect(seconds).toBeGreaterThanOrEqual(least);
    expect(seconds).toBeLessThanOrEqual(age());
  });

  test('are reserved as far as the balance holds them', async () => {
    const open = await openAll(2 * (AMOUNT + FEE) + 1, 3);
    const { outcomes, ...made } = await open();
    expect(outcomes.sort()).toEqual(['accepted', 'accepted', 'insufficient_balance']);
    expect(made).toEqual({
      reserved: 2 * (AMOUNT + FEE),
      available: 1,
    });
  });

  test('are reserved once each, also when one is asked for twice', async () => {
    const open = await openAll(1_000, 2);
    expect(await open(([first, ...others]) => (first ? [first, first, ...others] : []))).toEqual({
      outcomes: ['accepted', 'accepted', 'accepted'],
      reserved: 2 * (AMOUNT + FEE),
      available: 1_000 - 2 * (AMOUNT + FEE),
    });
  });
});
