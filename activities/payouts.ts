import { getVerificationMode } from '../src/domain/callback/signature';
import type { Failure, RuleViolation } from '../src/domain/lifecycle';
import {
  PAYOUT_EVENTS,
  PAYOUT_TRANSITIONS,
  type PayoutAttention,
  type PayoutStatus,
  type Return,
} from '../src/domain/payout/payout';
import { isRailId, railRules } from '../src/domain/payout/rails';
import { payoutBalanceFault } from '../src/domain/payout/rules';
import { bookId, InsufficientBalance } from '../src/ledger/entries';
import { buildPayoutEntries } from '../src/ledger/resource-entries';
import type { Stores } from '../src/store';
import type { PayoutDocument } from '../src/store/payouts';
import { LimitExceeded, type OpenPayout, reserve } from './payout-reservation';
import { withDebitLock } from './shared/debit';
import { createRecord, openWithRetry } from './shared/record';
import type { OpenedState, TransitionInput } from './shared/record-inputs';
import { buildCommonChange, type RecordDeps, type RecordTable } from './shared/record-table';

export type PayoutFacts = ReturnType<typeof readFacts>;

export type PayoutOpening =
  | ({
      outcome: 'accepted';
      facts: PayoutFacts;
    } & OpenedState<PayoutStatus>)
  | ({ outcome: 'refused' } & RuleViolation);

export interface PayoutChange {
  failure: Failure;
  returned: Return;
  /** Minor units that came back, where an operator posts less than was sent. */
  returned_amount: number;
  bank_reference: string;
}

export type PayoutTransition = TransitionInput<PayoutStatus, PayoutAttention, PayoutChange>;

export function createPayoutActivities(deps: RecordDeps) {
  const record = createRecord(deps, recordTable(deps.stores));
  return {
    /** Reserves amount and fee and writes the payout, never after `accept_by_ms`. */
    openPayout: (input: OpenPayout): Promise<PayoutOpening> =>
      openWithRetry((isRetry) => openPayout(deps, input, isRetry)),
    /**
     * Releases the key of a payout that was not accepted in time, so that no later attempt accepts
     * it.
     * @returns the acceptance, where an attempt was faster
     */
    abandonPayout: (input: OpenPayout): Promise<PayoutOpening> => abandonPayout(deps, input),
    recordPayoutMove: record.transition,
    recordPayoutAttention: record.setAttention,
    loadPayout: record.load,
  };
}

function recordTable(
  stores: Stores,
): RecordTable<
  PayoutStatus,
  PayoutAttention,
  PayoutChange,
  PayoutDocument,
  ReturnType<typeof buildSnapshot>
> {
  return {
    resource: 'payout',
    store: stores.payouts,
    transitions: PAYOUT_TRANSITIONS,
    events: PAYOUT_EVENTS,
    eventData: ({ _id }) => ({ payout_id: _id }),
    buildChange,
    posted: ['sent', 'failed', 'returned'],
    post: async (payout, transition, session) => {
      if (payout.limited && transition.to.includes('failed')) {
        await stores.payoutDays.add(payout, -payout.amount, session);
      }
      for (const entry of buildPayoutEntries(payout, transition))
        await stores.ledger.post(entry, session);
    },
    buildSnapshot,
  };
}

const TOO_LATE = {
  outcome: 'refused',
  code: 'temporarily_unavailable',
  message: 'The payout could not be accepted in time; no money moves. Try again.',
} as const;

async function openPayout(
  deps: RecordDeps,
  input: OpenPayout,
  isRetry: boolean,
): Promise<PayoutOpening> {
  // The collections may be restored to different times: a stored payout may still have its request.
  const existing = isRetry ? await deps.stores.payouts.get(input.payout_id) : null;
  if (existing !== null) return buildAcceptance(existing, input.request_id);
  const lockRequest = { book: bookId(input), by: input.accept_by_ms };
  try {
    const payout = await withDebitLock(deps, lockRequest, (session) =>
      reserve(deps, input, session),
    );
    if (payout !== null) {
      const { payout_id, request_id } = input;
      deps.log.info({ payout_id, request_id, status: 'created' }, 'payout opened');
      return buildAcceptance(payout, request_id);
    }
  } catch (error) {
    if (error instanceof LimitExceeded) return { outcome: 'refused', ...error.fault };
    if (error instanceof InsufficientBalance) return await refuseDebit(deps, input);
    throw error;
  }
  const storedPayout = await deps.stores.payouts.get(input.payout_id);
  return storedPayout === null ? TOO_LATE : buildAcceptance(storedPayout, input.request_id);
}

function buildAcceptance(payout: PayoutDocument, request_id: string) {
  const facts = readFacts(payout, request_id);
  const verification = getVerificationMode(payout.livemode);
  return { outcome: 'accepted', facts, status: 'created', version: 1, verification } as const;
}

async function refuseDebit({ stores }: RecordDeps, input: OpenPayout): Promise<PayoutOpening> {
  const fault = payoutBalanceFault(
    await stores.ledger.balances(input.account_id, input.livemode),
    input,
  );
  // Credited between the two reads: try again.
  if (fault === undefined) throw new Error('The balance changed while it was looked at.');
  return { outcome: 'refused', ...fault };
}

async function abandonPayout(deps: RecordDeps, input: OpenPayout): Promise<PayoutOpening> {
  const { idempotency, payouts } = deps.stores;
  const { payout_id, request_id } = input;
  // One session, so that the read can't go to a new primary without the release.
  return await deps.mongo.withSession(async (session) => {
    await idempotency.release(payout_id, session);
    const storedPayout = await payouts.get(payout_id, session);
    return storedPayout === null ? TOO_LATE : buildAcceptance(storedPayout, request_id);
  });
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
  const { status, version, attention, sent_at, completed_at } = payout;
  const facts = readFacts(payout, request_id);
  return { facts, status, version, attention, sent_at, completed_at };
}
