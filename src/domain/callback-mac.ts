import type { AnyCallback, CallbackName, CallbackResource } from './callback';
import { Faults, object, type Rule, text } from './shape';

/**
 * Proof of who sent a callback, in the field `mac` of a signal's payload.
 * @see docs/connectors.md#prove-who-sends
 */
export interface CallbackMac {
  /** Id of the connector's key, `cnkey_…`. */
  key_id: string;
  /** Hex HMAC-SHA256 of the callback's text, under the key's whole secret. */
  v1: string;
}

/** Callback with all that its mac covers. */
export interface ToldCallback {
  connector: string;
  resource: CallbackResource;
  resource_id: string;
  name: CallbackName;
  callback: AnyCallback;
}

/** Extent to which senders are looked at: those who say who they are, or all. */
export type SenderCheck = 'checked' | 'required';

/** Extent to which the senders of an environment's callbacks are looked at. */
export function senderCheck(livemode: boolean): SenderCheck {
  return livemode ? 'required' : 'checked';
}

/** Reasons why a sender is not known, as the inbox and the journal tell them. */
export const SENDER_FAULTS = {
  unsigned: 'it carries no mac',
  unknown_key: 'its connector has no such key',
  revoked_key: 'its key is revoked',
  mac_differs: 'its mac is that of other facts, or of another secret',
} as const;
export type SenderFault = keyof typeof SENDER_FAULTS;

/** First line of the text, which changes with its form. */
const LABEL = 'payments-callback-v1';

/**
 * Text that a mac is made of: five lines and the facts as canonical JSON (RFC 8785), without a line
 * break at the end. The same facts make the same text in any order.
 * @see docs/connectors.md#prove-who-sends
 */
export function callbackText(told: ToldCallback): string {
  const { connector, resource, resource_id, name, callback } = told;
  const fields = Object.keys(callback).filter((field) => field !== 'mac');
  const facts = JSON.stringify(callback, fields.sort());
  return [LABEL, connector, resource, resource_id, name, facts].join('\n');
}

const hmac: Rule = (value) =>
  typeof value === 'string' && /^[0-9a-f]{64}$/.test(value)
    ? undefined
    : 'must be 64 hexadecimal digits';

/** Reads the mac of a signal's payload, undefined where it has none; it never throws. */
export function readMac(raw: unknown): CallbackMac | undefined | Faults {
  const mac: unknown = Object(raw).mac;
  if (mac === undefined) return undefined;
  const rules = { key_id: text({ min: 1, max: 100 }), v1: hmac };
  const read = object<CallbackMac>(mac, rules);
  return read instanceof Faults ? new Faults(`mac: ${read.text}`) : read;
}
