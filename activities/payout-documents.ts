import { assertNever } from '../src/domain/assert';
import type { PayoutRequest } from '../src/domain/creation';
import { PAYOUT_EVENTS, type PayoutStatus } from '../src/domain/payout';
import { isRailId, railRules } from '../src/domain/rails';
import { endOfNextBusinessDay } from '../src/domain/target2';
import { LEGS, type Leg, type PostingKind, type PostingOf } from '../src/ledger/postings';
import type { PayoutDocument } from '../src/store/payouts';
import { positionAt, tieBase } from './events';
import type { OpenPayout, RecordPayoutMove } from './payouts';

/** The document as it is first written. @see spec §2.4 */
export function newPayout(input: OpenPayout, request: PayoutRequest): PayoutDocument {
  const { payout_id, accept_by_ms, can_be_returned, ...facts } = input;
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

/** What events of this payout carry. Decided: "Events". */
export function happeningOf(
  payout: Pick<RecordPayoutMove, 'payout_id' | 'account_id' | 'livemode'>,
) {
  const { payout_id, account_id, livemode } = payout;
  const data = { payout_id };
  return { resource: 'payout' as const, resource_id: payout_id, account_id, livemode, data };
}

/** The events of moves made at once; `created` emits none. */
export function movesTo(to: readonly PayoutStatus[], fromVersion: number) {
  return to.flatMap((status, index) => {
    const type = PAYOUT_EVENTS[status];
    return type === undefined ? [] : [{ type, version: fromVersion + index + 1 }];
  });
}

/** What a move changes in the document. */
export function changeOf(
  input: RecordPayoutMove,
  status: PayoutStatus,
  version: number,
): Partial<PayoutDocument> {
  const { from, at, to, attention, failure, returned, bank_reference } = input;
  // A return straight from `sent` says that it had arrived. @see spec §3.3
  const arrived =
    to.includes('completed') || (status === 'returned' && from.status !== 'completed');
  return {
    status,
    version,
    updated_at: at,
    attention,
    ...(to.includes('sent') ? { sent_at: at } : {}),
    ...(arrived ? { completed_at: at } : {}),
    ...(failure === undefined ? {} : { failure }),
    ...(returned === undefined ? {} : { returned }),
    ...(bank_reference === undefined ? {} : { bank_reference }),
  };
}

/** Amount and fee are set aside when the payout is accepted. */
export function reservationOf(payout: PayoutDocument): PostingOf {
  const { balance_account, amount, fee, created_at } = payout;
  const legs = LEGS.payout_reserved(balance_account, amount, fee);
  return postingOf('payout_reserved', payout, legs, created_at);
}

/** What a move posts. @param payout after the move */
export function postingsOf(
  payout: PayoutDocument,
  { from, to, at }: RecordPayoutMove,
): PostingOf[] {
  const { balance_account, amount, fee, connector } = payout;
  return to.flatMap((status): PostingOf[] => {
    switch (status) {
      case 'sent': {
        const legs = LEGS.payout_captured(balance_account, connector, amount, fee);
        return [postingOf('payout_captured', payout, legs, at)];
      }
      case 'failed': {
        if (from.status !== 'sent') {
          const legs = LEGS.payout_released(balance_account, amount, fee);
          return [postingOf('payout_released', payout, legs, at)];
        }
        const legs = LEGS.payout_reversed(balance_account, connector, amount, fee);
        return [postingOf('payout_reversed', payout, legs, at)];
      }
      case 'returned': {
        const legs = LEGS.payout_returned(balance_account, connector, amount);
        return [postingOf('payout_returned', payout, legs, at)];
      }
      case 'created':
      case 'submitted':
      case 'completed':
        return [];
      default:
        return assertNever(status);
    }
  });
}

function postingOf(
  kind: PostingKind,
  { _id: resource_id, account_id, livemode, currency }: PayoutDocument,
  legs: Leg[],
  at: string,
): PostingOf {
  return { kind, resource_id, account_id, livemode, currency, at, legs };
}

/** What a workflow needs to know, from its opening or when it starts again. */
export function factsOf(payout: PayoutDocument, request_id: string) {
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
