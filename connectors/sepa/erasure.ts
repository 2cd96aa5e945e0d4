import type { SepaBook } from '../../src/service/sepa/book';

/** @see docs/sepa.md#personal-data */
const BYTES_DAYS = 90;
const DAY_MS = 86_400_000;

interface ErasureDeps {
  book: Pick<SepaBook, 'files' | 'requests'>;
  now: () => Date;
}

/** Payouts of the files stay in the book. */
export async function eraseBytes({ book, now }: ErasureDeps): Promise<void> {
  const before = new Date(now().getTime() - BYTES_DAYS * DAY_MS);
  await book.files.updateMany(
    { state: { $in: ['booked', 'refused'] }, ended_at: { $lt: before }, bytes: { $ne: null } },
    { $set: { bytes: null } },
  );
  await book.requests.deleteMany({ at: { $lt: before } });
}
