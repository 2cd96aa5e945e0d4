import type { ClientSession } from 'mongodb';
import { abandon } from '../src/base/mongo';
import type { Direction, Movement } from '../src/domain/banks/movement';
import type { PayoutRequest } from '../src/domain/creation';
import { omitUndefined } from '../src/domain/defined';
import type { RuleViolation } from '../src/domain/errors';
import type { Failure } from '../src/domain/failure';
import { debtFault } from '../src/domain/money/insufficient-balance';
import {
  ACCEPT_WITHIN_MS,
  findPayoutLimit,
  limitFault,
  PAYOUT_EVENTS,
  PAYOUT_TRANSITIONS,
  type PayoutInput,
  type PayoutStatus,
  type Return,
} from '../src/domain/payout/payout';
import { endOfNextBusinessDay, isRailId, railRules } from '../src/domain/payout/rails';
import { payoutBalanceFault } from '../src/domain/payout/rules';
import { bookId, type NewEntry, operationId } from '../src/ledger/entries';
import {
  buildPayoutEntries,
  buildReservation,
  type FromSuspense,
  returnedAmount,
} from '../src/ledger/resource-entries';
import {
  applyMovements,
  listMovements,
  recordApplied,
  releaseSent,
} from '../src/movements/register';
import type { PayoutDocument } from '../src/store/payouts';
import { positionAt } from './shared/events';
import {
  buildAcceptance,
  openReserved,
  type Reservation,
  type ReservedOpening,
  releaseUnlessStored,
} from './shared/opening';
import { createRecord } from './shared/record';
import {
  buildCommonChange,
  type RecordDeps,
  type RecordTable,
  type Transition,
} from './shared/record-table';

export type PayoutFacts = ReturnType<typeof readFacts>;

export type PayoutOpening = ReservedOpening<PayoutFacts, PayoutStatus>;

export interface PayoutChange {
  failure: Failure;
  returned: Return;
  /** Minor units; an operator may post less than was sent. */
  returned_amount: number;
  bank_reference: string;
}

export type PayoutTransition = Transition<PayoutDocument, PayoutChange>;

export function createPayoutActivities(deps: RecordDeps) {
  const { stores } = deps;
  const table: RecordTable<PayoutDocument, PayoutChange> = {
    resource: 'payout',
    store: stores.payouts,
    transitions: PAYOUT_TRANSITIONS,
    events: PAYOUT_EVENTS,
    eventData: ({ _id }) => ({ payout_id: _id }),
    buildChange: (transition) => {
      const { from, at, to, change } = transition;
      // A return straight from `sent` implies that it had arrived. @see docs/api.md#states-of-a-payout
      const hasArrived =
        to.includes('completed') || (to.at(-1) === 'returned' && from.status !== 'completed');
      return {
        ...buildCommonChange(transition),
        ...(to.includes('sent') ? { sent_at: at } : {}),
        ...(hasArrived ? { completed_at: at } : {}),
        ...change,
      };
    },
    posted: ['sent', 'failed', 'returned'],
    post: async (payout, transition, session) => {
      const { to } = transition;
      if (payout.limited && to.includes('failed')) {
        await stores.payoutDays.add(payout, -payout.amount, session);
      }
      const released = to.includes('failed')
        ? await releaseSent(stores, 'payout', payout, transition, session)
        : [];
      const left = await applyMovements(stores, payout._id, transition.taken, session);
      const taken = { in: Number(left.in), out: Number(left.out) };
      const moved: Movement[] = [];
      for (const entry of buildPayoutEntries(payout, transition, taken)) {
        const applied = readApplied(payout, entry, taken);
        const isImplied = applied?.direction === 'out' && to.includes('returned');
        if (applied !== undefined) {
          const row = { ...applied, kind: 'payout', entry: operationId(entry), isImplied } as const;
          moved.push(...(await recordApplied(stores, payout, transition, row, session)));
        }
        await stores.ledger.post(entry, session);
      }
      return [...released, ...moved];
    },
  };
  const record = createRecord(deps, table, async (payout, request_id) => ({
    facts: readFacts(payout, request_id),
    sent_at: payout.sent_at,
    completed_at: payout.completed_at,
    ...omitUndefined({ payee: payout.verification }),
    movements: await listMovements(stores, payout._id),
  }));
  return {
    openPayout: (input: OpenPayout): Promise<PayoutOpening> => openPayout(deps, input),
    abandonPayout: async (input: OpenPayout): Promise<PayoutOpening> =>
      (await releaseUnlessStored(deps, buildOpening(deps, input))) ?? TOO_LATE,
    recordPayoutMove: record.transition,
    recordPayoutAttention: record.setAttention,
    loadPayout: record.load,
  };
}

/** Finds what a bank moves by an entry; undefined where the money stays with us. */
function readApplied(
  payout: PayoutDocument,
  { kind }: NewEntry,
  taken: FromSuspense,
): { direction: Direction; amount: number } | undefined {
  switch (kind) {
    case 'payout_captured':
      return { direction: 'out', amount: payout.amount - taken.out };
    case 'payout_reversed':
      return { direction: 'in', amount: payout.amount - taken.in };
    case 'payout_returned':
      return { direction: 'in', amount: returnedAmount(payout) - taken.in };
    default:
      return undefined;
  }
}

const TOO_LATE = {
  outcome: 'refused',
  code: 'temporarily_unavailable',
  message: 'The payout could not be accepted in time; no money moves. Try again.',
} as const;

async function openPayout(deps: RecordDeps, input: OpenPayout): Promise<PayoutOpening> {
  if (input.livemode) deps.clock?.observe(Date.parse(input.created_at));
  try {
    return await openReserved(deps, buildOpening(deps, input));
  } catch (error) {
    if (error instanceof LimitExceeded) return { outcome: 'refused', ...error.fault };
    throw error;
  }
}

function buildOpening(
  deps: RecordDeps,
  input: OpenPayout,
): Reservation<PayoutDocument, PayoutOpening> {
  const { payout_id: id, request_id, accept_by_ms } = input;
  return {
    ...{ resource: 'payout', id, request_id, get: deps.stores.payouts.get },
    lockRequest: { book: bookId(input), by: accept_by_ms },
    reserve: (session) => reserve(deps, input, session),
    accept: (payout) => buildAcceptance(readFacts(payout, request_id), 'created', payout.livemode),
    refuseDebit: () => refuseDebit(deps, input),
    explainMissing: async () => {
      const late_ms = Date.now() - accept_by_ms;
      if (late_ms <= 0) return TOO_LATE;
      // The clock may be what refuses every payout.
      const seconds = Math.ceil((late_ms + ACCEPT_WITHIN_MS) / 1_000);
      const fields = { payout_id: id, request_id, seconds };
      deps.log.warn(fields, 'payout refused as late by the clock of this worker');
      const clock = `By the clock of this worker it was ${seconds} s old, and it has 5 s.`;
      return { ...TOO_LATE, message: `${TOO_LATE.message} ${clock}` };
    },
  };
}

async function refuseDebit({ stores }: RecordDeps, input: OpenPayout): Promise<PayoutOpening> {
  const { account_id, livemode, currency } = input;
  const { balances, receivables } = await stores.ledger.balancesAndReceivables(
    account_id,
    livemode,
  );
  const owed = receivables.find((row) => row.currency === currency)?.owed ?? 0;
  const account = await stores.accounts.get(account_id);
  const fault =
    debtFault(owed, account?.owed_limits?.[currency], currency) ??
    payoutBalanceFault(balances, input);
  // Credited between the two reads: try again.
  if (fault === undefined) throw new Error('The balance changed while it was looked at.');
  return { outcome: 'refused', ...fault };
}

function readFacts(payout: PayoutDocument, request_id: string) {
  const { _id, account_id, livemode, amount, currency, method, connector, due_at } = payout;
  return {
    payout_id: _id,
    ...{ account_id, livemode, amount, currency, method, connector },
    can_be_returned: isRailId(method) && railRules(method).can_be_returned,
    due_at_ms: Date.parse(due_at),
    request_id,
  };
}

export type OpenPayout = PayoutInput & {
  created_at: string;
  /** Ms since the epoch. */
  accept_by_ms: number;
  /** Accepted before: no limit applies. */
  rebuilding?: true;
};

class LimitExceeded extends Error {
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
async function reserve(
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
  const { amount, currency } = input;
  // Counts also without a limit, which may be set later on the day.
  const spent = await stores.payoutDays.add(input, amount, session);
  const limit = findPayoutLimit(account?.payout_limits, currency);
  const fault = limitFault(limit, spent - amount, input);
  if (fault !== undefined) throw new LimitExceeded(fault);
  const payout = newPayout(input, request.payout);
  await stores.payouts.insert(payout, session);
  // The API may have given up while the writes ran.
  return isLate(input) ? await abandon(session) : payout;
}

function isLate({ accept_by_ms }: OpenPayout): boolean {
  return Date.now() > accept_by_ms;
}

/** Due time of an unknown method. */
const NOW = { kind: 'after', seconds: 0 } as const;

/** @see docs/api.md#payouts */
function newPayout(input: OpenPayout, request: PayoutRequest): PayoutDocument {
  const { payout_id, accept_by_ms, caller_waits, rebuilding, ...facts } = input;
  const created = Date.parse(input.created_at);
  const due = isRailId(input.method) ? railRules(input.method).due : NOW;
  const dueMs =
    due.kind === 'after' ? created + due.seconds * 1_000 : endOfNextBusinessDay(created);
  return {
    _id: payout_id,
    ...facts,
    ...request,
    version: 1,
    transition: 1,
    position: positionAt(input.created_at),
    status: 'created',
    failure: null,
    returned: null,
    updated_at: input.created_at,
    sent_at: null,
    completed_at: null,
    bank_reference: null,
    limited: true,
    due_at: new Date(dueMs).toISOString(),
    attention: null,
    audit: [],
  };
}
