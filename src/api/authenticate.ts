import type { Context } from 'koa';
import type { Scope } from '../domain/api-key';
import { Refusal } from '../domain/errors';
import { networksOf } from '../networks';
import { hashKey, type KeyDocument, type KeyOwner } from '../store/keys';
import { addressOf } from './address';
import { type ApiDeps, requestIdOf } from './context';

/** Shape of every key that was made; no other is looked up. @see docs/decisions.md#keys */
const KEY_SHAPE = /^sk_(sandbox|live)_[\w-]{43}$/;

/**
 * Finds the key of a request; it decides account, environment and scopes.
 * @throws Refusal 401 `api_key_missing`, `api_key_invalid`, `api_key_revoked`, `api_key_expired`
 * @see docs/api.md#base-url-environments-keys
 */
export async function authenticate({ stores, now }: ApiDeps, ctx: Context): Promise<KeyDocument> {
  const text = bearer(ctx);
  const key = KEY_SHAPE.test(text) ? await stores.keys.byHash(hashKey(text)) : null;
  if (key === null) throw new Refusal('api_key_invalid', 'This API key is not known.');
  if (key.revoked_at !== null) {
    throw new Refusal('api_key_revoked', 'This API key has been revoked.');
  }
  if (key.expires_at !== undefined && key.expires_at <= now().toISOString()) {
    throw new Refusal('api_key_expired', `This API key has expired at ${key.expires_at}.`);
  }
  return key;
}

/** Notes the last use of a key; not awaited, since that must neither delay nor fail a request. */
export function noteUse({ stores, now, log }: ApiDeps, key: KeyDocument): void {
  stores.keys.touch(key, now()).catch((err) => log.warn({ err }, 'last use not noted'));
}

/** @throws Refusal 403 `api_key_address_refused` when the key is not for the caller's network */
export function checkAddress(ctx: Context, { allowed_cidrs }: KeyDocument): void {
  if (allowed_cidrs === undefined || networksOf(allowed_cidrs)(addressOf(ctx))) return;
  const message = `This API key may not be used from ${addressOf(ctx)}.`;
  throw new Refusal('api_key_address_refused', message);
}

/**
 * Refuses what a frozen account asks for; what it has under way goes on.
 * @throws Refusal 403 `account_frozen`
 * @see docs/operators.md#freeze-an-account
 */
export async function checkFrozen(
  { stores }: Pick<ApiDeps, 'stores'>,
  { account_id }: KeyOwner,
): Promise<void> {
  const account = await stores.accounts.known(account_id);
  if (!account?.frozen) return;
  throw new Refusal('account_frozen', 'This account is frozen: it can only read. Ask us why.');
}

/** @throws Refusal 403 `api_key_scope_insufficient`, which is logged: the key may be a stolen one */
export function checkScope(
  { log }: Pick<ApiDeps, 'log'>,
  ctx: Context,
  { key, scope }: { key: KeyDocument; scope: Scope | null },
): void {
  if (scope === null || key.scopes.includes(scope)) return;
  const code = 'api_key_scope_insufficient';
  const { _id: key_id, account_id, livemode } = key;
  const request_id = requestIdOf(ctx);
  log.info({ request_id, key_id, account_id, livemode, code }, 'key lacks the scope');
  throw new Refusal(code, `This API key lacks the scope ${scope}.`);
}

function bearer(ctx: Context): string {
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
