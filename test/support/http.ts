import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { omitUndefined } from '../../src/domain/defined';
import { assertContract } from './contract';
import { eventually } from './eventually';

export interface Answer {
  status: number;
  headers: Headers;
  text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests read into whatever came
  body: any;
  /** How often the call was made again; a POST under its key. */
  repeats?: number;
}

/** Whether a first answer is said to be a replay; that of a call made again may rightly be one. */
export function readReplayed({ headers, repeats = 0 }: Answer): string | null {
  return repeats > 0 ? null : headers.get('Idempotent-Replayed');
}

export interface Call {
  key?: string;
  body?: unknown;
  /** Sent as it is, instead of `body`. */
  raw?: string | Uint8Array<ArrayBuffer>;
  headers?: Record<string, string>;
  /** Made when not given, for POSTs; null sends none. */
  idempotencyKey?: string | null;
  /** Asked only once, also where the answer is to come back later. */
  once?: boolean;
}

const PATIENCE_MS = 30_000;
const BUSY_MS = 1_000;

/**
 * Calls the API; every answer is held against the OpenAPI document. A GET or POST is made as a
 * merchant makes it on a busy day: 503, and 409 while the first call is under way, are asked again,
 * of a POST under the same key.
 */
export async function call(
  url: string,
  method: string,
  path: string,
  request: Call = {},
): Promise<Answer> {
  const isPost = method === 'POST';
  const isOnce = request.once === true || !(isPost || method === 'GET');
  if (isOnce) return await callOnce(url, method, path, request);
  const keyedRequest = isPost ? { idempotencyKey: randomUUID(), ...request } : request;
  const giveUpAt = Date.now() + PATIENCE_MS;
  for (let repeats = 0; ; repeats += 1) {
    const began = Date.now();
    const answer = { ...(await callOnce(url, method, path, keyedRequest)), repeats };
    // A read that is refused at once was refused for another reason than a busy machine.
    const isSudden = !isPost && Date.now() - began < BUSY_MS;
    if (isSudden || !shouldRepeat(answer) || Date.now() > giveUpAt) {
      if (!isEarly(path, request, answer)) return answer;
      // As a read shows it once it is at its bank: on a busy machine that is after the create.
      const { text, body } = await waitForBank({ url }, request.key ?? '', answer.body.id);
      return { ...answer, text, body };
    }
    await sleep(1_000 * Number(answer.headers.get('Retry-After')));
  }
}

export type Client = ReturnType<typeof createClient>;

export function createClient(url: string, key: string) {
  return {
    get: (path: string) => call(url, 'GET', path, { key }),
    post: (path: string, body?: unknown, more: Call = {}) =>
      call(url, 'POST', path, { key, body, ...more }),
    send: (method: string, path: string, body?: unknown) => call(url, method, path, { key, body }),
    postRaw: (path: string, raw: Call['raw'], more: Call = {}) =>
      call(url, 'POST', path, { key, ...omitUndefined({ raw }), ...more }),
    delete: (path: string) => call(url, 'DELETE', path, { key }),
    settledPayment: (changes?: Record<string, unknown>) => settledPayment(url, key, changes),
  };
}

/** Whether a payment was answered for before its bank was asked, and no key will show that answer again. */
function isEarly(path: string, { idempotencyKey }: Call, { status, body }: Answer): boolean {
  const isPayment = path === '/v1/payments' && idempotencyKey === undefined;
  return isPayment && status === 201 && body.status === 'created';
}

function shouldRepeat({ status, body }: Answer): boolean {
  return status === 503 || (status === 409 && body.error.code === IN_PROGRESS);
}

const IN_PROGRESS = 'idempotency_request_in_progress';

async function callOnce(
  url: string,
  method: string,
  path: string,
  { key, body, raw, headers = {}, idempotencyKey = null }: Call,
): Promise<Answer> {
  const payload = raw ?? (body === undefined ? undefined : JSON.stringify(body));
  const allHeaders = new Headers(headers);
  if (key !== undefined) allHeaders.set('Authorization', `Bearer ${key}`);
  if (payload !== undefined && !allHeaders.has('Content-Type'))
    allHeaders.set('Content-Type', 'application/json');
  if (idempotencyKey !== null) allHeaders.set('Idempotency-Key', idempotencyKey);
  const init: RequestInit = { method, redirect: 'manual', headers: allHeaders };
  const response = await fetch(`${url}${path}`, { ...init, ...omitUndefined({ body: payload }) });
  const text = await response.text();
  const { status } = response;
  const answer = { status, headers: response.headers, text, body: parseJson(text) };
  await assertContract(url, method, path, answer);
  return answer;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A request that every method-independent rule accepts. */
export function idealPayment(changes: Record<string, unknown> = {}) {
  return {
    method: 'ideal',
    amount: 1_050,
    currency: 'EUR',
    country: 'NL',
    success_url: 'https://shop.example/thanks',
    error_url: 'https://shop.example/sorry',
    reference: 'order-1001',
    ...changes,
  };
}

export async function waitForBank(
  { url }: { url: string },
  key: string,
  id: string,
): Promise<Answer> {
  return await eventually('a payment at the bank', async () => {
    const answer = await call(url, 'GET', `/v1/payments/${id}`, { key });
    return answer.status === 200 && answer.body.status !== 'created' && answer;
  });
}

async function settledPayment(
  url: string,
  key: string,
  changes: Record<string, unknown> = {},
): Promise<Answer['body']> {
  const created = await call(url, 'POST', '/v1/payments', { key, body: idealPayment(changes) });
  if (created.status !== 201) throw new Error(created.text);
  const { id } = created.body;
  const body = { event: 'settled' };
  await call(url, 'POST', `/v1/sandbox/payments/${id}/simulate`, { key, body });
  return await eventually('a payment that is settled', async () => {
    const read = await call(url, 'GET', `/v1/payments/${id}`, { key });
    return read.body.status === 'settled' && read.body;
  });
}
