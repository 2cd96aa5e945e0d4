import type { AnyCallback, BankCallback } from '../../src/domain/callback/callback';
import type { CallbackSignature, MissedCallback } from '../../src/domain/callback/signature';
import type { RuleViolation } from '../../src/domain/errors';
import { Faults } from '../../src/domain/shape';
import { type AccountClock, startClock } from './clock';

export interface Mailbox<Item, Resource> {
  /** In order of arrival. Handlers only enqueue; the loop decides. */
  readonly inbox: Item[];
  /** Keys of received signals: repeats are not added. */
  readonly seen: Set<string>;
  opening: Opening<Resource> | undefined;
  readonly clock: AccountClock;
}

export type Opening<Resource> =
  | { outcome: 'accepted'; resource: Resource }
  | ({ outcome: 'refused' } & RuleViolation);

export function openMailbox<Item, Resource>(start: object): Mailbox<Item, Resource> {
  return { inbox: [], seen: new Set(), opening: undefined, clock: startClock(start) };
}

export function getResource<Resource>({
  opening,
}: {
  opening: Opening<Resource> | undefined;
}): Resource | undefined {
  return opening?.outcome === 'accepted' ? opening.resource : undefined;
}

interface State {
  status: string;
  version: number;
}

export function readResult<Resource, Known extends State>(
  { opening }: { opening: Opening<Resource> | undefined },
  first: NoInfer<Known>,
  getState: (resource: Resource) => Known,
): Known | (Omit<Known, keyof State> & { status: 'refused'; code: string; message: string }) {
  if (opening?.outcome === 'accepted') return getState(opening.resource);
  if (opening === undefined) return first;
  const { status, version, ...id } = first;
  const { code, message } = opening;
  return { ...id, status: 'refused', code, message };
}

export type CallbackItem<Name extends string, Callback extends AnyCallback = BankCallback> =
  | { kind: 'callback'; name: Name; callback: Callback; signature: CallbackSignature | undefined }
  | { kind: 'malformed'; name: Name; fault: string };

/**
 * Adds signalled callbacks that no run has applied, before later ones: Temporal may have lost their
 * signals.
 */
export function receiveMissed<Name extends string, Callback extends AnyCallback, Item>(
  { inbox, seen }: { inbox: (Item | CallbackItem<Name, Callback>)[]; seen: Set<string> },
  {
    callbacks,
    read,
  }: { callbacks: readonly { name: Name }[]; read: (raw: unknown) => Callback | Faults },
  missed: readonly MissedCallback[] = [],
): void {
  const items: CallbackItem<Name, Callback>[] = [];
  for (const { name, body, signature } of missed) {
    const known = callbacks.find((each) => each.name === name);
    if (known === undefined) continue;
    receiveCallback({ inbox: items, seen }, known.name, read(body), signature);
  }
  inbox.unshift(...items);
}

/**
 * Each `callback_id` is added once for each signature: a false one must not replace the true one.
 */
export function receiveCallback<Name extends string, Callback extends AnyCallback>(
  {
    inbox,
    seen,
  }: { inbox: { push(item: CallbackItem<Name, Callback>): unknown }; seen: Set<string> },
  name: Name,
  callback: Callback | Faults,
  signature: CallbackSignature | undefined | Faults,
): void {
  if (callback instanceof Faults || signature instanceof Faults) {
    const faults = [callback, signature].filter((read) => read instanceof Faults);
    inbox.push({ kind: 'malformed', name, fault: faults.map(({ text }) => text).join('; ') });
    return;
  }
  const { callback_id } = callback;
  const key = signature === undefined ? callback_id : JSON.stringify([name, callback, signature]);
  if (seen.has(key)) return;
  seen.add(key);
  inbox.push({ kind: 'callback', name, callback, signature });
}
