import type { Context } from 'koa';
import { createNetworkMatcher } from '../base/networks';
import { Refusal } from '../domain/errors';
import type { Scope } from '../domain/merchants/api-key';
import type { ApiKey } from '../service/access';
import { type ApiDeps, getAddress, getRequestId } from './context';

/** @throws Refusal 403 `api_key_address_refused` */
export function checkAddress(ctx: Context, { allowed_cidrs }: ApiKey): void {
  if (allowed_cidrs === undefined || createNetworkMatcher(allowed_cidrs)(getAddress(ctx))) return;
  const message = `This API key may not be used from ${getAddress(ctx)}.`;
  throw new Refusal('api_key_address_refused', message);
}

/** @throws Refusal 403 `api_key_scope_insufficient`; logged, since the key may be stolen */
export function checkScope(
  { log }: Pick<ApiDeps, 'log'>,
  ctx: Context,
  { key, scope }: { key: ApiKey; scope: Scope | null },
): void {
  if (scope === null || key.scopes.includes(scope)) return;
  const code = 'api_key_scope_insufficient';
  const { _id: key_id, account_id, livemode } = key;
  const request_id = getRequestId(ctx);
  log.info({ request_id, key_id, account_id, livemode, code }, 'key lacks the scope');
  throw new Refusal(code, `This API key lacks the scope ${scope}.`);
}

/** @throws Refusal 401 `api_key_missing`, `api_key_invalid` @see docs/api.md#base-url-environments-keys */
export function readBearer(ctx: Context): string {
  const header = ctx.get('Authorization');
  if (header === '') {
    const message = 'Send your API key as Authorization: Bearer <API_KEY>.';
    throw new Refusal('api_key_missing', message);
  }
  const key = /^Bearer +(\S+)$/i.exec(header)?.[1];
  if (key === undefined) {
    const message = 'The Authorization header is not of the form Bearer <API_KEY>.';
    throw new Refusal('api_key_invalid', message);
  }
  return key;
}

const KEY_LENGTH_MAX = 255;

/** @throws Refusal 400 @see docs/api.md#idempotency-key */
export function readIdempotencyKey(ctx: Context): string {
  const values = ctx.req.headersDistinct['idempotency-key'] ?? [];
  const key = values[0];
  if (key === undefined || (key === '' && values.length === 1)) {
    const message = 'Send an Idempotency-Key header: 1 to 255 printable ASCII characters.';
    throw new Refusal('idempotency_key_required', message);
  }
  if (values.length > 1 || !isIdempotencyKey(key)) {
    const message = 'The Idempotency-Key must be one value of 1 to 255 printable ASCII characters.';
    throw new Refusal('idempotency_key_invalid', message);
  }
  return key;
}

export function isIdempotencyKey(text: string): boolean {
  return text.length <= KEY_LENGTH_MAX && /^[\x20-\x7e]+$/.test(text);
}
