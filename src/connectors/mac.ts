import { createHmac, timingSafeEqual } from 'node:crypto';
import { type CallbackMac, callbackText, type ToldCallback } from '../domain/callback-mac';

/** Key of a connector, as `connector key create` shows it once. */
export interface ConnectorKey {
  /** `cnkey_…`. */
  key_id: string;
  /** `cnsec_…`: the HMAC's key is this whole text. */
  secret: string;
}

/**
 * Makes the mac of a callback, which goes as `mac` into the signal's payload. Equal facts have equal
 * macs under one key.
 * @see docs/connectors.md#prove-who-sends
 */
export function signCallback({ key_id, secret }: ConnectorKey, told: ToldCallback): CallbackMac {
  return { key_id, v1: hmac(secret, told).toString('hex') };
}

/** Whether a mac was made of these facts under this secret. */
export function macFits(secret: string, told: ToldCallback, { v1 }: CallbackMac): boolean {
  const [ours, theirs] = [hmac(secret, told), Buffer.from(v1, 'hex')];
  return ours.length === theirs.length && timingSafeEqual(ours, theirs);
}

function hmac(secret: string, told: ToldCallback): Buffer {
  return createHmac('sha256', secret).update(callbackText(told)).digest();
}
