import type { RecordPayoutMove } from '../../activities/payouts';
import type { BankCallback, PayoutCallbackName } from '../../src/domain/callback';
import { isEnded, OVERDUE, type PayoutAttention, type PayoutStatus } from '../../src/domain/payout';
import { factsOf } from '../shared/life';
import { persist, persistRecorded } from '../shared/persist';
import type { PayoutLife } from './life';
import { show } from './view';

export interface MoveExtras
  extends Pick<RecordPayoutMove, 'failure' | 'returned' | 'bank_reference' | 'audit'> {
  /** Written by an ordinary activity. @see persistRecorded */
  recorded?: boolean;
}

/** A payout that moves on past its time, or whose workflow starts again, is given this long. */
export const OVERDUE_AGAIN_MS = 60_000;

const OVERDUE_MARKS: readonly (PayoutAttention | null)[] = Object.values(OVERDUE);

const CURED_BY_RETURN: readonly (PayoutAttention | null)[] = [
  ...OVERDUE_MARKS,
  'failed_after_completed',
  'return_not_possible',
  'return_too_late',
];

/** Whether a mark says nothing any more once the payout has moved on to `status`. */
function isPast(attention: PayoutAttention | null, status: PayoutStatus | undefined): boolean {
  if (attention === 'restarted_in_flight') return status !== undefined && isEnded(status);
  if (status === 'returned') return CURED_BY_RETURN.includes(attention);
  // An overdue mark ends with the state that it spoke of.
  return OVERDUE_MARKS.includes(attention);
}

/** The one place where a status changes: document, events, postings and memory together. */
export async function move(
  life: PayoutLife,
  to: readonly PayoutStatus[],
  { recorded = false, ...extras }: MoveExtras = {},
): Promise<void> {
  if (to.length === 0) return;
  const { payout_id, account_id, livemode, request_id, due_at_ms } = factsOf(life);
  const at = new Date().toISOString();
  const from = { status: life.status, version: life.version };
  const attention = isPast(life.attention, to.at(-1)) ? null : life.attention;
  const known = life.bankReference === undefined ? {} : { bank_reference: life.bankReference };
  const write = recorded ? persistRecorded : persist;
  const moved = await write((activities) =>
    activities.recordPayoutMove({
      ...{ payout_id, account_id, livemode, request_id },
      ...{ from, to: [...to], at, attention },
      ...known,
      ...extras,
    }),
  );
  life.status = moved.status;
  life.version = moved.version;
  if (to.includes('sent')) life.sentAt = at;
  if (to.includes('completed')) life.completedAt = at;
  life.since = Date.now();
  life.attention = attention;
  life.snoozedUntil = undefined;
  life.overdueTold = false;
  if (life.since >= due_at_ms) life.notOverdueBefore = life.since + OVERDUE_AGAIN_MS;
  show(life);
}

/** A callback that moves nothing, kept with its reason. */
export async function unapply(
  life: PayoutLife,
  name: PayoutCallbackName,
  callback: BankCallback,
  reason: string,
): Promise<void> {
  const { connector, payout_id, request_id } = factsOf(life);
  await persist((activities) =>
    activities.recordUnappliedPayout({ payout_id, connector, name, callback, reason, request_id }),
  );
}

/** Why it needs a person; null when it no longer does. */
export async function attend(life: PayoutLife, attention: PayoutAttention | null): Promise<void> {
  if (life.attention === attention) return show(life);
  const { payout_id, request_id } = factsOf(life);
  const { version } = life;
  await persist((activities) =>
    activities.recordPayoutAttention({ payout_id, version, attention, request_id, audit: null }),
  );
  life.attention = attention;
  show(life);
}
