import { omitUndefined } from '../domain/defined';
import type { StoredVerification } from '../domain/payout/payout';

export interface AuditEntry {
  /** Derived id, so that a repeated write adds nothing. */
  id: string;
  who: string;
  when: string;
  what: string;
  why: string;
  before: string;
  after: string;
  approved_by?: string;
  approval_id?: string;
  /** The operator of `mark_failed` knew it from the bank; the service did not check. */
  bank_confirmed_not_executed?: true;
}

type AttentionAct = Pick<AuditEntry, 'id' | 'who' | 'what' | 'why' | 'approved_by'> & {
  at: string;
};

export interface AttentionUpdate<Attention extends string = string> {
  version: number;
  attention: Attention | null;
  audit: AttentionAct | null;
  /** Workflow time, ms since the epoch; it increases with each update. */
  attention_at: number;
  snoozed?: Snooze;
  /** The bank's, stored where there is none yet. */
  bank_reference?: string;
  /** Result of a payout's name check, stored unless there is a newer one. */
  verification?: StoredVerification;
}

/** Until the next transition. */
export interface Snooze {
  transition: number;
  /** ms since the epoch. */
  until: number;
}

export interface AcknowledgedReason<Attention extends string = string> {
  reason: Attention;
  /** ms since the epoch. */
  since: number;
}

/** Per resource; the audit trail has all. */
const ACKNOWLEDGED_MAX = 20;

/**
 * Builds a write that ignores a repeated act, by its id, and that never replaces a later reason: an
 * abandoned attempt may write late.
 */
export function buildAttentionUpdate(update: AttentionUpdate) {
  const { attention, audit: act, attention_at, snoozed, bank_reference, verification } = update;
  const audit = act ? { $concatArrays: ['$audit', [buildAuditEntry(act, attention)]] } : undefined;
  const latest = { $max: ['$attention_at', attention_at] };
  const unlessLater = { attention_at: { $not: { $gte: attention_at } } };
  const unlessNewer = { 'verification.checked_at': { $not: { $gt: verification?.checked_at } } };
  return {
    unlessDone: {
      ...(act ? { 'audit.id': { $ne: act.id } } : unlessLater),
      ...(verification === undefined ? {} : unlessNewer),
    },
    change: [
      {
        $set: omitUndefined({
          attention,
          audit,
          attention_at: latest,
          // A reason that stays keeps its time.
          attention_since:
            attention === null
              ? undefined
              : { $cond: [{ $eq: ['$attention', attention] }, STORED_SINCE, attention_at] },
          snoozed,
          bank_reference: bank_reference && { $ifNull: ['$bank_reference', bank_reference] },
          verification: verification && { $literal: verification },
          acknowledged: act?.what === 'acknowledge' ? ACKNOWLEDGED : undefined,
        }),
      },
    ],
  };
}

const STORED_SINCE = { $ifNull: ['$attention_since', '$attention_at'] };

const PRESENT = { reason: '$attention', since: STORED_SINCE };
const ACKNOWLEDGED = {
  $slice: [{ $concatArrays: [{ $ifNull: ['$acknowledged', []] }, [PRESENT]] }, -ACKNOWLEDGED_MAX],
};

function buildAuditEntry({ at, ...act }: AttentionAct, attention: string | null) {
  const literal = Object.fromEntries(
    Object.entries(act).map(([name, value]) => [name, { $literal: value }]),
  );
  const before = { $ifNull: ['$attention', 'no attention'] };
  return { ...literal, when: at, before, after: attention ?? 'no attention' };
}
