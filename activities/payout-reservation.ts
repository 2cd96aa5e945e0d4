import type { ClientSession } from 'mongodb';
import type { PayoutRequest } from '../src/domain/creation';
import type { RuleViolation } from '../src/domain/lifecycle';
import { limitFault } from '../src/domain/payout-rules';
import type { PayoutInput } from '../src/domain/payout-workflow';
import { isRailId, railRules } from '../src/domain/rails';
import { endOfNextBusinessDay } from '../src/domain/target2';
import { createGroups } from '../src/ledger/groups';
import { InsufficientBalance } from '../src/ledger/postings';
import { reservationOf } from '../src/ledger/steps';
import { abandon, inTransaction, isDuplicateKey } from '../src/mongo';
import type { PayoutDocument } from '../src/store/payouts';
import { positionAt, tieBase } from './events';
import type { RecordDeps } from './record-table';

export type OpenPayout = PayoutInput & {
  /** ISO 8601, ms. */
  created_at: string;
  /** ms since the epoch: nothing is accepted after it. */
  accept_by_ms: number;
  /** Accepted before, so that no limit is asked. */
  rebuilding?: true;
};

type ReservationDeps = Pick<RecordDeps, 'mongo' | 'stores'>;

export type Reserve = ReturnType<typeof createReservations>;

/** Makes reservations of which those that wait for one book are made together. */
export function createReservations(deps: ReservationDeps) {
  return createGroups<OpenPayout, PayoutDocument | null>({
    together: (inputs) => reserveTogether(deps, inputs),
    alone: (input) => inTransaction(deps.mongo, (session) => reserveOne(deps, input, session)),
  });
}

/** A limit of the day would be passed: let the transaction abort. */
export class LimitPassed extends Error {
  override readonly name = 'LimitPassed';
  readonly fault: RuleViolation;

  constructor(fault: RuleViolation) {
    super(fault.message);
    this.fault = fault;
  }
}

/**
 * Null when it is too late, or another attempt has emptied the claim.
 * @throws InsufficientBalance, LimitPassed
 */
async function reserveOne(
  { stores }: ReservationDeps,
  input: OpenPayout,
  session: ClientSession,
): Promise<PayoutDocument | null> {
  const claim = isLate(input)
    ? null
    : await stores.idempotency.emptyClaim(input.payout_id, session);
  if (claim === null || !('payout' in claim)) return await abandon(session);
  const payout = await counted(stores, input, newPayout(input, claim.payout), session);
  await stores.payouts.insert(payout, session);
  await stores.ledger.post(reservationOf(payout), session);
  // The API may have given it up while its writes took their time.
  return isLate(input) ? await abandon(session) : payout;
}

/** Adds a payout to the sum of its day where the account has a limit. @throws LimitPassed */
async function counted(
  { accounts, payoutDays }: RecordDeps['stores'],
  { rebuilding }: OpenPayout,
  payout: PayoutDocument,
  session: ClientSession,
): Promise<PayoutDocument> {
  const { account_id, amount, currency } = payout;
  const account = rebuilding ? null : await accounts.get(account_id, session);
  const limit = account?.payout_limits?.[currency];
  if (limit === undefined) return payout;
  const spent = await payoutDays.add(payout, amount, session);
  const fault = limitFault(limit, spent - amount, payout);
  if (fault !== undefined) throw new LimitPassed(fault);
  return { ...payout, limited: true };
}

function isLate({ accept_by_ms }: OpenPayout): boolean {
  return Date.now() > accept_by_ms;
}

/**
 * Reserves for several payouts of one book in one transaction, in which the book moves once.
 * @returns null for each that is late; undefined when there is one that can't be made with the
 *   others: nothing is written then
 */
async function reserveTogether(
  deps: ReservationDeps,
  inputs: readonly OpenPayout[],
): Promise<(PayoutDocument | null)[] | undefined> {
  const timely = inputs.filter((input) => !isLate(input));
  try {
    const work = (session: ClientSession) => reserveAll(deps, timely, session);
    const made = timely.length === 0 ? [] : await inTransaction(deps.mongo, work);
    const byId = new Map(made?.map((payout) => [payout._id, payout]));
    return made === null ? undefined : inputs.map(({ payout_id }) => byId.get(payout_id) ?? null);
  } catch (error) {
    if (error instanceof InsufficientBalance || error instanceof LimitPassed) return undefined;
    if (isDuplicateKey(error)) return undefined;
    throw error;
  }
}

async function reserveAll(
  { stores }: ReservationDeps,
  inputs: readonly OpenPayout[],
  session: ClientSession,
): Promise<PayoutDocument[] | null> {
  const ids = inputs.map(({ payout_id }) => payout_id);
  const claims = await stores.idempotency.emptyClaims(ids, session);
  const payouts: PayoutDocument[] = [];
  for (const input of inputs) {
    const claim = claims.get(input.payout_id);
    // It was emptied by another attempt, which may be among these.
    if (claim === undefined || !('payout' in claim)) return await abandon(session);
    payouts.push(await counted(stores, input, newPayout(input, claim.payout), session));
  }
  await stores.payouts.insertTogether(payouts, session);
  await stores.ledger.postTogether(payouts.map(reservationOf), session);
  return inputs.some(isLate) ? await abandon(session) : payouts;
}

/** The document as it is first written. @see docs/api.md#payouts */
function newPayout(input: OpenPayout, request: PayoutRequest): PayoutDocument {
  const { payout_id, accept_by_ms, can_be_returned, caller_waits, rebuilding, ...facts } = input;
  return {
    _id: payout_id,
    ...facts,
    ...request,
    version: 1,
    position: positionAt(input.created_at, 0, tieBase(1)),
    status: 'created',
    failure: null,
    returned: null,
    updated_at: input.created_at,
    sent_at: null,
    completed_at: null,
    bank_reference: null,
    due_at: new Date(dueAt(input.method, Date.parse(input.created_at))).toISOString(),
    attention: null,
    audit: [],
  };
}

/** When a payout that has not completed is shown to operators. */
function dueAt(method: string, created: number): number {
  const due = isRailId(method) ? railRules(method).due : { kind: 'after' as const, seconds: 0 };
  return due.kind === 'after' ? created + due.seconds * 1_000 : endOfNextBusinessDay(created);
}
