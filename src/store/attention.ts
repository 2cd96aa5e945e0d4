import { omitUndefined } from '../domain/defined';

/** Record of an operator's act. */
export interface AuditEntry {
  /** Id made once, so that a repeated write adds nothing. */
  id: string;
  who: string;
  when: string;
  what: string;
  why: string;
  before: string;
  after: string;
  /** Second operator, where there was one. */
  approved_by?: string;
}

/** An operator's act that changes the mark only. */
export interface AttentionAct {
  id: string;
  who: string;
  what: string;
  why: string;
  at: string;
  approved_by?: string;
}

/** A mark for operators, or the end of one. */
export interface AttentionUpdate<Attention extends string = string> {
  /** The version at which it was set. */
  version: number;
  attention: Attention | null;
  audit: AttentionAct | null;
  /** Time of its workflow, in ms since the epoch; each mark's is later than the one before. */
  attention_at: number;
}

/**
 * Write that marks or unmarks a document for operators, with the audit entry of an act. An attempt
 * that was given up and lands late must not hide a later mark; an act is known by its id.
 */
export function buildAttentionUpdate({ attention, audit: act, attention_at }: AttentionUpdate) {
  const audit = act ? { $concatArrays: ['$audit', [buildAuditEntry(act, attention)]] } : undefined;
  const latest = { $max: ['$attention_at', attention_at] };
  const unlessLater = { attention_at: { $not: { $gte: attention_at } } };
  return {
    unlessDone: act ? { 'audit.id': { $ne: act.id } } : unlessLater,
    change: [{ $set: omitUndefined({ attention, audit, attention_at: latest }) }],
  };
}

function buildAuditEntry({ at, ...act }: AttentionAct, attention: string | null) {
  const literal = Object.fromEntries(
    Object.entries(act).map(([name, value]) => [name, { $literal: value }]),
  );
  const before = { $ifNull: ['$attention', 'no attention'] };
  return { ...literal, when: at, before, after: attention ?? 'no attention' };
}
