import { setTimeout as sleep } from 'node:timers/promises';
import { asyncLocalStorage } from '@temporalio/activity';
import type { z } from 'zod';
import { createGate } from '../../src/base/gate';
import { QUESTION_PRIORITY } from '../../src/domain/task-queues';
import type { Attempt } from '../contract/attempt';

const TIMEOUT_MS = 10_000;
const ANSWER_BYTES_MAX = 1_048_576;

export interface BankRequest {
  /** GET by default. */
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  url: string | URL;
  headers?: Record<string, string>;
  /** Body, sent as JSON. */
  json?: unknown;
  /** Text, sent as it is, by default as JSON: for a signature over its bytes, or another type. */
  text?: string;
  /** 10 seconds by default; a send never passes the deadline of its attempt. */
  timeoutMs?: number;
}

/** Schemas by each status that the bank may answer. */
type Answers = Record<number, z.ZodType>;

type Answer<A extends Answers> = {
  [S in keyof A]: { status: S; body: z.output<A[S]> };
}[keyof A];

/**
 * Calls the bank, within its limits.
 * @throws BankFailure for a status that is not listed, a body that does not fit its schema, and a
 *   bank that does not answer. Its message never quotes request or answer.
 */
export type CallBank = <A extends Answers>(request: BankRequest, answers: A) => Promise<Answer<A>>;

/** Failure of the bank; the service tries again. */
export class BankFailure extends Error {
  override readonly name = 'BankFailure';
  /** Status that was not listed, and its headers, for a bank that says by them what to do. */
  readonly answer: { status: number; headers: Headers } | undefined;

  constructor(message: string, answer?: { status: number; headers: Headers }) {
    super(message);
    this.answer = answer;
  }
}

/** Failure of an answer that its schema refuses, as of each repeat, too. */
export class AnswerMalformed extends BankFailure {}

export interface BankLimits {
  /** Calls that begin in one second, on average; by default 20. */
  perSecond?: number;
  /** Concurrent calls; by default 10. */
  atOnce?: number;
}

interface BankClientDeps {
  limits?: BankLimits | undefined;
  needsTls: boolean;
  count: (outcome: 'answered' | 'failed') => void;
}

/** All calls of the process share its limits. */
export function createBankClient({ limits = {}, needsTls, count }: BankClientDeps) {
  const inOrder = createLimiter(limits);
  return (attempt?: Attempt): CallBank =>
    async (request, answers) => {
      if (needsTls && new URL(request.url).protocol !== 'https:') {
        throw new BankFailure('The address of the bank is not https: nothing is sent.');
      }
      try {
        const call = () => callOnce(request, answers, attempt);
        // An operator waits for the answer to a question.
        const { priorityKey } = asyncLocalStorage.getStore()?.info.priority ?? {};
        const isQuestion = priorityKey === QUESTION_PRIORITY.priorityKey;
        const answer = await inOrder(call, attempt?.assertInTime, isQuestion);
        count('answered');
        return answer;
      } catch (error) {
        count('failed');
        throw error;
      }
    };
}

async function callOnce<A extends Answers>(
  { method = 'GET', url, headers = {}, json, text, timeoutMs = TIMEOUT_MS }: BankRequest,
  answers: A,
  attempt: Attempt | undefined,
): Promise<Answer<A>> {
  const signals = [AbortSignal.timeout(timeoutMs), ...(attempt ? [attempt.signal] : [])];
  const body = json === undefined ? text : JSON.stringify(json);
  const sent = new Headers({ Accept: 'application/json', ...headers });
  if (body !== undefined && !sent.has('Content-Type')) sent.set('Content-Type', 'application/json');
  // An attempt may have ended while it waited for the rate.
  attempt?.assertInTime();
  const answer = await readAnswer(
    fetch(url, {
      ...{ method, redirect: 'error', signal: AbortSignal.any(signals) },
      headers: sent,
      ...(body === undefined ? {} : { body }),
    }),
  );
  const { status } = answer;
  const schema = answers[status];
  if (schema === undefined) throw new BankFailure(`The bank answered ${status}.`, answer);
  const content = parseJson(answer.text);
  const parsed = schema.safeParse(content);
  if (parsed.success) return { status, body: parsed.data } as Answer<A>;
  // A proxy may have answered in place of the bank.
  if (content === undefined) throw new BankFailure(`The bank answered ${status} without JSON.`);
  const fields = parsed.error.issues.map(({ path }) => path.join('.') || 'the body');
  throw new AnswerMalformed(`The bank answered ${status}, but ${fields.join(', ')} does not fit.`);
}

/** @throws BankFailure without the cause, which may quote the request */
async function readAnswer(call: Promise<Response>) {
  try {
    const response = await call;
    const chunks: Uint8Array[] = [];
    let bytes = 0;
    for await (const chunk of response.body ?? []) {
      bytes += chunk.byteLength;
      if (bytes > ANSWER_BYTES_MAX) throw new RangeError('too large');
      chunks.push(chunk);
    }
    const { status, headers } = response;
    return { status, headers, text: Buffer.concat(chunks).toString('utf8') };
  } catch (error) {
    // By name: errors of `fetch` may be of another realm.
    const isNamed = typeof error === 'object' && error !== null && 'name' in error;
    const kind = isNamed ? String(error.name) : typeof error;
    throw new BankFailure(`The bank does not answer (${kind}).`);
  }
}

/** @returns undefined unless the text is JSON */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const PER_SECOND = 20;
const AT_ONCE = 10;

const SLOTS_MAX = 200;
/** Seconds of calls that may wait in this process: far less than an attempt lasts. */
const WAIT_S_MAX = 5;

/**
 * Counts the activities that a process takes at a time. Those beyond the bank's limits wait in
 * Temporal, where no time of an attempt passes.
 */
export function countSlots({ perSecond = PER_SECOND, atOnce = AT_ONCE }: BankLimits): number {
  return Math.max(1, Math.floor(Math.min(SLOTS_MAX, 2 * atOnce, WAIT_S_MAX * perSecond)));
}

/** Concurrent calls that only an operator's question takes, where the bank allows more than one. */
const RESERVED = 1;

/**
 * Limits concurrency and rate; further calls wait in order, urgent ones before all others, which
 * leave a call free for them.
 * @returns runs a call; `assertNeeded` throws where nobody waits for it any more, and it takes no turn
 */
export function createLimiter({ perSecond = PER_SECOND, atOnce = AT_ONCE }: BankLimits) {
  const gate = createGate(atOnce, { reserved: Math.min(RESERVED, atOnce - 1) });
  const inOrder = createGate(1);
  const spacingMs = 1_000 / perSecond;
  let nextAt = 0;
  const waitForRate = async (assertNeeded?: () => void) => {
    assertNeeded?.();
    const now = performance.now();
    const at = Math.max(now, nextAt);
    nextAt = at + spacingMs;
    if (at > now) await sleep(at - now);
  };
  return <T>(work: () => Promise<T>, assertNeeded?: () => void, isUrgent = false): Promise<T> =>
    gate(async () => {
      await inOrder(() => waitForRate(assertNeeded), isUrgent);
      return await work();
    }, isUrgent);
}
