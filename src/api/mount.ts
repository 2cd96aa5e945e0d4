import type Router from '@koa/router';
import type { Context } from 'koa';
import type { z } from 'zod';
import { Refusal } from '../domain/errors';
import type { Endpoint } from '../domain/wire/endpoint';
import type { JsonValue } from '../json';
import { stringifyJson } from '../json-write';
import type { KeyDocument } from '../store/keys';
import { authenticate, checkAddress, checkFrozen, checkScope, noteUse } from './authenticate';
import { readBody } from './body';
import { type ApiDeps, requestIdOf } from './context';
import { idempotencyKeyOf } from './idempotency';
import { type CreateHandlers, makeOnce, type Parsed } from './make-once';
import { createFailureLimit, type RateLimits } from './rate-limit';
import { createShedding } from './shed';
import { validate } from './validate';

/** Parsed request of an authenticated caller. */
export interface Call<E extends Endpoint> {
  key: KeyDocument;
  requestId: string;
  params: Parsed<E['params']>;
  query: Parsed<E['query']>;
  body: Parsed<E['body']>;
}

export type Mount = ReturnType<typeof createMount>;

/** Puts endpoints on the router; the definition is the row of checks that each request passes. */
export function createMount(router: Router, deps: ApiDeps, limits: RateLimits) {
  const guarded = createFailureLimit();
  const shed = createShedding(deps.config.CREATES_AT_ONCE);
  /** Authenticates, then limits, so that a key counts also where it lacks the scope. */
  const admit = async (ctx: Context, endpoint: Endpoint): Promise<KeyDocument> => {
    const { method, scope, creates, crypto } = endpoint;
    const key = await guarded(ctx, () => authenticate(deps, ctx));
    ctx.state['key'] = key;
    await limits.request(ctx, key);
    checkAddress(ctx, key);
    checkScope(deps, ctx, { key, scope });
    if (method !== 'get') await checkFrozen(deps, key);
    noteUse(deps, key);
    if (crypto === true) await assertCrypto(deps, key);
    if (creates === true) await limits.create(ctx, key);
    return key;
  };

  return {
    /** Reads and acts: authenticate → limit → validate → handler. */
    endpoint<E extends Endpoint>(endpoint: E, handler: (call: Call<E>) => Promise<object>): void {
      router[endpoint.method](koaPath(endpoint.path), async (ctx: Context) => {
        const key = await admit(ctx, endpoint);
        const body = endpoint.body ? await bodyOf(ctx, endpoint) : undefined;
        const answer = await handler({
          key,
          requestId: requestIdOf(ctx),
          params: parse<E['params']>(endpoint.params, paramsOf(ctx)),
          query: parse<E['query']>(endpoint.query, ctx.query),
          body: parse<E['body']>(endpoint.body, body?.value),
        });
        send(ctx, endpoint.success.status, stringifyJson(answer));
      });
    },

    /** Creates: authenticate → limit → shed → idempotent → validate → accept → create. */
    create<E extends Endpoint>(endpoint: E, handlers: CreateHandlers<E>): void {
      router.post(koaPath(endpoint.path), async (ctx: Context) => {
        const key = await admit(ctx, endpoint);
        const { account_id, livemode } = key;
        const { operation } = endpoint;
        const claimKey = { account_id, livemode, operation, key: idempotencyKeyOf(ctx) };
        const { value, canonical } = await bodyOf(ctx, endpoint);
        const requestId = requestIdOf(ctx);
        const request = {
          claimKey,
          canonical,
          requestId,
          handlers,
          body: () => parse<E['body']>(endpoint.body, value),
          status: endpoint.success.status,
        };
        const made = await shed(livemode, () => makeOnce(deps, request));
        if (made.isReplayed) ctx.set('Idempotent-Replayed', 'true');
        send(ctx, made.status, made.body);
      });
    },
  };
}

/** @throws Refusal 403 unless crypto is enabled on the account */
async function assertCrypto({ stores }: ApiDeps, { account_id }: KeyDocument): Promise<void> {
  const account = await stores.accounts.known(account_id);
  if (account?.crypto === true) return;
  throw new Refusal('crypto_not_enabled', 'Crypto is not enabled on this account.');
}

function send(ctx: Context, status: number, json: string): void {
  ctx.status = status;
  ctx.type = 'application/json; charset=utf-8';
  ctx.body = json;
}

function koaPath(path: string): string {
  return path.replace(/\{(\w+)\}/g, ':$1');
}

function paramsOf(ctx: Context): unknown {
  return 'params' in ctx ? { ...Object(ctx.params) } : {};
}

async function bodyOf(ctx: Context, endpoint: Endpoint) {
  const mayBeEmpty = endpoint.creates !== true;
  const parsed = await readBody(ctx, { raw: endpoint.raw ?? [], mayBeEmpty });
  if (isObject(parsed.value)) return parsed;
  throw new Refusal('invalid_request', 'The body must be a JSON object.');
}

function isObject(value: JsonValue): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Parses a part of the request by its schema; undefined where the endpoint has none. */
function parse<T extends z.ZodType | undefined>(schema: T, value: unknown): Parsed<T>;
function parse(schema: z.ZodType | undefined, value: unknown): unknown {
  return schema === undefined ? undefined : validate(schema, value);
}
