import type { AnyCallback, BankCallback } from '../../src/domain/callback';
import type { RuleViolation } from '../../src/domain/lifecycle';
import { Faults } from '../../src/domain/shape';

/** Takes messages from the first instant on; the resource comes when it is opened or loaded. */
export interface Mailbox<Item, Resource> {
  /** In order of arrival. Handlers only enqueue; the loop decides. */
  readonly inbox: Item[];
  /** The `callback_id`s of this run: each counts once. */
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
  | { kind: 'callback'; name: Name; callback: Callback }
  | { kind: 'malformed'; name: Name; fault: string };

/** Takes a signal in, each `callback_id` once. A malformed one is kept too; it never throws. */
export function receiveCallback<Name extends string, Callback extends AnyCallback>(
  {
    inbox,
    seen,
  }: { inbox: { push(item: CallbackItem<Name, Callback>): unknown }; seen: Set<string> },
  name: Name,
  callback: Callback | Faults,
): void {
  if (callback instanceof Faults) {
    inbox.push({ kind: 'malformed', name, fault: callback.text });
  } else if (!seen.has(callback.callback_id)) {
    seen.add(callback.callback_id);
    inbox.push({ kind: 'callback', name, callback });
  }
}
