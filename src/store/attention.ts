import { defined } from '../domain/defined';

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
export interface Marking<Attention extends string = string> {
  /** The version at which it was set. */
  version: number;
  attention: Attention | null;
  audit: AttentionAct | null;
  /** Time of its workflow, in ms since the epoch; each mark's is later than the one before. */
  marked_at?: number;
}

/**
 * Write that marks or unmarks a document for operators, with the audit entry of an act. An attempt
 * that was given up and lands late must not hide a later mark; an act is known by its id.
 */
export function attentionChange({ attention, audit: act, marked_at }: Marking) {
  const audit = act ? { $concatArrays: ['$audit', [auditOf(act, attention)]] } : undefined;
  const latest = marked_at === undefined ? undefined : { $max: ['$marked_at', marked_at] };
  const unlessLater = marked_at === undefined ? {} : { marked_at: { $not: { $gte: marked_at } } };
  return {
    unlessDone: act ? { 'audit.id': { $ne: act.id } } : unlessLater,
    change: [{ $set: defined({ attention, audit, marked_at: latest }) }],
  };
}

function auditOf({ at, ...act }: AttentionAct, attention: string | null) {
  const literal = Object.fromEntries(
    Object.entries(act).map(([name, value]) => [name, { $literal: value }]),
  );
  const before = { $ifNull: ['$attention', 'no attention'] };
  return { ...literal, when: at, before, after: attention ?? 'no attention' };
}
