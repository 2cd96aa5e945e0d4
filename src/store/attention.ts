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
}

/** An operator's act that changes the mark only. */
export interface AttentionAct {
  id: string;
  who: string;
  what: string;
  why: string;
  at: string;
}

/** Write that marks or unmarks a document for operators, with the audit entry of an act. */
export function attentionChange(attention: string | null, act: AttentionAct | null) {
  const audit = act ? { $concatArrays: ['$audit', [auditOf(act, attention)]] } : undefined;
  return {
    unlessDone: act ? { 'audit.id': { $ne: act.id } } : {},
    change: [{ $set: defined({ attention, audit }) }],
  };
}

function auditOf({ at, ...act }: AttentionAct, attention: string | null) {
  const literal = Object.fromEntries(
    Object.entries(act).map(([name, value]) => [name, { $literal: value }]),
  );
  const before = { $ifNull: ['$attention', 'no attention'] };
  return { ...literal, when: at, before, after: attention ?? 'no attention' };
}
