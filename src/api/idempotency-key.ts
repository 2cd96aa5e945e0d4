import type { Context } from 'koa';
import { Refusal } from '../domain/errors';

const KEY_LENGTH_MAX = 255;

/** @throws Refusal 400 @see docs/api.md#idempotency-key */
export function readIdempotencyKey(ctx: Context): string {
  const values = ctx.req.headersDistinct['idempotency-key'] ?? [];
  const key = values[0];
  if (key === undefined || (key === '' && values.length === 1)) {
    const message = 'Send an Idempotency-Key header: 1 to 255 printable ASCII characters.';
    throw new Refusal('idempotency_key_required', message);
  }
  if (values.length > 1 || key.length > KEY_LENGTH_MAX || !/^[\x20-\x7e]+$/.test(key)) {
    const message = 'The Idempotency-Key must be one value of 1 to 255 printable ASCII characters.';
    throw new Refusal('idempotency_key_invalid', message);
  }
  return key;
}
