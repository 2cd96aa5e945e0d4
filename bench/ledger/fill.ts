import { createHash, randomUUID } from 'node:crypto';
import { type Collection, type Db, type Document, Long } from 'mongodb';
import { eventsOf, positionAt, tieBase } from '../../activities/events';
import type { BookDocument, PostingDocument } from '../../src/ledger/documents';
import { LEGS } from '../../src/ledger/legs';
import { bookId, type NewPosting, operationId } from '../../src/ledger/postings';
import type { PaymentDocument } from '../../src/store/payments';

/** Merchants: the first has half of the postings, the others share the rest. */
const ACCOUNTS = 100;
/** Postings to one settled payment; all others are fundings, which have no resource. */
const PAYMENT_EVERY = 10;
const BATCH = 2_000;
/** Span over which the postings are spread, and their age at the end of it. */
const SPAN_MS = 30 * 24 * 60 * 60_000;
const AGE_MS = 60 * 60_000;
const CURRENCY = 'EUR';
const CONNECTOR = 'sandbox';

/** Makes a ledger as the product would have written it, in bulk and without transactions. */
export function createFill(db: Db, total: number, began = Date.now()) {
  const postings: Collection<PostingDocument> = db.collection<PostingDocument>('ledger_postings');
  const books: Collection<BookDocument> = db.collection<BookDocument>('ledger_books');
  const accounts = Array.from({ length: ACCOUNTS }, () => `acct_${randomUUID()}`);
  const step = SPAN_MS / total;
  const timeOf = (n: number) => new Date(began - AGE_MS - SPAN_MS + n * step).toISOString();
  let made = 0;

  const insert = async <D extends Document>(collection: string, documents: D[]): Promise<void> => {
    if (documents.length === 0) return;
    const options = { ordered: false, writeConcern: { w: 1 } };
    await db.collection(collection).insertMany(documents, options);
  };

  const batch = async (count: number, sums: Map<string, Map<string, number>>): Promise<void> => {
    const rows: PostingDocument[] = [];
    const payments: PaymentDocument[] = [];
    for (const end = made + count; made < end; made += 1) {
      const account_id = accountOf(accounts, made);
      const at = timeOf(made);
      const payment = isPayment(made) ? settledPayment(account_id, at, 1 + (made % 1_000)) : null;
      if (payment !== null) payments.push(payment);
      const posting =
        payment === null
          ? fundingOf(account_id, at, 1 + (made % 1_000))
          : settlementOf(payment, at);
      const { kind, resource_id, legs } = posting;
      const book = bookId(posting);
      const inBook = sums.get(book) ?? new Map<string, number>();
      sums.set(book, inBook);
      for (const { account, amount } of legs) {
        inBook.set(account, (inBook.get(account) ?? 0) + Number(amount));
      }
      const longs = legs.map(({ account, amount }) => ({
        account,
        amount: Long.fromNumber(Number(amount)),
      }));
      const _id = operationId(posting);
      rows.push({ _id, book, kind, resource_id, at, written_at: at, legs: longs });
    }
    await Promise.all([
      insert('ledger_postings', rows),
      insert('payments', payments),
      insert('events', payments.flatMap(eventsOfPayment)),
    ]);
  };

  const keep = async (sums: Map<string, Map<string, number>>): Promise<void> => {
    for (const [book, balances] of sums) {
      const [account_id = ''] = book.split(':');
      const moved = [...balances].map(([path, amount]) => [path, Long.fromNumber(amount)]);
      await books.updateOne(
        { _id: book },
        {
          $inc: Object.fromEntries(moved),
          $setOnInsert: { account_id, livemode: false, currency: CURRENCY },
        },
        { upsert: true },
      );
    }
  };

  return {
    /** Adds postings with all that belongs to them, later ones than those before. */
    add: async (count: number, say: (detail: string) => void, signal: AbortSignal) => {
      const sums = new Map<string, Map<string, number>>();
      for (let left = count; left > 0; left -= BATCH) {
        signal.throwIfAborted();
        await batch(Math.min(left, BATCH), sums);
        say(`${made} postings`);
      }
      await keep(sums);
    },
    count: () => postings.countDocuments(),
  };
}

function accountOf(accounts: readonly string[], n: number): string {
  const at = n % 2 === 0 ? 0 : 1 + (((n - 1) / 2) % (ACCOUNTS - 1));
  return accounts[at] ?? '';
}

/** Whether a posting is of a payment: one in ten, of the large merchant and of the others in turn. */
function isPayment(n: number): boolean {
  return n % (2 * PAYMENT_EVERY) === 0 || n % (2 * PAYMENT_EVERY) === PAYMENT_EVERY - 1;
}

function fundingOf(account_id: string, at: string, amount: number): NewPosting {
  return {
    kind: 'funded',
    resource_id: `fund_${randomUUID()}`,
    ...{ account_id, livemode: false, currency: CURRENCY, at },
    legs: LEGS.funded('main', amount),
  };
}

function settlementOf({ _id, account_id, amount }: PaymentDocument, at: string): NewPosting {
  return {
    kind: 'payment_settled',
    resource_id: _id,
    ...{ account_id, livemode: false, currency: CURRENCY, at },
    legs: LEGS.payment_settled(CONNECTOR, amount),
  };
}

/** A settled payment as the product would have written it. */
export function settledPayment(account_id: string, at: string, amount: number): PaymentDocument {
  const _id = randomUUID();
  return {
    _id,
    ...{ account_id, livemode: false, amount, currency: CURRENCY },
    version: 4,
    position: positionAt(at, 0, tieBase(1)),
    status: 'settled',
    ...{ method: 'ideal', country: 'NL', connector: CONNECTOR, reference: `order-${_id}` },
    customer: { email: 'j.jansen@example.com', first_name: 'J', last_name: 'J', reference: null },
    metadata: '{}',
    ...{ failure: null, refunded: 0, bank_reference: _id, session_url: null, attention: null },
    ...{ created_at: at, updated_at: at, authorized_at: at, settled_at: at, cancelled_at: null },
    success_url: 'https://merchant.example/success',
    error_url: 'https://merchant.example/error',
    expires_at: at,
    token_hash: createHash('sha256').update(_id).digest('hex'),
    ...{ browser_hash: null, opened_at: null, request_id: _id, audit: [] },
  };
}

/** Events of its moves, in order. */
export function eventsOfPayment({ _id, account_id, livemode, created_at: at }: PaymentDocument) {
  const subject = { resource: 'payment', resource_id: _id, account_id, livemode } as const;
  const moves = [
    { type: 'payment.awaiting_customer', version: 2 },
    { type: 'payment.authorized', version: 3 },
    { type: 'payment.settled', version: 4 },
  ] as const;
  return eventsOf({ ...subject, at, data: { payment_id: _id }, request_id: _id, moves }, null);
}
