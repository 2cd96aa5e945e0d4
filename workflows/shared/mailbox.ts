import { type BankCallback, readCallback } from '../../src/domain/callback';
import { Faults } from '../../src/domain/shape';

/** What a bank's signal leaves in the inbox. */
export type CallbackItem<Name extends string> =
  | { kind: 'callback'; name: Name; callback: BankCallback }
  | { kind: 'malformed'; name: Name; fault: string };

/** Takes a signal in, each `callback_id` once. A malformed one is kept too; it never throws. */
export function take<Name extends string>(
  { inbox, seen }: { inbox: { push(item: CallbackItem<Name>): unknown }; seen: Set<string> },
  name: Name,
  raw: unknown,
): void {
  const callback = readCallback(raw);
  if (callback instanceof Faults) {
    inbox.push({ kind: 'malformed', name, fault: callback.text });
  } else if (!seen.has(callback.callback_id)) {
    seen.add(callback.callback_id);
    inbox.push({ kind: 'callback', name, callback });
  }
}
