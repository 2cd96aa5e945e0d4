import { Faults, object, type Rule, text } from '../shape';
import type { AnyCallback, CallbackName, CallbackResource } from './callback';

/** Field `mac` of a signal's payload. @see docs/connectors.md#prove-who-sends */
export interface CallbackSignature {
  key_id: string;
  /** Hex HMAC-SHA256. */
  v1: string;
}

/** Signalled to its workflow, and applied by no run. */
export interface MissedCallback {
  name: CallbackName;
  body: AnyCallback;
  signature?: CallbackSignature;
}

export interface SignedCallback {
  connector: string;
  resource: CallbackResource;
  resource_id: string;
  name: CallbackName;
  callback: AnyCallback;
}

/** `checked` verifies only signed callbacks; `required` refuses unsigned ones. */
export type VerificationMode = 'checked' | 'required';

export function getVerificationMode(livemode: boolean): VerificationMode {
  return livemode ? 'required' : 'checked';
}

export const VERIFICATION_FAULTS = {
  unsigned: 'it has no signature',
  unknown_key: 'its connector has no such key',
  revoked_key: 'its key is revoked',
  mac_differs: 'its signature does not match the report or the secret',
} as const;
export type VerificationFault = keyof typeof VERIFICATION_FAULTS;

/** A new format of the signed text needs a new label. */
const LABEL = 'payments-callback-v1';

/**
 * Builds the text to sign: five lines and canonical JSON (RFC 8785), without a final line break.
 * @see docs/connectors.md#prove-who-sends
 */
export function callbackText(report: SignedCallback): string {
  const { connector, resource, resource_id, name, callback } = report;
  const fields = Object.keys(callback).filter((field) => field !== 'mac');
  const facts = JSON.stringify(callback, fields.sort());
  return [LABEL, connector, resource, resource_id, name, facts].join('\n');
}

const hmac: Rule = (value) =>
  typeof value === 'string' && /^[0-9a-f]{64}$/.test(value)
    ? undefined
    : 'must be 64 hexadecimal digits';

export function readSignature(raw: unknown): CallbackSignature | undefined | Faults {
  const rawSignature: unknown = Object(raw).mac;
  if (rawSignature === undefined) return undefined;
  const rules = { key_id: text({ min: 1, max: 100 }), v1: hmac };
  const signature = object<CallbackSignature>(rawSignature, rules);
  return signature instanceof Faults ? new Faults(`mac: ${signature.text}`) : signature;
}
