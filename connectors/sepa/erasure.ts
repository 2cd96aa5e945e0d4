import type { SepaBook } from '../../src/service/sepa/book';

/** Days for which the bytes of a file are stored after its end. @see docs/sepa.md#personal-data */
const BYTES_DAYS = 90;
const DAY_MS = 86_400_000;

interface ErasureDeps {
  book: Pick<SepaBook, 'files' | 'requests'>;
  now: () => Date;
}

/** Erases the bytes of files that ended long ago; what they paid stays in the book. */
export async function eraseBytes({ book, now }: ErasureDeps): Promise<void> {
  const before = new Date(now().getTime() - BYTES_DAYS * DAY_MS);
  await book.files.updateMany(
    { state: { $in: ['booked', 'refused'] }, ended_at: { $lt: before }, bytes: { $ne: null } },
    { $set: { bytes: null } },
  );
  await book.requests.deleteMany({ at: { $lt: before } });
}
