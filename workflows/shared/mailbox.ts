import type { AnyCallback, BankCallback } from '../../src/domain/callback';
import type { CallbackMac } from '../../src/domain/callback-mac';
import type { RuleViolation } from '../../src/domain/lifecycle';
import { Faults } from '../../src/domain/shape';

/** Takes messages from the first instant on; the resource comes when it is opened or loaded. */
export interface Mailbox<Item, Resource> {
  /** In order of arrival. Handlers only enqueue; the loop decides. */
  readonly inbox: Item[];
  /** Signals of this run: a repeat is not taken in. */
  readonly seen: Set<string>;
  /** Undefined until it is known. */
  opening: Opening<Resource> | undefined;
}

export type Opening<Resource> =
  | { outcome: 'accepted'; resource: Resource }
  /** Nothing is stored and nothing moved. */
  | ({ outcome: 'refused' } & RuleViolation);

export function openMailbox<Item, Resource>(): Mailbox<Item, Resource> {
  return { inbox: [], seen: new Set(), opening: undefined };
}

/** The resource, once it is opened or loaded. */
export function openedIn<Resource>({
  opening,
}: {
  opening: Opening<Resource> | undefined;
}): Resource | undefined {
  return opening?.outcome === 'accepted' ? opening.resource : undefined;
}

/** A bank's signal in the inbox. */
export type CallbackItem<Name extends string, Callback extends AnyCallback = BankCallback> =
  | { kind: 'callback'; name: Name; callback: Callback; mac: CallbackMac | undefined }
  | { kind: 'malformed'; name: Name; fault: string };

/**
 * Takes a signal in. A malformed one is kept too; it never throws. Each `callback_id` comes in once
 * without a mac, and once with each that it comes with: a false one must not stand for the true one.
 */
export function receiveCallback<Name extends string, Callback extends AnyCallback>(
  {
    inbox,
    seen,
  }: { inbox: { push(item: CallbackItem<Name, Callback>): unknown }; seen: Set<string> },
  name: Name,
  callback: Callback | Faults,
  mac: CallbackMac | undefined | Faults,
): void {
  if (callback instanceof Faults || mac instanceof Faults) {
    const faults = [callback, mac].filter((read) => read instanceof Faults);
    inbox.push({ kind: 'malformed', name, fault: faults.map(({ text }) => text).join('; ') });
    return;
  }
  const { callback_id } = callback;
  const key = mac === undefined ? callback_id : JSON.stringify([name, callback, mac]);
  if (seen.has(key)) return;
  seen.add(key);
  inbox.push({ kind: 'callback', name, callback, mac });
}
