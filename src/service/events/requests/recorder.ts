import { randomInt } from 'node:crypto';
import { Counter, type Registry } from 'prom-client';
import type { Logger } from '../../../base/log';
import { describeMetric } from '../../../base/metrics';
import { buildPosition, TIES } from '../../../domain/cursor';
import { getOutcome } from '../../../domain/request/outcome';
import type { Stores } from '../../../store';
import type { RequestDocument } from '../../../store/requests';
import { REQUEST_DAYS } from './list';
import { type Exchange, redactExchange } from './redact';

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

export interface RecorderDeps {
  stores: { requests: Pick<Stores['requests'], 'insertAll'> };
  log: Pick<Logger, 'warn'>;
  registry?: Registry;
}

/** A kill loses the calls of this time, and a batch that is being written. */
const FLUSH_MS = 400;
const BATCH_MAX = 500;
/** About 10 MiB, in an outage of the database too. */
const WAITING_MAX = 2_000;
/** Calls over a rate limit, per account and flush. */
const RATE_LIMITED_MAX = 5;
const CLOSE_MS = 3_000;
const DAY_MS = 86_400_000;

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
  const rateLimited = new Map<string, number>();
  let tie = randomInt(TIES);

  const add = (call: AnsweredCall) => {
    redacting -= 1;
    try {
      tie = (tie + 1) % TIES;
      waiting.push(buildDocument(call, tie));
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
    rateLimited.clear();
    writing ??= writeAll().finally(() => {
      writing = undefined;
    });
    return writing;
  };

  const isOneTooMany = ({ account_id, code }: AnsweredCall): boolean => {
    if (code !== 'rate_limited') return false;
    const count = (rateLimited.get(account_id) ?? 0) + 1;
    rateLimited.set(account_id, count);
    return count > RATE_LIMITED_MAX;
  };

  const timer = setInterval(() => void flush(), FLUSH_MS);
  timer.unref();
  return {
    record: (call) => {
      if (isOneTooMany(call)) return;
      if (waiting.length + redacting >= WAITING_MAX) {
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

function buildDocument(call: AnsweredCall, tie: number): RequestDocument {
  const { request_id, at, account_id, livemode, method, path, status, code } = call;
  const { request_body, response_body, idempotency_key } = redactExchange(call.readExchange());
  return {
    _id: request_id,
    ...{ account_id, livemode, position: buildPosition(at.getTime(), tie) },
    ...{ method, path, status, outcome: getOutcome(status), code, idempotency_key },
    key_id: call.key_id,
    duration_ms: call.duration_ms,
    created_at: at.toISOString(),
    ...{ request_body, response_body },
    expires_at: new Date(at.getTime() + REQUEST_DAYS * DAY_MS),
  };
}
