import { randomUUID } from 'node:crypto';
import { inTransaction } from '../../src/base/mongo';
import type { NewEntry } from '../../src/ledger/entries';
import { ENTRY_LINES } from '../../src/ledger/entry-lines';
import { InsufficientBalance } from '../../src/ledger/insufficient-balance';
import { verifyLedger } from '../../src/ledger-check/verify';
import {
  authorizedPayment,
  fund,
  openPayout,
  payoutFacts,
  settle,
  transitionPayout,
  useRecords,
} from '../support/records';
import { expectWholeBook } from './whole-books';

const records = useRecords();

/** Settles a payment. @param ending of its id: after `00` its book is folded */
async function settlePayment(account_id: string, amount: number, ending = '11'): Promise<void> {
  const payment_id = `${randomUUID().slice(0, -2)}${ending}`;
  await settle(records, await authorizedPayment(records, { account_id, amount, payment_id }));
}

/** A merchant with settled payments that its book has not taken in. */
async function merchantWith(...settled: number[]) {
  const account_id = `acct_${randomUUID()}`;
  for (const amount of settled) await settlePayment(account_id, amount);
  const book = `${account_id}:sandbox:EUR`;
  const { ledger } = records.stores;
  const { postings, books } = ledger.collections;
  const post = (posting: NewEntry) =>
    inTransaction(records.mongo, (session) => ledger.post(posting, session));
  return {
    account_id,
    open: () => postings.countDocuments({ book, open: true }),
    kept: () => books.findOne({ _id: book }),
    rows: () => ledger.balances(account_id, false),
    fold: () => inTransaction(records.mongo, (session) => ledger.applyPending(book, session)),
    refund: (amount: number) =>
      post({
        kind: 'refund_accepted',
        resource_id: randomUUID(),
        ...{ account_id, livemode: false, currency: 'EUR', at: '2026-03-01T12:00:00.000Z' },
        legs: ENTRY_LINES.refund_accepted(amount),
      }),
  };
}

const main = (available: number) => [
  { balance_account: 'main', currency: 'EUR', available, reserved: 0 },
];

async function differences(account_id: string) {
  const book = `${account_id}:sandbox:EUR`;
  return (await verifyLedger(records.mongo, records.db.databaseName, { book })).differences;
}

test('a settlement touches no balance, and counts at once', async () => {
  const { rows, kept, open, account_id } = await merchantWith(300, 200);
  expect(await kept()).toBeNull();
  expect(await open()).toBe(2);
  expect(await rows()).toEqual(main(500));
  expect(await differences(account_id)).toEqual([]);
  await expectWholeBook(records, account_id);
});

test('a debit that is short takes in what is open, and no other debit does', async () => {
  const { rows, refund, open, account_id } = await merchantWith(300, 200);
  await refund(450);
  expect(await rows()).toEqual(main(50));
  expect(await open()).toBe(0);
  await settlePayment(account_id, 100);
  const before = await open();
  await refund(50);
  expect(await open()).toBe(before);
  await refund(100);
  expect(await rows()).toEqual(main(0));
  await expectWholeBook(records, account_id);
});

test('more than a balance and what is open hold is refused, and takes nothing in', async () => {
  const { rows, refund, open, account_id } = await merchantWith(300, 200);
  await expect(refund(501)).rejects.toThrow(InsufficientBalance);
  expect(await open()).toBe(2);
  expect(await rows()).toEqual(main(500));
  await expectWholeBook(records, account_id);
});

test('a fold takes each posting in once, also when several fold at once', async () => {
  const { rows, fold, open, account_id } = await merchantWith(1, 20, 300, 4_000);
  const counts = await Promise.all([fold(), fold(), fold()]);
  expect(counts.sort()).toEqual([0, 0, 4]);
  expect(await open()).toBe(0);
  expect(await rows()).toEqual(main(4_321));
  await expectWholeBook(records, account_id);
});

test('the move of one resource in 256 takes in what is open in its book', async () => {
  const { open, kept, account_id } = await merchantWith(300, 200);
  await settlePayment(account_id, 7, '00');
  expect(await open()).toBe(0);
  expect(await kept()).toMatchObject({ balances: { main: { available: 507 } } });
});

test('a payout holds a balance once, when it is accepted; its later steps meet no other', async () => {
  const { account_id, open, kept } = await merchantWith();
  const payout_id = `${randomUUID().slice(0, -2)}11`;
  const facts = payoutFacts({ account_id, payout_id, amount: 100, fee: 5 });
  await fund(records, facts, 1_000);
  await openPayout(records, facts);
  expect(await open()).toBe(0);
  const book = await kept();
  const created = { status: 'created', version: 1 } as const;
  const sent = await transitionPayout(records, facts, created, ['submitted', 'sent']);
  await transitionPayout(records, facts, sent, ['failed']);
  expect(await open()).toBe(2);
  expect(await kept()).toEqual(book);
  expect(await records.stores.ledger.balances(account_id, false)).toEqual(main(1_000));
  expect(await differences(account_id)).toEqual([]);
  await expectWholeBook(records, account_id);
});

test('a verification tells an open posting that must not be, and one that was taken in unseen', async () => {
  const { account_id, fold } = await merchantWith(300);
  const { postings } = records.stores.ledger.collections;
  const facts = payoutFacts({ account_id, amount: 100 });
  await fold();
  await openPayout(records, facts);
  const _id = `payout_reserved:${facts.payout_id}`;
  await postings.updateOne({ _id }, { $set: { open: true } });
  expect((await differences(account_id)).map(({ check, part }) => [check, part])).toEqual([
    ['posting_wrongly_open', 'open'],
    ['balance_differs', 'balances.main.available'],
    ['balance_differs', 'balances.main.reserved'],
  ]);
  await postings.updateOne({ _id }, { $unset: { open: '' } });
  expect(await differences(account_id)).toEqual([]);
  await settlePayment(account_id, 7);
  await postings.updateMany({ open: true }, { $unset: { open: '' } });
  expect((await differences(account_id)).map(({ check }) => check)).toContain('balance_differs');
});
