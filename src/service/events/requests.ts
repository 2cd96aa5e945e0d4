import { randomInt } from 'node:crypto';
import { Counter, type Registry } from 'prom-client';
import { z } from 'zod';
import {
  isJsonObject,
  type JsonValue,
  NumberLiteral,
  RawJson,
  stringifyJson,
} from '../../base/json';
import type { Logger } from '../../base/log';
import { describeMetric } from '../../base/metrics';
import { buildPosition, TIES } from '../../domain/cursor';
import { ErrorBody } from '../../domain/errors';
import { getOutcome, REQUEST_OUTCOMES } from '../../domain/events/event';
import { IDENTIFIER, LOGGED } from '../../domain/logged';
import { toLowerId } from '../../domain/shape';
import type { Endpoint } from '../../domain/wire/endpoint';
import type { Stores } from '../../store';
import type { RequestDocument } from '../../store/requests';
import type { Owner, ServiceDeps } from '../access';
import { listPage, type Page, type PageQuery } from '../money/read';
import { type ListQuery, readPage, singleRow } from '../paging';

export type { RequestDocument } from '../../store/requests';

type ListDeps = Pick<ServiceDeps, 'stores' | 'now'>;

/** @see docs/api.md#requests */
export const REQUEST_DAYS = 7;
const DAY_MS = 86_400_000;

/** Newest first. */
export function listRequests(
  deps: ListDeps,
  caller: Owner,
  query: PageQuery,
): Promise<Page<RequestDocument>> {
  return listPage(deps.stores.requests, caller, query, { since: getStart(deps) });
}

export async function searchRequests(deps: ListDeps, owner: Owner, query: ListQuery) {
  const { search, status } = query;
  if (search !== '') return singleRow(await findRequest(deps, owner, toLowerId(search)));
  const outcome = REQUEST_OUTCOMES.find((one) => one === status);
  const filter = { ...owner, outcome, since: getStart(deps) };
  return await readPage(query, (page) => deps.stores.requests.list({ ...filter, ...page }));
}

export async function findRequest(
  deps: ListDeps,
  { account_id, livemode }: Owner,
  id: string,
): Promise<RequestDocument | null> {
  const request = await deps.stores.requests.find(id, account_id, livemode);
  return request !== null && request.position >= getStart(deps) ? request : null;
}

/** The database deletes older rows, but not at once. */
function getStart({ now }: Pick<ListDeps, 'now'>): string {
  return buildPosition(now().getTime() - REQUEST_DAYS * DAY_MS, 0);
}

/** @see docs/api.md#requests */
export function presentRequest(request: RequestDocument) {
  const { _id, method, path, status, code, idempotency_key, key_id, duration_ms } = request;
  return {
    request_id: _id,
    object: 'request',
    ...{ method, path, status, code, idempotency_key, key_id, duration_ms },
    created_at: request.created_at,
    request_body: request.request_body === null ? null : new RawJson(request.request_body),
    response_body: request.response_body === null ? null : new RawJson(request.response_body),
  };
}

type Recorded = 'account_id' | 'livemode' | 'method' | 'path' | 'status' | 'code' | 'key_id';

interface AnsweredCall extends Pick<RequestDocument, Recorded | 'duration_ms'> {
  request_id: string;
  at: Date;
  /** Called after the response. */
  readExchange: () => Exchange;
}

export interface RequestRecorder {
  /** Returns at once. */
  record(call: AnsweredCall): void;
  /** Stores what is left, unless the database is unavailable. */
  close(): Promise<void>;
}

interface RecorderDeps {
  stores: { requests: Pick<Stores['requests'], 'insertAll'> };
  log: Pick<Logger, 'warn'>;
  registry?: Registry;
}

/** A kill loses the calls of this time, and a batch that is being written. */
const FLUSH_MS = 400;
const BATCH_MAX = 500;
/** About 10 MiB, in an outage of the database too. */
const WAITING_MAX = 2_000;
/** Refusals of one account with one code, per minute. */
const EQUAL_MAX = 100;
const MINUTE_MS = 60_000;
/** Limits of one account and environment, per day and process: it must not fill the database. */
const ROWS_MAX = 50_000;
const BYTES_MAX = 64 * 1_024 * 1_024;
const CLOSE_MS = 3_000;

/**
 * Stores calls in the background, in batches: no request waits for it.
 * @see docs/operations.md#personal-data
 */
export function createRequestRecorder({ stores, log, registry }: RecorderDeps): RequestRecorder {
  const dropped = new Counter({
    ...describeMetric('payments_requests_dropped_total'),
    registers: registry === undefined ? [] : [registry],
  });
  let waiting: RequestDocument[] = [];
  let redacting = 0;
  let writing: Promise<void> | undefined;
  let isAway = false;
  const refusals = createTally(MINUTE_MS);
  const rows = createTally(DAY_MS);
  const bytes = createTally(DAY_MS);
  let tie = randomInt(TIES);

  const add = (call: AnsweredCall) => {
    redacting -= 1;
    try {
      tie = (tie + 1) % TIES;
      const { request_id, at, account_id, livemode, method, path, status, code } = call;
      const { request_body, response_body, idempotency_key } = redactExchange(call.readExchange());
      waiting.push({
        _id: request_id,
        ...{ account_id, livemode, position: buildPosition(at.getTime(), tie) },
        ...{ method, path, status, outcome: getOutcome(status), code, idempotency_key },
        key_id: call.key_id,
        duration_ms: call.duration_ms,
        created_at: at.toISOString(),
        ...{ request_body, response_body },
        expires_at: new Date(at.getTime() + REQUEST_DAYS * DAY_MS),
      });
      const length = (request_body ?? '').length + (response_body ?? '').length;
      bytes.add(nameOwner(call), at, length);
    } catch (err) {
      dropped.inc();
      log.warn({ err, request_id: call.request_id }, 'request not recorded');
    }
  };

  const writeAll = async () => {
    while (waiting.length > 0) {
      const batch = waiting.slice(0, BATCH_MAX);
      try {
        await stores.requests.insertAll(batch);
      } catch (err) {
        // They wait for the next flush; above the limit, new ones are dropped.
        if (!isAway) log.warn({ err }, 'requests not recorded yet');
        isAway = true;
        return;
      }
      isAway = false;
      waiting = waiting.slice(batch.length);
    }
  };

  const flush = (): Promise<void> => {
    writing ??= writeAll().finally(() => {
      writing = undefined;
    });
    return writing;
  };

  const isOneTooMany = (call: AnsweredCall): boolean => {
    const { at, status, code } = call;
    const owner = nameOwner(call);
    const isRefused = getOutcome(status) === 'refused';
    if (isRefused && refusals.add(`${owner}:${code}`, at) > EQUAL_MAX) return true;
    return bytes.add(owner, at, 0) >= BYTES_MAX || rows.add(owner, at) > ROWS_MAX;
  };

  const timer = setInterval(() => void flush(), FLUSH_MS);
  timer.unref();
  return {
    record: (call) => {
      if (isOneTooMany(call) || waiting.length + redacting >= WAITING_MAX) {
        dropped.inc();
        return;
      }
      redacting += 1;
      // After the response has been sent.
      setImmediate(add, call);
    },
    close: async () => {
      clearInterval(timer);
      // After those that are being redacted.
      await new Promise(setImmediate);
      const late = new Promise((resolve) => setTimeout(resolve, CLOSE_MS).unref());
      // A running flush may have begun before the last call.
      await Promise.race([flush().then(flush), late]);
      dropped.inc(waiting.length);
    },
  };
}

const nameOwner = ({ account_id, livemode }: AnsweredCall) => `${account_id}:${livemode}`;

/** Counts by name, from 0 again in each period. */
function createTally(periodMs: number) {
  const counts = new Map<string, number>();
  let current = 0;
  return {
    /** @returns the count with this one */
    add: (name: string, at: Date, count = 1): number => {
      const period = Math.floor(at.getTime() / periodMs);
      if (period > current) counts.clear();
      current = Math.max(current, period);
      const sum = (counts.get(name) ?? 0) + count;
      counts.set(name, sum);
      return sum;
    },
  };
}

const REDACTED = '[redacted]';
const CUT = '[cut]';
/** Items of a list; the rest is not stored. */
const ITEMS_MAX = 10;

export interface SentBody {
  bytes: number;
  /** Undefined where it is no JSON. */
  value?: JsonValue;
}

interface Exchange {
  endpoint: Pick<Endpoint, 'body' | 'params' | 'query' | 'success'>;
  params: { [name: string]: JsonValue };
  query: { [name: string]: JsonValue };
  /** Undefined where it was not read. */
  request: SentBody | undefined;
  status: number;
  /** Parsed; undefined when there is none. */
  response: JsonValue | undefined;
  idempotencyKey: string | undefined;
}

interface RedactedExchange {
  /** JSON; null where there is no body. */
  request_body: string | null;
  response_body: string | null;
  idempotency_key: string | null;
}

/**
 * Shows the values that the schemas of the endpoint mark as logged. A message of the service is
 * redacted where it quotes any other.
 * @see docs/api.md#requests
 */
export function redactExchange(exchange: Exchange): RedactedExchange {
  const { endpoint, params, query, request, status, response, idempotencyKey } = exchange;
  const hidden = new Set<string>();
  show(endpoint.params, params, hidden);
  show(endpoint.query, query, hidden);
  let sent: string | null = null;
  if (request !== undefined && request.bytes > 0) {
    const { bytes, value } = request;
    sent = isJsonObject(value)
      ? stringifyJson(show(endpoint.body, value, hidden))
      : JSON.stringify(`${REDACTED} ${bytes} bytes that are no JSON object`);
  }
  const isRead = request === undefined || request.bytes === 0 || request.value !== undefined;
  const schema = status < 400 ? endpoint.success.schema : ErrorBody;
  const answer = response && show(schema, response, hidden, isRead);
  const key = idempotencyKey ?? null;
  return {
    request_body: sent,
    response_body: answer === undefined ? null : stringifyJson(answer),
    idempotency_key: key === null || IDENTIFIER.shows(key) ? key : REDACTED,
  };
}

/** @param hasAll whether `hidden` has all that a message could quote */
function show(
  schema: z.core.$ZodType | undefined,
  value: JsonValue,
  hidden: Set<string>,
  hasAll = true,
): JsonValue {
  if (value === null) return null;
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable) {
    return show(schema.unwrap(), value, hidden, hasAll);
  }
  if (schema instanceof z.ZodArray && Array.isArray(value)) {
    const element: z.core.$ZodType = schema._zod.def.element;
    const items = value.map((item) => show(element, item, hidden, hasAll));
    return items.length > ITEMS_MAX ? [...items.slice(0, ITEMS_MAX), CUT] : items;
  }
  if (schema instanceof z.ZodObject && isJsonObject(value)) {
    const fields = Object.entries(value).map(([name, item]) => {
      const field = Object.hasOwn(schema.shape, name) ? schema.shape[name] : undefined;
      if (field === undefined) hide(name, hidden);
      return [field === undefined ? REDACTED : name, show(field, item, hidden, hasAll)] as const;
    });
    return Object.fromEntries(fields);
  }
  if (isLogged(schema, value, hasAll ? hidden : undefined)) return value;
  collectTexts(value, hidden);
  return REDACTED;
}

/** Digits of the largest amount: a card has more. */
const AMOUNT_DIGITS = 11;
const CLOSED = [z.ZodBoolean, z.ZodEnum, z.ZodLiteral, z.ZodUUID, z.ZodISODateTime];

function isLogged(
  schema: z.core.$ZodType | undefined,
  value: JsonValue,
  hidden: ReadonlySet<string> | undefined,
): boolean {
  if (schema === undefined) return false;
  if (schema instanceof z.ZodNumber) {
    // As it was sent, since 10.0 is refused.
    const number = value instanceof NumberLiteral ? value.text : value;
    const isNumber = typeof value === 'number' || value instanceof NumberLiteral;
    return isNumber && String(number).replace(/\D/g, '').length <= AMOUNT_DIGITS;
  }
  const entry = LOGGED.get(schema);
  if (entry === undefined && !CLOSED.some((kind) => schema instanceof kind)) return false;
  if (!z.safeParse(schema, value).success) return false;
  if (entry === undefined) return true;
  const text = String(value);
  if (entry.mayQuote) {
    if (hidden === undefined || hidden.size > HIDDEN_MAX) return false;
    const lower = text.toLowerCase();
    if ([...hidden].some((start) => lower.includes(start))) return false;
  }
  return entry.shows(text);
}

function collectTexts(value: JsonValue, hidden: Set<string>): void {
  if (typeof value === 'string' || typeof value === 'number') hide(String(value), hidden);
  else if (value instanceof NumberLiteral) hide(value.text, hidden);
  else if (Array.isArray(value)) for (const item of value) collectTexts(item, hidden);
  else if (isJsonObject(value)) {
    for (const [name, item] of Object.entries(value)) {
      hide(name, hidden);
      collectTexts(item, hidden);
    }
  }
}

/** Above it, no message is shown: what each could quote is not looked for. */
const HIDDEN_MAX = 100;
const HIDDEN_LENGTH_MIN = 3;
/** A message may cut what it quotes. */
const QUOTED_LENGTH = 24;

function hide(text: string, hidden: Set<string>): void {
  if (hidden.size > HIDDEN_MAX) return;
  const lower = text.trim().slice(0, QUOTED_LENGTH).toLowerCase();
  const start = lower.slice(0, QUOTED_LENGTH).trim();
  if (start.length >= HIDDEN_LENGTH_MIN) hidden.add(start);
}

/** Fills `/v1/payments/:id`, but for parameters that are no ids. */
export function redactPath(route: string, params: Readonly<Record<string, string>>): string {
  return route.replaceAll(/:(\w+)/g, (_, name: string) => {
    const segment = params[name] ?? '';
    return IDENTIFIER.shows(segment) ? segment : REDACTED;
  });
}
