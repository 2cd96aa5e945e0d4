import { createHmac, timingSafeEqual } from 'node:crypto';
import {
  type CallbackSignature,
  callbackText,
  type SignedCallback,
} from '../domain/banks/callback';

export interface ConnectorKey {
  key_id: string;
  /** The HMAC key is the whole text, including `cnsec_`. */
  secret: string;
}

/** Equal callbacks have equal signatures under one key. @see docs/connectors.md#prove-who-sends */
export function signCallback(
  { key_id, secret }: ConnectorKey,
  callback: SignedCallback,
): CallbackSignature {
  return { key_id, v1: hmac(secret, callback).toString('hex') };
}

export function isSignatureValid(
  secret: string,
  callback: SignedCallback,
  { v1 }: CallbackSignature,
): boolean {
  const [ours, theirs] = [hmac(secret, callback), Buffer.from(v1, 'hex')];
  return ours.length === theirs.length && timingSafeEqual(ours, theirs);
}

function hmac(secret: string, callback: SignedCallback): Buffer {
  return createHmac('sha256', secret).update(callbackText(callback)).digest();
}
