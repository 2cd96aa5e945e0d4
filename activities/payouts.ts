import { senderCheck } from '../src/domain/callback-mac';
import type { Failure, RuleViolation } from '../src/domain/lifecycle';
import {
  PAYOUT_EVENTS,
  PAYOUT_MOVES,
  type PayoutAttention,
  type PayoutStatus,
  type Return,
} from '../src/domain/payout';
import { balanceFault } from '../src/domain/payout-rules';
import { isRailId, railRules } from '../src/domain/rails';
import { bookId, InsufficientBalance } from '../src/ledger/postings';
import { payoutPostings } from '../src/ledger/steps';
import type { Stores } from '../src/store';
import type { PayoutDocument } from '../src/store/payouts';
import { unlessContended } from './debit';
import {
  createReservations,
  LimitPassed,
  type OpenPayout,
  type Reserve,
} from './payout-reservation';
import { createRecord, openedOnce } from './record';
import type { OpenedStanding, RecordMove } from './record-inputs';
import { type RecordDeps, type RecordTable, standingOf } from './record-table';

/** Facts for the workflow to go on with. */
export type PayoutFacts = ReturnType<typeof factsOf>;

export type PayoutOpening =
  | ({
      outcome: 'accepted';
      facts: PayoutFacts;
      /** Written by this very call, so that the record can't have moved on yet. */
      isFresh?: true;
    } & OpenedStanding<PayoutStatus>)
  /** Nothing is stored and nothing moved. */
  | ({ outcome: 'refused' } & RuleViolation);

/** Fields that a move of a payout changes beside its status. */
export interface PayoutChange {
  failure: Failure;
  returned: Return;
  /** Minor units that came back, where an operator books less than was sent. */
  returned_amount: number;
  bank_reference: string;
}

export type RecordPayoutMove = RecordMove<PayoutStatus, PayoutAttention, PayoutChange>;

/** The writes of a payout's lifecycle. One activity is one idempotent step. */
export function createPayoutActivities(deps: RecordDeps) {
  const record = createRecord(deps, recordTable(deps.stores));
  const reserve = createReservations(deps);
  return {
    /** Reserves amount and fee and writes the payout, or says why not; never after its time. */
    openPayout: (input: OpenPayout): Promise<PayoutOpening> =>
      openedOnce((isAgain) => openPayout(deps, reserve, input, isAgain)),
    /**
     * Frees the key of a payout that was not accepted in time, so that no attempt still under way
     * can accept it later. Should one have been faster, the payout stands.
     */
    abandonPayout: (input: OpenPayout): Promise<PayoutOpening> => abandonPayout(deps, input),
    recordPayoutMove: record.move,
    recordPayoutAttention: record.setAttention,
    readPayoutStanding: record.standing,
    loadPayout: record.load,
  };
}

/** A payout's record: what was reserved is captured, released, reversed or credited. */
function recordTable(
  stores: Stores,
): RecordTable<
  PayoutStatus,
  PayoutAttention,
  PayoutChange,
  PayoutDocument,
  ReturnType<typeof loaded>
> {
  return {
    resource: 'payout',
    store: stores.payouts,
    moves: PAYOUT_MOVES,
    events: PAYOUT_EVENTS,
    eventData: ({ _id }) => ({ payout_id: _id }),
    changeOf,
    posted: ['sent', 'failed', 'returned'],
    post: async (payout, move, session) => {
      if (payout.limited && move.to.includes('failed')) {
        await stores.payoutDays.add(payout, -payout.amount, session);
      }
      for (const posting of payoutPostings(payout, move))
        await stores.ledger.post(posting, session);
    },
    loaded,
  };
}

const TOO_LATE = {
  outcome: 'refused',
  code: 'temporarily_unavailable',
  message: 'The payout could not be accepted in time; no money moves. Try again.',
} as const;

async function openPayout(
  deps: RecordDeps,
  reserve: Reserve,
  input: OpenPayout,
  isAgain: boolean,
): Promise<PayoutOpening> {
  // Its claim may be open although it is written, in collections of different times.
  const existing = isAgain ? await deps.stores.payouts.get(input.payout_id) : null;
  if (existing !== null) return accepted(existing, input.request_id);
  try {
    const turn = { book: bookId(input), by: input.accept_by_ms };
    const opened = await unlessContended(() => reserve(turn, input));
    if (opened !== null) {
      const { payout_id, request_id } = input;
      deps.log.info({ payout_id, request_id, status: 'created' }, 'payout opened');
      return { ...accepted(opened, request_id), isFresh: true };
    }
  } catch (error) {
    if (error instanceof LimitPassed) return { outcome: 'refused', ...error.fault };
    if (error instanceof InsufficientBalance) return await lackOfMoney(deps, input);
    throw error;
  }
  const written = await deps.stores.payouts.get(input.payout_id);
  return written === null ? TOO_LATE : accepted(written, input.request_id);
}

/** As it was first answered, whatever has happened since. */
function accepted(payout: PayoutDocument, request_id: string) {
  const facts = factsOf(payout, request_id);
  const senders = senderCheck(payout.livemode);
  return { outcome: 'accepted', facts, status: 'created', version: 1, senders } as const;
}

/** Refusal of a payout that the balance can't bear, by the rule that the API applies, too. */
async function lackOfMoney({ stores }: RecordDeps, input: OpenPayout): Promise<PayoutOpening> {
  const fault = balanceFault(await stores.ledger.balances(input.account_id, input.livemode), input);
  // Credited between the two looks: try again.
  if (fault === undefined) throw new Error('The balance changed while it was looked at.');
  return { outcome: 'refused', ...fault };
}

/** Claim and payout are written in one transaction, so once the claim is gone none can follow. */
async function abandonPayout(deps: RecordDeps, input: OpenPayout): Promise<PayoutOpening> {
  const { idempotency, payouts } = deps.stores;
  const { payout_id, request_id } = input;
  // One session, so that the look can't be at a new primary that does not know of the release yet.
  return await deps.mongo.withSession(async (session) => {
    await idempotency.release(payout_id, session);
    const written = await payouts.get(payout_id, session);
    return written === null ? TOO_LATE : accepted(written, request_id);
  });
}

function changeOf(move: RecordPayoutMove): Partial<PayoutDocument> {
  const { from, at, to, change } = move;
  // A return straight from `sent` says that it had arrived. @see docs/api.md#states-of-a-payout
  const arrived =
    to.includes('completed') || (to.at(-1) === 'returned' && from.status !== 'completed');
  return {
    ...standingOf(move),
    ...(to.includes('sent') ? { sent_at: at } : {}),
    ...(arrived ? { completed_at: at } : {}),
    ...change,
  };
}

/** The facts that a workflow needs, from its opening or when it starts again. */
function factsOf(payout: PayoutDocument, request_id: string) {
  const { _id, account_id, livemode, amount, fee, currency, method, connector } = payout;
  const { recipient_id, balance_account, due_at } = payout;
  return {
    payout_id: _id,
    ...{ account_id, livemode, amount, fee, currency, method, connector },
    ...{ recipient_id, balance_account },
    can_be_returned: isRailId(method) && railRules(method).can_be_returned,
    due_at_ms: Date.parse(due_at),
    request_id,
  };
}

/** State and facts of a payout whose workflow starts again. */
function loaded(payout: PayoutDocument, request_id: string) {
  const { status, version, attention, sent_at, completed_at } = payout;
  const facts = factsOf(payout, request_id);
  return { facts, status, version, attention, sent_at, completed_at };
}
