import type { Failure } from './failure';

/** Any resource may have them. */
export type CommonAttention =
  | 'malformed_callback'
  | 'sender_not_known'
  /** Its workflow knows a later version than the database. */
  | 'record_behind'
  /** A message was given up, because the state in the database kept changing. */
  | 'message_given_up'
  /** A message was given up, because MongoDB refused its entry: a fault of the service. */
  | typeof BOOKS_REFUSED;

/** Code of an entry that the validators of the ledger refuse. @see docs/ledger.md#validators */
export const BOOKS_REFUSED = 'books_refused';

export type Decision<Status, Attention> =
  | { kind: 'move'; to: readonly Status[] }
  | { kind: 'unapplied'; reason: string; attention?: Attention };

export function transition<Status extends string>(...to: Status[]) {
  return { kind: 'move' as const, to };
}

export function unapplied<Attention extends string = never>(
  reason: string,
  attention?: Attention,
): { kind: 'unapplied'; reason: string; attention?: Attention } {
  return { kind: 'unapplied', reason, ...(attention === undefined ? {} : { attention }) };
}

type Id<Field extends string> = { [Name in Field]: string };

/** Resumes an ended workflow, which first loads its state. */
export type Resume<Field extends string> = Id<Field> & { resume: true; request_id: string };

/** Response of the updates and of the query `state`. */
export type State<Field extends string, Status> = Id<Field> & { status: Status; version: number };

/** Nothing is stored, and no money moved. */
export type Refused<Field extends string> = Id<Field> & { status: 'refused' } & Failure;
