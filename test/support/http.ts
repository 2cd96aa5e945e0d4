import { randomUUID } from 'node:crypto';
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
  /** Made when not given, for POSTs. */
  idempotencyKey?: string | null;
}

/** One call of the API; every answer is held against the OpenAPI document. */
export async function call(
  url: string,
  method: string,
  path: string,
  { key, body, raw, headers = {}, idempotencyKey }: Call = {},
): Promise<Answer> {
  const sent = raw ?? (body === undefined ? undefined : JSON.stringify(body));
  const all = new Headers(headers);
  if (key !== undefined) all.set('Authorization', `Bearer ${key}`);
  if (sent !== undefined && !all.has('Content-Type')) all.set('Content-Type', 'application/json');
  if (idempotencyKey !== null && (idempotencyKey !== undefined || method === 'POST')) {
    all.set('Idempotency-Key', idempotencyKey ?? randomUUID());
  }
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
  const simulate = `/v1/sandbox/payments/${created.body.id}/simulate`;
  const { body } = await call(url, 'POST', simulate, { key, body: { event: 'settled' } });
  if (body.status !== 'settled') throw new Error(`Not settled: ${created.text}`);
  return body;
}

/** Looks again until `look` gives something; bounded, so that what never comes fails in words. */
export async function eventually<T>(
  what: string,
  look: () => Promise<T | undefined | null | false>,
  timeoutMs = 15_000,
): Promise<T> {
  const giveUpAt = Date.now() + timeoutMs;
  while (Date.now() < giveUpAt) {
    const found = await look();
    if (found) return found;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  throw new Error(`Waited ${timeoutMs} ms in vain for: ${what}`);
}
