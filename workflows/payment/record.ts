import type { BankCallback, PaymentCallbackName } from '../../src/domain/callback';
import type { Failure, PaymentAttention, PaymentStatus } from '../../src/domain/payment';
import { factsOf } from '../shared/life';
import { persist, persistRecorded } from '../shared/persist';
import type { PaymentLife } from './life';
import { show } from './view';

export interface MoveExtras {
  failure?: Failure;
  bank_reference?: string;
  session_url?: string;
  audit?: { who: string; what: string; why: string };
  /** Written by an ordinary activity. @see persistRecorded */
  recorded?: boolean;
}

/** The one place where a status changes: document, events and memory together. */
export async function move(
  life: PaymentLife,
  to: readonly PaymentStatus[],
  { recorded = false, ...extras }: MoveExtras = {},
): Promise<void> {
  const { payment_id, account_id, livemode, request_id } = factsOf(life);
  const last = to.at(-1);
  if (last === undefined) return;
  const at = new Date().toISOString();
  const from = { status: life.status, version: life.version };
  // An overdue mark ends with the state that it spoke of.
  const attention = life.attention === 'settlement_overdue' ? null : life.attention;
  const write = recorded ? persistRecorded : persist;
  await write((activities) =>
    activities.recordMove({
      ...{ payment_id, account_id, livemode, request_id },
      ...{ from, to: [...to], at, attention },
      ...extras,
    }),
  );
  life.status = last;
  life.version += to.length;
  life.since = Date.now();
  life.attention = attention;
  life.snoozedUntil = undefined;
  show(life);
}

/** A callback that moves nothing, kept with its reason. */
export async function unapply(
  life: PaymentLife,
  name: PaymentCallbackName,
  callback: BankCallback,
  reason: string,
): Promise<void> {
  const { connector, payment_id, request_id } = factsOf(life);
  await persist((activities) =>
    activities.recordUnapplied({ payment_id, connector, name, callback, reason, request_id }),
  );
}

/** Why it needs a person; null when it no longer does. */
export async function attend(life: PaymentLife, attention: PaymentAttention | null): Promise<void> {
  if (life.attention === attention) return show(life);
  const { payment_id, request_id } = factsOf(life);
  await persist((activities) =>
    activities.recordAttention({ payment_id, attention, request_id, audit: null }),
  );
  life.attention = attention;
  show(life);
}
