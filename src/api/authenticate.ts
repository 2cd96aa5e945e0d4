import type { Context } from 'koa';
import type { Scope } from '../domain/api-key';
import { Refusal } from '../domain/errors';
import { hashKey, type KeyDocument } from '../store/keys';
import type { ApiDeps } from './context';

const KEY_LENGTH_MAX = 200;

/**
 * Finds the key of a request; it decides account, environment and scopes.
 * @throws Refusal 401 `api_key_missing`, `api_key_invalid`, `api_key_revoked`; 403
 * @see docs/api.md#base-url-environments-keys
 */
export async function authenticate(
  { stores, now, log }: ApiDeps,
  ctx: Context,
  scope: Scope | null,
): Promise<KeyDocument> {
  const key = await stores.keys.byHash(hashKey(bearer(ctx)));
  if (key === null) throw new Refusal('api_key_invalid', 'This API key is not known.');
  if (key.revoked_at !== null) {
    throw new Refusal('api_key_revoked', 'This API key has been revoked.');
  }
  if (scope !== null && !key.scopes.includes(scope)) {
    throw new Refusal('api_key_scope_insufficient', `This API key lacks the scope ${scope}.`);
  }
  // Not awaited: noting the last use must neither delay nor fail a request.
  stores.keys.touch(key, now()).catch((err) => log.warn({ err }, 'last use not noted'));
  return key;
}

function bearer(ctx: Context): string {
  const header = ctx.get('Authorization');
  if (header === '') {
    const message = 'Send your API key as Authorization: Bearer <API_KEY>.';
    throw new Refusal('api_key_missing', message);
  }
  const key = /^Bearer +(\S+)$/i.exec(header)?.[1];
  if (key === undefined || key.length > KEY_LENGTH_MAX) {
    const message = 'The Authorization header is not of the form Bearer <API_KEY>.';
    throw new Refusal('api_key_invalid', message);
  }
  return key;
}
