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

test('a payout that has a write conflict on its book has done nothing else in vain', async () => {
  const facts = payoutFacts({ account_id: `acct_${randomUUID()}` });
  await fund(records, facts, 100_000);
  const input = await recordPayoutKey(records, facts);
  const cleared = jest.spyOn(records.stores.idempotency, 'clearRequest');
  const { ledger } = records.stores;
  const posts = jest.spyOn(ledger, 'post');
  let opening: ReturnType<typeof records.payouts.openPayout> | undefined;
  try {
    // Holds the book, as a process does that is slow to commit.
    await inTransaction(records.mongo, async (session) => {
      const held = { $inc: { held: 1 } };
      await ledger.collections.books.updateOne({ _id: bookId(facts) }, held, { session });
      opening = records.payouts.openPayout(input);
      await eventually('a second try', async () => posts.mock.calls.length > 1, TRIES_MS_MAX);
      await abandon(session);
    });
  } finally {
    await opening?.catch(() => undefined);
  }
  expect(await opening).toMatchObject({ outcome: 'accepted' });
  expect(cleared).toHaveBeenCalledTimes(1);
});
