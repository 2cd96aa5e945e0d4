import { ApplicationFailure } from '@temporalio/activity';
import type { ClientSession } from 'mongodb';
import { assertLawful } from '../src/domain/assert';
import { MAIN_BALANCE } from '../src/domain/balance-account';
import type { BankCallback, PayoutCallbackName } from '../src/domain/callback';
import type { Failure } from '../src/domain/payment';
import {
  PAYOUT_MOVES,
  type PayoutAttention,
  type PayoutStatus,
  type Return,
} from '../src/domain/payout';
import type { PayoutInput } from '../src/domain/payout-workflow';
import type { RefusedFor } from '../src/domain/refund-rules';
import { InsufficientBalance } from '../src/ledger/postings';
import { inTransaction, isDuplicateKey } from '../src/mongo';
import type { AuditEntry } from '../src/store/attention';
import type { EventDocument } from '../src/store/events';
import type { PayoutDocument } from '../src/store/payouts';
import { eventsOf, hasEndpoint } from './events';
import {
  changeOf,
  factsOf,
  happeningOf,
  movesTo,
  newPayout,
  postingsOf,
  reservationOf,
} from './payout-documents';
import {
  type Act,
  auditOf,
  keepUnapplied,
  ledgerTurn,
  type RecordDeps,
  recordOnce,
  type Standing,
  tellPending,
} from './record';

export type OpenPayout = PayoutInput & {
  /** ISO 8601, ms. */
  created_at: string;
  /** ms since the epoch: nothing is accepted after it. */
  accept_by_ms: number;
};

/** What the workflow goes on with. */
export type PayoutFacts = ReturnType<typeof factsOf>;

export type PayoutOpening =
  | ({ outcome: 'accepted'; facts: PayoutFacts } & Standing<PayoutStatus>)
  /** Nothing is stored and nothing moved. */
  | ({ outcome: 'refused' } & RefusedFor);

export interface RecordPayoutMove {
  payout_id: string;
  account_id: string;
  livemode: boolean;
  from: Standing<PayoutStatus>;
  /** The states passed through, in order; none is skipped in the record. */
  to: PayoutStatus[];
  at: string;
  attention: PayoutAttention | null;
  failure?: Failure;
  returned?: Return;
  bank_reference?: string;
  audit?: Act;
  request_id: string;
}

interface UnappliedPayout {
  payout_id: string;
  connector: string;
  name: PayoutCallbackName;
  callback: BankCallback;
  reason: string;
  request_id: string;
}

export type PayoutActivities = ReturnType<typeof createPayoutActivities>;

/** The writes of the payout's life. One activity is one idempotent step. */
export function createPayoutActivities(deps: RecordDeps) {
  return {
    /** Reserves amount and fee and writes the payout, or says why not; never after its time. */
    openPayout: (input: OpenPayout): Promise<PayoutOpening> => openPayout(deps, input),
    /**
     * It was not accepted in time: frees its key, so that no attempt still under way can accept it
     * later. Should one have been faster, the payout stands.
     */
    abandonPayout: (input: OpenPayout): Promise<PayoutOpening> => abandonPayout(deps, input),
    /** Document, events, postings and audit entry in one transaction; then the deliveries start. */
    recordPayoutMove: (input: RecordPayoutMove): Promise<Standing<PayoutStatus>> =>
      recordMove(deps, input),
    /** A callback that moved nothing, kept with its reason. */
    recordUnappliedPayout: ({ payout_id: resource_id, ...input }: UnappliedPayout): Promise<void> =>
      keepUnapplied(deps, { ...input, resource: 'payout', resource_id }),
    /** Why the payout needs a person, or that it no longer does. */
    recordPayoutAttention: async (input: {
      payout_id: string;
      /** Of the state that the mark speaks of. */
      version: number;
      attention: PayoutAttention | null;
      audit: (Act & { id: string; at: string }) | null;
      request_id: string;
    }): Promise<void> => {
      const { payout_id, version, attention, audit } = input;
      await deps.stores.payouts.setAttention(payout_id, version, attention, audit);
    },
    /** State and facts of a payout whose workflow starts again. */
    loadPayout: (input: { payout_id: string; request_id: string }) => loadPayout(deps, input),
  };
}

const TOO_LATE = {
  outcome: 'refused',
  code: 'temporarily_unavailable',
  message: 'The payout could not be accepted in time; no money moves. Try again.',
} as const;

async function openPayout(deps: RecordDeps, input: OpenPayout): Promise<PayoutOpening> {
  const existing = await deps.stores.payouts.get(input.payout_id);
  if (existing !== null) return accepted(existing, input.request_id);
  try {
    const work = (session: ClientSession) => reserve(deps, input, session);
    const opened = await inTransaction(deps.mongo, work, ledgerTurn(input));
    if (opened !== null) {
      const { payout_id, request_id } = input;
      deps.log.info({ payout_id, request_id, status: 'created' }, 'payout opened');
      return accepted(opened, request_id);
    }
  } catch (error) {
    if (error instanceof InsufficientBalance) return await lackOfMoney(deps, input);
    if (!isDuplicateKey(error)) throw error;
    // Another attempt was first, or (one in a million) the place in the list was taken: look again.
    return await openPayout(deps, input);
  }
  const written = await deps.stores.payouts.get(input.payout_id);
  return written === null ? TOO_LATE : accepted(written, input.request_id);
}

/** As it was first answered, whatever has happened since. */
function accepted(payout: PayoutDocument, request_id: string): PayoutOpening {
  const facts = factsOf(payout, request_id);
  return { outcome: 'accepted', facts, status: 'created', version: 1 };
}

/** Null when it is too late, or another attempt has emptied the claim. @throws InsufficientBalance */
async function reserve(
  { stores }: RecordDeps,
  input: OpenPayout,
  session: ClientSession,
): Promise<PayoutDocument | null> {
  const isLate = () => Date.now() > input.accept_by_ms;
  const claim = isLate() ? null : await stores.idempotency.take(input.payout_id, session);
  if (claim === null || !('payout' in claim)) return await abort(session);
  const payout = newPayout(input, claim.payout);
  await stores.payouts.insert(payout, session);
  await stores.ledger.post(reservationOf(payout), session);
  // The API may have given it up while its writes took their time.
  return isLate() ? await abort(session) : payout;
}

async function abort(session: ClientSession): Promise<null> {
  await session.abortTransaction();
  return null;
}

/** Decided: a name that never held funds in this environment is no balance account at all. */
async function lackOfMoney(
  { stores }: RecordDeps,
  { account_id, livemode, balance_account }: OpenPayout,
): Promise<PayoutOpening> {
  const balances = await stores.ledger.balances(account_id, livemode);
  const isKnown = balances.some((row) => row.balance_account === balance_account);
  if (isKnown || balance_account === MAIN_BALANCE) {
    const message = 'The balance does not hold the amount and the fee of the payout.';
    return { outcome: 'refused', code: 'insufficient_balance', message };
  }
  const message = `The balance account ${balance_account} was never funded in this environment.`;
  return { outcome: 'refused', code: 'balance_account_not_found', message };
}

/** Claim and payout are written in one transaction, so once the claim is gone none can follow. */
async function abandonPayout(deps: RecordDeps, input: OpenPayout): Promise<PayoutOpening> {
  const { idempotency, payouts } = deps.stores;
  await idempotency.release(input.payout_id);
  const written = await payouts.get(input.payout_id);
  return written === null ? TOO_LATE : accepted(written, input.request_id);
}

async function recordMove(
  deps: RecordDeps,
  input: RecordPayoutMove,
): Promise<Standing<PayoutStatus>> {
  const { payout_id, account_id, livemode, from, to, at, request_id } = input;
  const last = to.at(-1);
  if (last === undefined) return from;
  const version = from.version + to.length;
  const events = eventsOf(
    { ...happeningOf(input), at, request_id, moves: movesTo(to, from.version) },
    await hasEndpoint(deps.stores, account_id, livemode),
  );
  const entry = { id: `${payout_id}:${version}`, when: at, before: from.status, after: last };
  const audit = auditOf(input.audit, entry);
  await recordOnce(deps, {
    ...{ resource_id: payout_id, account_id, livemode, events },
    commit: () => commitMove(deps, input, changeOf(input, last, version), audit, events),
  });
  deps.log.info({ payout_id, request_id, status: last }, 'payout moved');
  return { status: last, version };
}

/** One transaction; true when this call made the move. A taken place in a list throws: retried. */
async function commitMove(
  { mongo, stores }: RecordDeps,
  input: RecordPayoutMove,
  change: Partial<PayoutDocument>,
  audit: AuditEntry[],
  events: EventDocument[],
): Promise<boolean> {
  const { payout_id, from, to } = input;
  assertLawful(PAYOUT_MOVES, from.status, to);
  const work = async (session: ClientSession): Promise<boolean> => {
    const moved = await stores.payouts.update(payout_id, from.version, change, audit, session);
    if (moved === null) return false;
    await stores.events.insert(events, session);
    for (const posting of postingsOf(moved, input)) await stores.ledger.post(posting, session);
    return true;
  };
  return await inTransaction(mongo, work, ledgerTurn(input));
}

async function loadPayout(
  deps: RecordDeps,
  { payout_id, request_id }: { payout_id: string; request_id: string },
) {
  const payout = await deps.stores.payouts.get(payout_id);
  if (payout === null) throw ApplicationFailure.nonRetryable('No such payout.', 'payout_not_found');
  const { account_id, livemode, status, version, attention, sent_at, completed_at } = payout;
  await tellPending(deps, { resource_id: payout_id, account_id, livemode });
  const facts = factsOf(payout, request_id);
  return { facts, status, version, attention, sent_at, completed_at };
}
