import type Router from '@koa/router';
import type { Context } from 'koa';
import type { z } from 'zod';
import { canonicalize, isJsonObject, stringifyJson } from '../base/json';
import { Refusal } from '../domain/errors';
import type { Endpoint } from '../domain/wire/endpoint';
import { normalizeBody, tryValidate, validate } from '../domain/wire/validate';
import {
  type ApiKey,
  assertCryptoEnabled,
  assertNotFrozen,
  assertValidKey,
  findKey,
  hashKey,
  recordKeyUse,
} from '../service/access';
import type { CreateAnswer, CreateRequest } from '../service/create-once';
import { refuseLiveClock } from '../service/merchants/clock';
import { createInShare } from '../service/shares';
import { checkAddress, checkScope, readBearer, readIdempotencyKey } from './admission';
import { readBody } from './body';
import { type ApiDeps, getAddress, getRequestId } from './context';
import { createFailureLimit, type RateLimits } from './rate-limit';

export type Parsed<T> = T extends z.ZodType ? z.output<T> : undefined;

interface Call<E extends Endpoint> {
  key: ApiKey;
  requestId: string;
  address: string;
  params: Parsed<E['params']>;
  query: Parsed<E['query']>;
  body: Parsed<E['body']>;
}

export type Mount = ReturnType<typeof createMount>;

/** The order of the middleware is the order of the checks. */
export function createMount(router: Router, deps: ApiDeps, limits: RateLimits) {
  const limitFailures = createFailureLimit();
  /** Requests without the scope count towards the limit too. */
  const admit = async (ctx: Context, endpoint: Endpoint): Promise<ApiKey> => {
    const { method, scope, sandboxOnly, creates, work, crypto } = endpoint;
    const secret = readBearer(ctx);
    const key = await limitFailures(ctx, hashKey(secret), async () => {
      const found = await findKey(deps, secret);
      // The log names a revoked or expired key, too.
      ctx.state['key'] = found;
      assertValidKey(deps, found);
      return found;
    });
    await limits.request(ctx, key);
    checkAddress(ctx, key);
    checkScope(deps, ctx, { key, scope });
    // A frozen account gets no other error, whatever its body.
    if (method !== 'get') await assertNotFrozen(deps, key);
    recordKeyUse(deps, key);
    if (sandboxOnly === true) refuseLiveClock(key);
    if (crypto === true) await assertCryptoEnabled(deps, key);
    if (creates === true || work === 'simulation') await limits.create(ctx, key);
    if (work === 'delivery') await limits.delivery(ctx, key);
    return key;
  };

  return {
    endpoint<E extends Endpoint>(endpoint: E, handler: (call: Call<E>) => Promise<object>): void {
      router[endpoint.method](koaPath(endpoint.path), async (ctx: Context) => {
        const key = await admit(ctx, endpoint);
        const body = endpoint.body ? await readObjectBody(ctx, endpoint) : undefined;
        const sent = 'params' in ctx ? { ...Object(ctx.params) } : {};
        const params = parse<E['params']>(endpoint.params, sent);
        const query = parse<E['query']>(endpoint.query, ctx.query);
        const { limit } = Object(query);
        await limits.rows(ctx, key, typeof limit === 'number' ? limit : 0);
        const call = {
          key,
          requestId: getRequestId(ctx),
          address: getAddress(ctx),
          params,
          query,
          body: parse<E['body']>(endpoint.body, body),
        };
        const kind = endpoint.work ?? (endpoint.method === 'get' ? 'read' : 'change');
        const answer = await deps.runInShare({ ...key, kind }, () => handler(call));
        send(ctx, endpoint.success.status, stringifyJson(answer));
      });
    },

    create<E extends Endpoint & { body: z.ZodObject }>(
      endpoint: E,
      act: (
        request: CreateRequest<z.output<E['body']>>,
        call: { key: ApiKey; address: string },
      ) => Promise<CreateAnswer>,
    ): void {
      router.post(koaPath(endpoint.path), async (ctx: Context) => {
        const caller = await admit(ctx, endpoint);
        const idempotencyKey = readIdempotencyKey(ctx);
        const value = await readObjectBody(ctx, endpoint);
        const canonical = canonicalize(value);
        const fields = tryValidate<E['body']>(endpoint.body, value);
        const requestId = getRequestId(ctx);
        const request = { caller, idempotencyKey, canonical, requestId, fields };
        const answer = await createInShare(deps, request, () =>
          act(request, { key: caller, address: getAddress(ctx) }),
        );
        if (answer.isReplayed) ctx.set('Idempotent-Replayed', 'true');
        send(ctx, endpoint.success.status, answer.body);
      });
    },
  };
}

function send(ctx: Context, status: number, json: string): void {
  ctx.status = status;
  ctx.type = 'application/json; charset=utf-8';
  ctx.body = json;
}

export function koaPath(path: string): string {
  return path.replace(/\{(\w+)\}/g, ':$1');
}

async function readObjectBody(ctx: Context, endpoint: Endpoint) {
  const mayBeEmpty = endpoint.creates !== true;
  const { value: sent } = await readBody(ctx, { raw: endpoint.raw ?? [], mayBeEmpty });
  const value = normalizeBody(endpoint.body, sent);
  if (isJsonObject(value)) return value;
  throw new Refusal('invalid_request', 'The body must be a JSON object.');
}

function parse<T extends z.ZodType | undefined>(schema: T, value: unknown): Parsed<T>;
function parse(schema: z.ZodType | undefined, value: unknown): unknown {
  return schema === undefined ? undefined : validate(schema, value);
}
