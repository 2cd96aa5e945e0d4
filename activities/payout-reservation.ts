import type { ClientSession } from 'mongodb';
import { abandon } from '../src/base/mongo';
import type { PayoutRequest } from '../src/domain/creation';
import type { RuleViolation } from '../src/domain/errors';
import { findPayoutLimit, limitFault } from '../src/domain/payout/limit';
import { isRailId, railRules } from '../src/domain/payout/rails';
import { endOfNextBusinessDay } from '../src/domain/payout/target2';
import type { PayoutInput } from '../src/domain/payout/workflow';
import { buildReservation } from '../src/ledger/resource-entries';
import type { AccountDocument } from '../src/store/accounts';
import type { PayoutDocument } from '../src/store/payouts';
import { positionAt, tieBase } from './shared/events';
import type { RecordDeps } from './shared/record-table';

export type OpenPayout = PayoutInput & {
  created_at: string;
  /** Ms since the epoch. */
  accept_by_ms: number;
  /** Accepted before: no limit applies. */
  rebuilding?: true;
};

export class LimitExceeded extends Error {
  override readonly name = 'LimitExceeded';
  readonly fault: RuleViolation;

  constructor(fault: RuleViolation) {
    super(fault.message);
    this.fault = fault;
  }
}

/**
 * Debits the book first, so that a payout that conflicts there has done nothing in vain.
 * @returns null when it is too late, or another attempt was first
 * @throws InsufficientBalance, LimitExceeded
 */
export async function reserve(
  { stores }: Pick<RecordDeps, 'stores'>,
  input: OpenPayout,
  session: ClientSession,
): Promise<PayoutDocument | null> {
  if (isLate(input)) return await abandon(session);
  // Read outside the transaction, whose snapshot would be older.
  const account = input.rebuilding ? null : await stores.accounts.get(input.account_id);
  const owedMax = input.rebuilding ? undefined : (account?.owed_limits?.[input.currency] ?? 0);
  const reserved = { ...input, _id: input.payout_id, bank_reference: null };
  await stores.ledger.post(buildReservation(reserved, owedMax), session);
  const request = await stores.idempotency.clearRequest(input.payout_id, session);
  if (request === null || !('payout' in request)) return await abandon(session);
  const payout = await addToDay(stores, account, newPayout(input, request.payout), session);
  await stores.payouts.insert(payout, session);
  // The API may have given up while the writes ran.
  return isLate(input) ? await abandon(session) : payout;
}

async function addToDay(
  { payoutDays }: RecordDeps['stores'],
  account: AccountDocument | null,
  payout: PayoutDocument,
  session: ClientSession,
): Promise<PayoutDocument> {
  const { amount, currency } = payout;
  const limit = findPayoutLimit(account?.payout_limits, currency);
  if (limit === undefined) return payout;
  const spent = await payoutDays.add(payout, amount, session);
  const fault = limitFault(limit, spent - amount, payout);
  if (fault !== undefined) throw new LimitExceeded(fault);
  return { ...payout, limited: true };
}

function isLate({ accept_by_ms }: OpenPayout): boolean {
  return Date.now() > accept_by_ms;
}

/** @see docs/api.md#payouts */
function newPayout(input: OpenPayout, request: PayoutRequest): PayoutDocument {
  const { payout_id, accept_by_ms, caller_waits, rebuilding, ...facts } = input;
  return {
    _id: payout_id,
    ...facts,
    ...request,
    version: 1,
    transition: 1,
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

function dueAt(method: string, created: number): number {
  const due = isRailId(method) ? railRules(method).due : { kind: 'after' as const, seconds: 0 };
  return due.kind === 'after' ? created + due.seconds * 1_000 : endOfNextBusinessDay(created);
}
