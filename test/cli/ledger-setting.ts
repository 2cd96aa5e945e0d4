import { type Document, Long } from 'mongodb';
import { z } from 'zod';
import { inTransaction } from '../../src/base/mongo';
import { CHECKS } from '../../src/ledger-check/compare';
import { useFixture } from '../support/fixture';
import {
  authorizedPayment,
  fund,
  openPayout,
  openRecords,
  openRefund,
  payoutFacts,
  type Records,
  settle,
  transitionPayout,
  transitionRefund,
} from '../support/records';
import { mongodbUri } from '../support/servers';
import { CliError, CreatedAccount, commandsIn } from './cli';

const Shown = z.union([z.number(), z.string(), z.null()]);
export const Report = z.strictObject({
  data: z.strictObject({
    books: z.int(),
    postings: z.int(),
    differences: z.array(
      z.strictObject({
        check: z.enum(Object.keys(CHECKS)),
        subject: z.string(),
        part: z.string().nullable(),
        expected: Shown,
        found: Shown,
      }),
    ),
    differences_total: z.int(),
    checkpoints_sealed: z.int(),
    heads: z.array(z.strictObject({ book: z.string(), number: z.int(), hash: z.string() })),
  }),
});

type Shown = z.infer<typeof Shown>;

/** A finding of `ledger verify`. */
export const difference = (
  check: keyof typeof CHECKS,
  subject: string,
  part: string | null | undefined,
  expected: Shown | undefined,
  found: Shown,
) => ({ check, subject, part, expected, found });

type Stored = { _id: string } & Document;
const COLLECTIONS = [
  'ledger_postings',
  'ledger_books',
  'payments',
  'refunds',
  'payouts',
  'events',
  'idempotency',
  'recipients',
  'ledger_checkpoints',
  'ledger_verified',
  'schedule_runs',
] as const;
const MOST = 99_999_999_999;

export type LedgerSetting = Awaited<ReturnType<typeof openLedgerSetting>>;

/** A small healthy database to falsify, past the service, and to restore. */
async function openLedgerSetting() {
  const records = await openRecords();
  const { db, stores, close } = records;
  const database = db.databaseName;
  const env = { DATA_DIR: 'none', MONGODB_URI: mongodbUri(), MONGODB_DB: database };
  const { cli } = commandsIn(env);
  const made = await cli('account', 'create', '--name', 'Acme', '--json');
  const { account_id } = CreatedAccount.parse(JSON.parse(made.stdout));
  const book = `${account_id}:sandbox:EUR`;
  const payoutsBook = `${account_id}:sandbox:CHF`;
  const ids = await liveALittle(records, account_id);
  const paidOut = await payOut(records, account_id);
  for (const currency of ['EUR', 'CHF']) {
    const whole = `${account_id}:sandbox:${currency}`;
    await inTransaction(records.mongo, (session) => stores.ledger.applyPending(whole, session));
  }
  const documents = (name: (typeof COLLECTIONS)[number]) => db.collection<Stored>(name);
  const keep = COLLECTIONS.map(async (name) => ({
    name,
    all: await documents(name).find({}, { promoteLongs: false }).toArray(),
  }));
  const saved = await Promise.all(keep);
  return {
    account_id,
    book,
    payoutsBook,
    ids,
    paidOut,
    database,
    stores,
    cli,
    documents,
    close,
    restore: async () => {
      for (const { name, all } of saved) {
        await documents(name).deleteMany();
        if (all.length > 0) await documents(name).insertMany(all);
      }
    },
    /** Sets fields of one document. */
    change: async (name: (typeof COLLECTIONS)[number], _id: string, fields: Document) => {
      const { modifiedCount } = await documents(name).updateOne({ _id }, { $set: fields });
      expect(modifiedCount).toBe(1);
    },
    /** Posts to the book of euros, balances and all, and asks nothing. */
    post: async (id: string, from: string, to: string, amount: number) => {
      const [kind = '', resource_id = ''] = id.split(':');
      const legs = [
        { account: from, amount: Long.fromNumber(-amount) },
        { account: to, amount: Long.fromNumber(amount) },
      ];
      const posting = { _id: id, book, kind, resource_id, at: '2026-03-01T12:00:00.000Z', legs };
      await documents('ledger_postings').insertOne(posting);
      const moved = { [from]: -amount, [to]: amount };
      await documents('ledger_books').updateOne({ _id: book }, { $inc: moved });
    },
    /** Differences that `ledger verify` finds; its exit code and stderr fit them. */
    differences: async (...options: string[]) => {
      const { exit, stdout, stderr } = await cli('ledger', 'verify', '--json', ...options);
      const { differences, differences_total } = Report.parse(JSON.parse(stdout)).data;
      expect(differences_total).toBe(differences.length);
      expect(exit).toBe(differences.length === 0 ? 0 : 1);
      if (exit === 0) expect(stderr).toBe('');
      else expect(CliError.parse(JSON.parse(stderr)).error.code).toBe('ledger_differs');
      return differences;
    },
  };
}

/** A database for one file's tests, healthy again after each. */
export function useLedgerSetting(): LedgerSetting {
  const setting = useFixture(openLedgerSetting, (opened) => opened.close());
  afterEach(() => setting.restore());
  return setting;
}

/** Makes 7 journal entries: one payment authorised, two settled, one of these sent back in three refunds. */
async function liveALittle(records: Records, account_id: string) {
  const payment = (amount: number) => authorizedPayment(records, { account_id, amount });
  const refund = async (amount: number | null, to?: 'settled' | 'failed') => {
    const { refund_id, opening } = await openRefund(records, small, amount);
    expect(opening.outcome).toBe('accepted');
    if (to !== undefined) await transitionRefund(records, small, refund_id, to);
    return refund_id;
  };
  const open = await payment(700);
  const great = await payment(MOST);
  const small = await payment(1_000);
  await settle(records, great);
  await settle(records, small);
  return {
    authorized: open.payment_id,
    settled: great.payment_id,
    refunded: small.payment_id,
    back: await refund(300, 'settled'),
    failed: await refund(200, 'failed'),
    processing: await refund(null),
  };
}

/** A payout in each state and with each history, of 1,000 and a fee of 50: 15 journal entries in all. */
async function payOut(records: Records, account_id: string) {
  const francs = { account_id, currency: 'CHF', balance_account: 'ads' };
  await fund(records, payoutFacts(francs), 10_000);
  const payout = async (...to: Parameters<typeof transitionPayout>[3]) => {
    const facts = payoutFacts({ ...francs, amount: 1_000, fee: 50 });
    const { opening } = await openPayout(records, facts);
    expect(opening.outcome).toBe('accepted');
    let from: Parameters<typeof transitionPayout>[2] = { status: 'created', version: 1 };
    for (const status of to) from = await transitionPayout(records, facts, from, [status]);
    return facts.payout_id;
  };
  return {
    created: await payout(),
    submitted: await payout('submitted'),
    sent: await payout('submitted', 'sent'),
    completed: await payout('submitted', 'sent', 'completed'),
    failed: await payout('failed'),
    failedAfterSent: await payout('submitted', 'sent', 'failed'),
    returned: await payout('submitted', 'sent', 'returned'),
  };
}
