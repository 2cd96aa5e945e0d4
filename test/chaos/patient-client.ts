import { setTimeout as sleep } from 'node:timers/promises';

/** Longer than any request limit of the API. */
const ANSWER_MS_MAX = 15_000;
/** So long a call may go on failing: far above what a restart of any part takes. */
const CALL_MS_MAX = 200_000;
const BACKOFF_MS_MIN = 100;
const BACKOFF_MS_MAX = 1_000;

export interface Request {
  method: 'GET' | 'POST';
  path: string;
  body?: unknown;
  idempotencyKey?: string;
}

export interface Answer {
  status: number;
  headers: Headers;
  text: string;
}

/** An answer, or why the outcome is unknown: no answer came, or one that says *try again*. */
type Outcome = { known: true; answer: Answer } | { known: false; why: string };

interface CallCounts {
  /** Requests sent, retries included. */
  sent: number;
  /** Calls, not requests, that met at least one error. */
  troubled: number;
  retries: number;
  /** Number of each error. */
  errors: Map<string, number>;
}

export interface PatientClient {
  counts: CallCounts;
  /** Sends one request. */
  attempt(request: Request): Promise<Outcome>;
  /** Sends a request again until its outcome is known. @throws Error after two minutes. */
  insist(request: Request): Promise<Answer>;
  /** Repeats `look` with growing waits until it gives something. @throws as `insist`. */
  persevere<T>(what: string, look: () => Promise<T | undefined>): Promise<T>;
}

/**
 * A merchant's client that knows what an error means: the outcome is unknown, ask again. It stops
 * trying on `signal`.
 */
export function createPatientClient(
  url: string,
  apiKey: string,
  signal: AbortSignal,
): PatientClient {
  const counts: CallCounts = { sent: 0, troubled: 0, retries: 0, errors: new Map() };
  const attempt = async (request: Request): Promise<Outcome> => {
    counts.sent += 1;
    const outcome = await send(url, apiKey, request);
    if (!outcome.known) counts.errors.set(outcome.why, (counts.errors.get(outcome.why) ?? 0) + 1);
    return outcome;
  };
  const persevere: PatientClient['persevere'] = async (what, look) => {
    const giveUpAt = Date.now() + CALL_MS_MAX;
    for (let attempt = 0; Date.now() < giveUpAt; attempt += 1) {
      if (attempt === 1) counts.troubled += 1;
      if (attempt > 0) counts.retries += 1;
      const found = await look();
      if (found !== undefined) return found;
      signal.throwIfAborted();
      await sleep(Math.min(BACKOFF_MS_MIN * 2 ** attempt, BACKOFF_MS_MAX));
    }
    throw new Error(`${what}: no outcome within ${CALL_MS_MAX / 1_000} s`);
  };
  const insist = (request: Request): Promise<Answer> =>
    persevere(`${request.method} ${request.path} ${request.idempotencyKey ?? ''}`, async () => {
      const outcome = await attempt(request);
      return outcome.known ? outcome.answer : undefined;
    });
  return { counts, attempt, insist, persevere };
}

async function send(url: string, apiKey: string, request: Request): Promise<Outcome> {
  const { method, path, body, idempotencyKey } = request;
  const headers = new Headers({ Authorization: `Bearer ${apiKey}` });
  if (body !== undefined) headers.set('Content-Type', 'application/json');
  if (idempotencyKey !== undefined) headers.set('Idempotency-Key', idempotencyKey);
  try {
    const response = await fetch(`${url}${path}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(ANSWER_MS_MAX),
    });
    const { status } = response;
    const text = await response.text();
    // 408: a stalled machine did not read the request in time, so nothing was done.
    if (status >= 500 || status === 408 || status === 409 || status === 429) {
      return { known: false, why: `${status} ${/"code":"(\w+)"/.exec(text)?.[1] ?? ''}`.trim() };
    }
    return { known: true, answer: { status, headers: response.headers, text } };
  } catch (error) {
    const isLate = error instanceof Error && error.name === 'TimeoutError';
    return { known: false, why: isLate ? 'no answer in time' : 'connection lost' };
  }
}
