import { debtFault } from '../src/domain/account/insufficient-balance';
import type { Failure } from '../src/domain/failure';
import { type Direction, isInSuspense, type Movement } from '../src/domain/movement/movement';
import { ACCEPT_WITHIN_MS } from '../src/domain/payout/accept-within';
import {
  PAYOUT_EVENTS,
  PAYOUT_TRANSITIONS,
  type PayoutStatus,
  type Return,
} from '../src/domain/payout/payout';
import { isRailId, railRules } from '../src/domain/payout/rails';
import { payoutBalanceFault } from '../src/domain/payout/rules';
import { bookId, type NewEntry, operationId } from '../src/ledger/entries';
import {
  buildPayoutEntries,
  type FromSuspense,
  returnedAmount,
} from '../src/ledger/resource-entries';
import {
  applyMovements,
  listMovements,
  recordApplied,
  releaseSent,
} from '../src/movements/register';
import type { Stores } from '../src/store';
import type { PayoutDocument } from '../src/store/payouts';
import { LimitExceeded, type OpenPayout, reserve } from './payout-reservation';
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
  const record = createRecord(deps, recordTable(deps.stores), async (payout, request_id) => ({
    ...buildSnapshot(payout, request_id),
    movements: await listMovements(deps.stores, payout._id),
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

function recordTable(stores: Stores): RecordTable<PayoutDocument, PayoutChange> {
  return {
    resource: 'payout',
    store: stores.payouts,
    transitions: PAYOUT_TRANSITIONS,
    events: PAYOUT_EVENTS,
    eventData: ({ _id }) => ({ payout_id: _id }),
    buildChange,
    posted: ['sent', 'failed', 'returned'],
    isInSuspense: async ({ _id }) => (await listMovements(stores, _id)).some(isInSuspense),
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
  deps.clock?.observe(Date.parse(input.created_at));
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
    explainMissing: async () => explainLateness(deps, input),
  };
}

/** The clock may be what refuses every payout. */
function explainLateness({ log }: RecordDeps, input: OpenPayout) {
  const { payout_id, request_id, accept_by_ms } = input;
  const now = Date.now();
  if (now <= accept_by_ms) return TOO_LATE;
  const seconds = Math.ceil((now - accept_by_ms + ACCEPT_WITHIN_MS) / 1_000);
  log.warn(
    { payout_id, request_id, seconds },
    'payout refused as late by the clock of this worker',
  );
  const clock = `By the clock of this worker it was ${seconds} s old, and it has 5 s.`;
  return { ...TOO_LATE, message: `${TOO_LATE.message} ${clock}` };
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

function buildChange(transition: PayoutTransition): Partial<PayoutDocument> {
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

function buildSnapshot(payout: PayoutDocument, request_id: string) {
  const { sent_at, completed_at } = payout;
  return { facts: readFacts(payout, request_id), sent_at, completed_at };
}
