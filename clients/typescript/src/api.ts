import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { attempt, type RawResponse } from './attempt';
import { PaymentsError, parseAnswer } from './errors';
import { chooseWait, shouldRetry } from './retry';
import { VERSION } from './version';

export interface ClientOptions {
  /** `sk_sandbox_…` or `sk_live_…`: it selects the account and the environment. */
  apiKey: string;
  /** Where the service runs, such as `https://payments.example.com`. */
  baseUrl: string;
  /** Milliseconds for one attempt. @default 30_000 */
  timeoutMs?: number;
  /** Attempts after the first one. @default 4 */
  retriesMax?: number;
  /** Stands in for the global `fetch`, for a proxy or for tests. */
  fetch?: typeof fetch;
}

export interface CallOptions {
  /** Ends the call, its retries included; the call rejects with the signal's reason. */
  signal?: AbortSignal;
  /** Milliseconds for one attempt. */
  timeoutMs?: number;
  retriesMax?: number;
  /** Called with the successful answer before it is parsed, to read headers or the exact text. */
  onResponse?: (response: RawResponse) => void;
}

export interface CreateOptions extends CallOptions {
  /** Yours, such as an order number. By default a UUID is made for the call and its retries. */
  idempotencyKey?: string;
}

/** Values of a query; undefined ones are left out. */
export type Query = Readonly<Record<string, string | number | undefined>>;

interface Call {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  path: string;
  query?: Query | undefined;
  body?: unknown;
  idempotencyKey?: string;
  /** False for a call that acts again each time it is made. */
  isRepeatable?: boolean;
}

export type Api = ReturnType<typeof createApi>;

const RETRIES_MAX = 4;

/** Calls to one installation with one key. Resources are written over it. */
export function createApi(settings: ClientOptions) {
  if (!settings.apiKey) throw new PaymentsError('An apiKey is needed: sk_sandbox_… or sk_live_….');
  if (!URL.canParse(settings.baseUrl ?? '')) {
    throw new PaymentsError('A baseUrl is needed, such as https://payments.example.com.');
  }
  const call = async <T>(request: Call, options: CallOptions = {}): Promise<T> =>
    parseAnswer<T>(await sendUntilAnswered(settings, request, options));
  return {
    get: <T>(path: string, query?: Query, options?: CallOptions) =>
      call<T>({ method: 'GET', path, query }, options),
    /** Creates a resource: every attempt has the same key and the same bytes. */
    create: <T>(path: string, body: unknown, options: CreateOptions = {}) => {
      const idempotencyKey = options.idempotencyKey ?? randomUUID();
      return call<T>({ method: 'POST', path, body, idempotencyKey }, options);
    },
    post: <T>(path: string, body: unknown, options?: CallOptions) =>
      call<T>({ method: 'POST', path, body }, options),
    /** A call that would act again, so that only a refusal without effect is repeated. */
    postOnce: <T>(path: string, body: unknown, options?: CallOptions) =>
      call<T>({ method: 'POST', path, body, isRepeatable: false }, options),
    patch: <T>(path: string, body: unknown, options?: CallOptions) =>
      call<T>({ method: 'PATCH', path, body }, options),
    delete: <T>(path: string, options?: CallOptions) =>
      call<T>({ method: 'DELETE', path }, options),
  };
}

/** Path with each value encoded. An empty one would name the list instead of a resource. */
export function route(parts: TemplateStringsArray, ...values: string[]): string {
  if (values.some((value) => !value)) throw new PaymentsError('An ID must not be empty.');
  return String.raw({ raw: parts }, ...values.map(encodeURIComponent));
}

async function sendUntilAnswered(
  settings: ClientOptions,
  call: Call,
  options: CallOptions,
): Promise<RawResponse> {
  const request = buildRequest(settings, call);
  const retriesMax = options.retriesMax ?? settings.retriesMax ?? RETRIES_MAX;
  for (let retry = 0; ; retry += 1) {
    const result = await attempt(request, { ...settings, ...omitUndefined(options) });
    if ('response' in result) return result.response;
    const { error, retryAfter } = result;
    if (retry >= retriesMax || !shouldRetry(error, call.isRepeatable ?? true)) throw error;
    const wait = chooseWait(retry, retryAfter, Math.random());
    if (wait === undefined) throw error;
    // An abort rejects with an error of Node's own; the reason is thrown by the next attempt.
    await sleep(wait, undefined, options.signal && { signal: options.signal }).catch(
      () => undefined,
    );
  }
}

function buildRequest(
  settings: ClientOptions,
  { method, path, query, body, idempotencyKey }: Call,
) {
  const url = new URL(`${settings.baseUrl.replace(/\/+$/, '')}${path}`);
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== undefined) url.searchParams.set(name, String(value));
  }
  const headers: Record<string, string> = {
    Authorization: `Bearer ${settings.apiKey}`,
    'User-Agent': `durable-payments-typescript/${VERSION}`,
  };
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  if (idempotencyKey !== undefined) headers['Idempotency-Key'] = idempotencyKey;
  const payload = body === undefined ? {} : { body: JSON.stringify(body) };
  return { url, init: { method, headers, redirect: 'manual', ...payload } as const };
}

/** An option that is left undefined must not hide a setting of the client. */
function omitUndefined(options: CallOptions): CallOptions {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}
