import type { RecordRefundMove } from '../../activities/refunds';
import type { BankCallback, RefundCallbackName } from '../../src/domain/callback';
import type { RefundAttention } from '../../src/domain/refund';
import { factsOf } from '../shared/life';
import { persist, persistRecorded } from '../shared/persist';
import type { RefundLife } from './life';
import { show } from './view';

export interface MoveExtras extends Pick<RecordRefundMove, 'failure' | 'bank_reference' | 'audit'> {
  /** Written by an ordinary activity. @see persistRecorded */
  recorded?: boolean;
}

/** The one place where a status changes: document, event, postings and memory together. */
export async function move(
  life: RefundLife,
  to: 'settled' | 'failed',
  { recorded = false, ...extras }: MoveExtras = {},
): Promise<void> {
  const { refund_id, payment_id, account_id, livemode, request_id } = factsOf(life);
  const at = new Date().toISOString();
  const from = { status: life.status, version: life.version };
  // An overdue mark ends with the state that it spoke of.
  const attention = life.attention === 'refund_overdue' ? null : life.attention;
  const known = life.bankReference === undefined ? {} : { bank_reference: life.bankReference };
  const write = recorded ? persistRecorded : persist;
  const moved = await write((activities) =>
    activities.recordRefundMove({
      ...{ refund_id, payment_id, account_id, livemode, request_id },
      ...{ from, to, at, attention },
      ...known,
      ...extras,
    }),
  );
  life.status = moved.status;
  life.version = moved.version;
  life.since = Date.now();
  life.attention = attention;
  life.snoozedUntil = undefined;
  show(life);
}

/** A callback that moves nothing, kept with its reason. */
export async function unapply(
  life: RefundLife,
  name: RefundCallbackName,
  callback: BankCallback,
  reason: string,
): Promise<void> {
  const { connector, refund_id, request_id } = factsOf(life);
  await persist((activities) =>
    activities.recordUnappliedRefund({ refund_id, connector, name, callback, reason, request_id }),
  );
}

/** Why it needs a person; null when it no longer does. */
export async function attend(life: RefundLife, attention: RefundAttention | null): Promise<void> {
  if (life.attention === attention) return show(life);
  const { refund_id, request_id } = factsOf(life);
  const { version } = life;
  await persist((activities) =>
    activities.recordRefundAttention({ refund_id, version, attention, request_id, audit: null }),
  );
  life.attention = attention;
  show(life);
}
