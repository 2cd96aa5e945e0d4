import { randomUUID } from 'node:crypto';
import { abandon, inTransaction } from '../../src/base/mongo';
import { bookId } from '../../src/ledger/entries';
import { eventually } from '../support/http';
import { fund, payoutFacts, recordPayoutKey, useRecords } from '../support/records';

/** Less than the five seconds after which a payout gives up. */
const TRIES_MS_MAX = 4_000;

const records = useRecords();

// A machine that stalls for those seconds makes one try.
jest.retryTimes(3, { logErrorsBeforeRetry: true });

afterEach(() => jest.restoreAllMocks());

/** Holds a book while `work` runs, as a process does that is slow to commit. */
async function hold(book: string, work: () => Promise<void>): Promise<void> {
  await inTransaction(records.mongo, async (session) => {
    const { books } = records.stores.ledger.collections;
    await books.updateOne({ _id: book }, { $inc: { held: 1 } }, { session });
    await work();
    await abandon(session);
  });
}

async function fundedPayout() {
  const facts = payoutFacts({ account_id: `acct_${randomUUID()}` });
  await fund(records, facts, 100_000);
  return { book: bookId(facts), input: await recordPayoutKey(records, facts) };
}

test('a payout that meets another debit of its book has done nothing else in vain', async () => {
  const { book, input } = await fundedPayout();
  const cleared = jest.spyOn(records.stores.idempotency, 'clearRequest');
  const posts = jest.spyOn(records.stores.ledger, 'post');
  let opening: ReturnType<typeof records.payouts.openPayout> | undefined;
  try {
    await hold(book, async () => {
      opening = records.payouts.openPayout(input);
      await eventually('a second try', async () => posts.mock.calls.length > 1, TRIES_MS_MAX);
    });
  } finally {
    await opening?.catch(() => undefined);
  }
  expect(await opening).toMatchObject({ outcome: 'accepted' });
  expect(cleared).toHaveBeenCalledTimes(1);
});
