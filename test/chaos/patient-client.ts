import { setTimeout as sleep } from 'node:timers/promises';
import type { Answer } from '../support/http';
import type { RunningStack } from './running-stack';

/** Longer than any request limit of the API. */
const ANSWER_MS_MAX = 15_000;
/** Time that a call may go on failing after a kill: far above what a restart of any part takes. */
const CALL_MS_MAX = 200_000;
const UUID = /[0-9a-f]{8}-[0-9a-f-]{27}/;
const BACKOFF_MS_MIN = 100;
const BACKOFF_MS_MAX = 1_000;

export interface Request {
  method: 'GET' | 'POST';
  path: string;
  body?: unknown;
  idempotencyKey?: string | undefined;
}

export type PatientClient = ReturnType<typeof createPatientClient>;

/**
 * A merchant's client that knows what an error means: the outcome is unknown, ask again. It stops
 * trying on `signal`.
 */
export function createPatientClient(stack: RunningStack, apiKey: string, signal: AbortSignal) {
  /** Requests sent, and those among them that repeat another. */
  const counts = { sent: 0, retries: 0 };
  const outcomes = new Map<string, string>();
  const attempt = async (request: Request): Promise<Answer | undefined> => {
    counts.sent += 1;
    const { answer, outcome } = await send(stack.url, apiKey, request);
    outcomes.set(request.path, outcome);
    return answer;
  };
  /** Repeats `look` with growing waits until it gives something. @throws Error when it gives up */
  const persevere = async <T>(what: string, look: () => Promise<T | undefined>): Promise<T> => {
    const startedAt = Date.now();
    const failsFor = () => Date.now() - Math.max(startedAt, stack.lastKillAt());
    for (let attempt = 0; failsFor() < CALL_MS_MAX; attempt += 1) {
      if (attempt > 0) counts.retries += 1;
      const found = await look();
      if (found !== undefined) return found;
      signal.throwIfAborted();
      await sleep(Math.min(BACKOFF_MS_MIN * 2 ** attempt, BACKOFF_MS_MAX));
    }
    const last = [...outcomes]
      .filter(([path]) => UUID.exec(path)?.some((id) => what.includes(id)))
      .map(([path, outcome]) => `\n${path}: ${outcome}`)
      .join('');
    throw new Error(`${what}: no outcome within ${CALL_MS_MAX / 1_000} s${last}`);
  };
  const insist = (request: Request): Promise<Answer> =>
    persevere(`${request.method} ${request.path} ${request.idempotencyKey ?? ''}`, () =>
      attempt(request),
    );
  return {
    ...{ counts, attempt, persevere },
    get: (path: string) => insist({ method: 'GET', path }),
    post: (path: string, body: unknown, idempotencyKey?: string) =>
      insist({ method: 'POST', path, body, idempotencyKey }),
  };
}

async function send(
  url: string,
  apiKey: string,
  { method, path, body, idempotencyKey }: Request,
): Promise<{ answer?: Answer; outcome: string }> {
  const headers = new Headers({ Authorization: `Bearer ${apiKey}` });
  if (body !== undefined) headers.set('Content-Type', 'application/json');
  if (idempotencyKey !== undefined) headers.set('Idempotency-Key', idempotencyKey);
  try {
    const response = await fetch(`${url}${path}`, {
      ...{ method, headers, signal: AbortSignal.timeout(ANSWER_MS_MAX) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const { status } = response;
    const text = await response.text();
    const outcome = `${status} ${text}`;
    // 408: a stalled machine did not read the request in time, so nothing was done.
    if (status >= 500 || [408, 409, 429].includes(status)) return { outcome };
    return { answer: { status, headers: response.headers, text, body: JSON.parse(text) }, outcome };
  } catch (error) {
    // No answer came in time, or the connection was lost.
    return { outcome: String(error) };
  }
}
