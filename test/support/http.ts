import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { assertContract } from './contract';

export interface Answer {
  status: number;
  headers: Headers;
  text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests read into whatever came
  body: any;
}

export interface Call {
  key?: string;
  body?: unknown;
  /** Sent as it is, instead of `body`. */
  raw?: string | Uint8Array<ArrayBuffer>;
  headers?: Record<string, string>;
  /** Made when not given, for POSTs; null sends none. */
  idempotencyKey?: string | null;
}

/** Time in which a busy machine answers at last. */
const PATIENCE_MS = 180_000;

/**
 * Calls the API; every answer is held against the OpenAPI document. A POST whose key the test does not
 * choose is made as a merchant makes it on a busy day: 503 is asked again, under the same key.
 */
export async function call(
  url: string,
  method: string,
  path: string,
  asked: Call = {},
): Promise<Answer> {
  if (method !== 'POST' || asked.idempotencyKey !== undefined) {
    return await callOnce(url, method, path, asked);
  }
  const insisting = { ...asked, idempotencyKey: randomUUID() };
  const giveUpAt = Date.now() + PATIENCE_MS;
  while (true) {
    const answer = await callOnce(url, method, path, insisting);
    if (answer.status !== 503 || Date.now() > giveUpAt) return answer;
    await sleep(1_000 * Number(answer.headers.get('Retry-After')));
  }
}

async function callOnce(
  url: string,
  method: string,
  path: string,
  { key, body, raw, headers = {}, idempotencyKey = null }: Call,
): Promise<Answer> {
  const sent = raw ?? (body === undefined ? undefined : JSON.stringify(body));
  const all = new Headers(headers);
  if (key !== undefined) all.set('Authorization', `Bearer ${key}`);
  if (sent !== undefined && !all.has('Content-Type')) all.set('Content-Type', 'application/json');
  if (idempotencyKey !== null) all.set('Idempotency-Key', idempotencyKey);
  const init: RequestInit = { method, redirect: 'manual', headers: all };
  const response = await fetch(
    `${url}${path}`,
    sent === undefined ? init : { ...init, body: sent },
  );
  const text = await response.text();
  const answer = { status: response.status, headers: response.headers, text, body: parsed(text) };
  await assertContract(url, method, path, answer);
  return answer;
}

function parsed(text: string): unknown {
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

/** A payment whose money has moved, as the API shows it. */
export async function settledPayment(
  { url }: { url: string },
  key: string,
  changes: Record<string, unknown> = {},
): Promise<Answer['body']> {
  const created = await call(url, 'POST', '/v1/payments', { key, body: idealPayment(changes) });
  const path = `/v1/payments/${created.body.id}`;
  // On a busy machine the create may be answered before the bank has.
  await eventually('a payment at the bank', async () => {
    return (await call(url, 'GET', path, { key })).body.status !== 'created';
  });
  const simulate = `/v1/sandbox${path.slice(3)}/simulate`;
  const { body } = await call(url, 'POST', simulate, { key, body: { event: 'settled' } });
  if (body.status !== 'settled') throw new Error(`Not settled: ${created.text}`);
  return body;
}

/** Looks again until `look` gives something; bounded, so that what never comes fails in words. */
export async function eventually<T>(
  what: string,
  look: () => Promise<T | undefined | null | false>,
  timeoutMs = 90_000,
): Promise<T> {
  const giveUpAt = Date.now() + timeoutMs;
  while (Date.now() < giveUpAt) {
    const found = await look();
    if (found) return found;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  throw new Error(`Waited ${timeoutMs} ms in vain for: ${what}`);
}
