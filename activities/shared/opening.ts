import { ApplicationFailure } from '@temporalio/activity';
import type { ClientSession, MongoClient } from 'mongodb';
import type { Logger } from '../../src/base/log';
import { Contention, inTransaction, isDuplicateKey } from '../../src/base/mongo';
import { type CallbackResource, getVerificationMode } from '../../src/domain/banks/callback';
import type { RuleViolation } from '../../src/domain/errors';
import { BOOKS_REFUSED } from '../../src/domain/lifecycle';
import type { FeeBearer } from '../../src/domain/merchants/acquirer-fee';
import { MAIN_BALANCE } from '../../src/domain/money/money';
import { NO_LOCK } from '../../src/domain/no-lock';
import { BooksRefused } from '../../src/ledger/ledger-accounts';
import { InsufficientBalance, type LockRequest, withLock } from '../../src/ledger/locks';
import type { Stores } from '../../src/store';
import type { OpenedState, RecordDeps } from './record-table';

/** For a debit without a waiting caller. */
const DUE_MS = 10_000;

/** @throws ApplicationFailure `no_lock`, with the retry time */
export async function withDebitLock<T>(
  { mongo }: { mongo: MongoClient },
  lockRequest: LockRequest,
  work: (session: ClientSession) => Promise<T>,
): Promise<T> {
  try {
    return await withLock(lockRequest, () => inTransaction(mongo, work));
  } catch (error) {
    if (!(error instanceof Contention)) throw error;
    const { message, retryMs: nextRetryDelay } = error;
    throw ApplicationFailure.create({ message, type: NO_LOCK, nextRetryDelay });
  }
}

/** Favors a debit that has waited longer. */
export function buildLockRequest(book: string, decidedAt: string): LockRequest {
  return { book, by: Date.parse(decidedAt) + DUE_MS };
}

/** Splits minor units into what the balance holds and what the merchant owes then. */
export async function splitDebit(
  ledger: Stores['ledger'],
  owner: Parameters<Stores['ledger']['balance']>[0],
  amount: number,
  session: ClientSession,
  balance_account: string = MAIN_BALANCE,
): Promise<{ held: number; owed: number }> {
  const balance = await ledger.balance(owner, balance_account, session);
  const available = balance?.available ?? 0;
  const held = available >= amount ? amount : Number(available);
  return { held, owed: amount - held };
}

const APPLY_SUFFIX = '00';

/**
 * Applies pending entries after one transition in 256; without lock or database, the next one does.
 */
export async function applyPendingOften(
  { mongo, stores, log }: { mongo: MongoClient; stores: Stores; log: Logger },
  resource_id: string,
  book: string,
): Promise<void> {
  if (!resource_id.endsWith(APPLY_SUFFIX)) return;
  const applyPending = (session: ClientSession) => stores.ledger.applyPending(book, session);
  try {
    const lockRequest = { book, by: Number.MAX_SAFE_INTEGER };
    await withLock(lockRequest, () => inTransaction(mongo, applyPending));
  } catch (err) {
    const { code } = { code: undefined, ...Object(err) };
    const level = err instanceof BooksRefused ? 'error' : 'debug';
    log[level]({ err, code, book }, 'pending entries not applied');
  }
}

type RefusedOpening = { outcome: 'refused' } & RuleViolation;

export type ReservedOpening<Facts, Status extends string> =
  | ({ outcome: 'accepted'; facts: Facts } & OpenedState<Status>)
  | RefusedOpening;

export interface Reservation<Document, Opening> {
  resource: CallbackResource;
  id: string;
  request_id: string;
  get: (id: string, session?: ClientSession) => Promise<Document | null>;
  lockRequest: LockRequest;
  /** @returns null without an open request, or when a rule refuses it */
  reserve: (session: ClientSession) => Promise<Document | null>;
  accept: (document: Document) => Opening;
  refuseDebit: () => Promise<Opening>;
  explainMissing: () => Promise<Opening>;
}

/** Opens with the same answer for each attempt. */
export function openReserved<Document, Opening>(
  deps: RecordDeps,
  reservation: Reservation<Document, Opening>,
): Promise<Opening | RefusedOpening> {
  const { resource, id, request_id, get, lockRequest, reserve, accept } = reservation;
  return openWithRetry(async (isRetry) => {
    // After a restore, a stored resource may still have its request.
    const existing = isRetry ? await get(id) : null;
    if (existing !== null) return accept(existing);
    let refuse: (() => Promise<Opening | RefusedOpening>) | undefined;
    try {
      const document = await withDebitLock(deps, lockRequest, reserve);
      if (document !== null) {
        deps.log.info({ [`${resource}_id`]: id, request_id }, `${resource} opened`);
        return accept(document);
      }
    } catch (error) {
      if (error instanceof InsufficientBalance) refuse = reservation.refuseDebit;
      else if (error instanceof BooksRefused) {
        deps.log.error({ [`${resource}_id`]: id, request_id, code: error.code }, error.message);
        const { message } = error;
        refuse = async () => ({ outcome: 'refused', code: BOOKS_REFUSED, message });
      } else throw error;
    }
    const storedDocument = await get(id);
    if (storedDocument !== null) return accept(storedDocument);
    return await (refuse ?? reservation.explainMissing)();
  });
}

/** Builds the first answer, whatever has happened since. */
export function buildAcceptance<Facts, Status extends string>(
  facts: Facts,
  status: Status,
  livemode: boolean,
) {
  const verification = getVerificationMode(livemode);
  return { outcome: 'accepted', facts, status, version: 1, transition: 1, verification } as const;
}

/**
 * Releases the idempotency key, so that no later attempt opens the resource.
 * @returns the acceptance, where an attempt was faster
 */
export function releaseUnlessStored<Document, Opening>(
  { mongo, stores }: RecordDeps,
  { id, get, accept }: Reservation<Document, Opening>,
): Promise<Opening | null> {
  // One session, so that the read can't go to a new primary without the release.
  return mongo.withSession(async (session) => {
    await stores.idempotency.release(id, session);
    const storedDocument = await get(id, session);
    return storedDocument === null ? null : accept(storedDocument);
  });
}

/** @throws ApplicationFailure `idempotency_record_missing`, or Error to be tried again */
export async function throwMissing(
  { idempotency }: Pick<Stores, 'idempotency'>,
  noun: string,
  id: string,
): Promise<never> {
  const record = await idempotency.forResource(id);
  // No majority has the document of another attempt yet.
  if (record !== null) throw new Error(`The ${noun} ${id} is not visible yet.`);
  throw ApplicationFailure.nonRetryable(
    `No idempotency record holds this ${noun}.`,
    'idempotency_record_missing',
  );
}

const TRIES_MAX = 3;

/**
 * Retries when another attempt wrote first, or the random list position collides.
 * @throws Error of MongoDB when keys collide three times
 */
export async function openWithRetry<T>(attempt: (isRetry: boolean) => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await attempt(tries > 1);
    } catch (error) {
      if (!isDuplicateKey(error) || tries === TRIES_MAX) throw error;
    }
  }
}

/**
 * Reads who bears a fee that is booked now.
 * @param report its `fee_bearer` says who bore it when a history was written
 * @returns undefined without a fee
 */
export async function findFeeBearer(
  { accounts }: Pick<Stores, 'accounts'>,
  { account_id }: { account_id: string },
  { fee = 0, fee_bearer }: { fee?: number | undefined; fee_bearer?: FeeBearer | undefined },
  session: ClientSession,
): Promise<FeeBearer | undefined> {
  if (fee === 0) return undefined;
  return fee_bearer ?? (await accounts.get(account_id, session))?.acquirer_fee ?? 'service';
}
