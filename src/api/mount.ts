import type Router from '@koa/router';
import type { Context } from 'koa';
import type { z } from 'zod';
import type { CreationRequest } from '../domain/creation';
import { Refusal } from '../domain/errors';
import type { Endpoint } from '../domain/wire/endpoint';
import { type JsonValue, stringifyJson } from '../json';
import type { KeyDocument } from '../store/keys';
import { authenticate } from './authenticate';
import { readBody } from './body';
import { type ApiDeps, requestIdOf } from './context';
import { createOnce, idempotencyKeyOf } from './idempotency';
import { createFailureLimit, type RateLimit } from './rate-limit';
import { validate } from './validate';

type Parsed<T> = T extends z.ZodType ? z.output<T> : undefined;

/** A parsed request: whose it is, and what it says. */
export interface Call<E extends Endpoint> {
  key: KeyDocument;
  requestId: string;
  params: Parsed<E['params']>;
  query: Parsed<E['query']>;
  body: Parsed<E['body']>;
}

type CreatingCall<E extends Endpoint> = Omit<Call<E>, 'query'>;

/** How a creating endpoint makes its resource. */
export interface Creator<E extends Endpoint, Request extends CreationRequest> {
  /**
   * Checks what the schema can't. What is sealed for the resource needs its `id`, which the claim
   * will fix. @throws Refusal: nothing is created, no key burnt
   */
  accept(call: CreatingCall<E> & { id: string }): Promise<Request>;
  /** Makes or joins the resource, or only reads it when there is no request; gives the answer. */
  create(
    call: { key: KeyDocument; requestId: string },
    id: string,
    request: Request | null,
  ): Promise<object>;
}

export type Mount = ReturnType<typeof createMount>;

/** Puts endpoints on the router; the definition is the row of checks that each request passes. */
export function createMount(router: Router, deps: ApiDeps, limit: RateLimit) {
  const guarded = createFailureLimit();
  /** Authenticate, then limit. */
  const admit = async (ctx: Context, { scope }: Endpoint): Promise<KeyDocument> => {
    const key = await guarded(ctx, () => authenticate(deps, ctx, scope));
    ctx.state['key'] = key;
    await limit(ctx, key._id);
    return key;
  };

  const send = (ctx: Context, status: number, json: string): void => {
    ctx.status = status;
    ctx.type = 'application/json; charset=utf-8';
    ctx.body = json;
  };

  return {
    /** Reads and acts: authenticate → limit → validate → handler. */
    endpoint<E extends Endpoint>(endpoint: E, handler: (call: Call<E>) => Promise<object>): void {
      router[endpoint.method](koaPath(endpoint.path), async (ctx: Context) => {
        const key = await admit(ctx, endpoint);
        const body = endpoint.body ? await bodyOf(ctx, endpoint) : undefined;
        const call = {
          key,
          requestId: requestIdOf(ctx),
          params: parsedOrNone(endpoint.params, paramsOf(ctx)),
          query: parsedOrNone(endpoint.query, endpoint.query ? ctx.query : {}),
          body: parsedOrNone(endpoint.body, body?.value),
        } as Call<E>;
        send(ctx, endpoint.success.status, stringifyJson(await handler(call)));
      });
    },

    /** Creates: authenticate → limit → idempotent → validate → accept → create. */
    creator<E extends Endpoint, Request extends CreationRequest>(
      endpoint: E,
      creator: Creator<E, Request>,
    ): void {
      router.post(koaPath(endpoint.path), async (ctx: Context) => {
        const key = await admit(ctx, endpoint);
        const idempotencyKey = idempotencyKeyOf(ctx);
        const { value, canonical } = await bodyOf(ctx, endpoint);
        const requestId = requestIdOf(ctx);
        const { account_id, livemode } = key;
        const { operation } = endpoint;
        const made = await createOnce({
          idempotency: deps.stores.idempotency,
          claimKey: { account_id, livemode, operation, key: idempotencyKey },
          canonical,
          fingerprintKey: deps.keys.fingerprint,
          requestId,
          now: deps.now,
          accept: (id) => {
            const params = parsedOrNone(endpoint.params, paramsOf(ctx));
            const body = parsedOrNone(endpoint.body, value);
            const call = { key, requestId, params, body } as CreatingCall<E>;
            return creator.accept({ ...call, id });
          },
          create: async (id, request) =>
            stringifyJson(await creator.create({ key, requestId }, id, request as Request | null)),
        });
        if (made.replayed) ctx.set('Idempotent-Replayed', 'true');
        send(ctx, made.status, made.body);
      });
    },
  };
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

function parsedOrNone(schema: z.ZodType | undefined, value: unknown): unknown {
  return schema === undefined ? undefined : validate(schema, value);
}
