import { Counter, type Registry } from 'prom-client';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import type { Logger } from '../base/log';
import { describeMetric } from '../base/metrics';
import { isLoopback, toCustomerNetwork } from '../base/networks';
import { reserve } from './endpoint-limits';

/** Anybody gets a sandbox key. */
const PER_SECOND = { live: 500, sandbox: 50 };
const WAIT_MS_MAX = 3_600_000;
const LOG_MS = 60_000;
const HOSTS_MAX = 10_000;

export interface Destination {
  host: string;
  /** Those to which a connection may be made. */
  addresses: readonly string[];
  livemode: boolean;
}

/** The attempt was not made, and is not used up: it waits for its host. */
export class HostBusy extends Error {
  override readonly name = 'HostBusy';

  readonly waitMs: number;

  constructor(waitMs: number) {
    super('A host gets only so many attempts.');
    this.waitMs = waitMs;
  }
}

/** @throws HostBusy */
export type AdmitAttempt = (destination: Destination) => Promise<void>;

interface HostLimitsOptions {
  /** For each host and each address. */
  perSecond?: { live: number; sandbox: number };
  registry: Registry;
  log: Pick<Logger, 'warn'>;
}

/**
 * Limits the attempts of all accounts at one host, and at one address under whatever name, in one
 * process: an endpoint need not be its merchant's. This machine has no limit.
 * @see docs/operations.md#scaling
 */
export function createHostLimits({
  perSecond = PER_SECOND,
  registry,
  log,
}: HostLimitsOptions): AdmitAttempt {
  const waits = new Counter({
    ...describeMetric('payments_webhook_attempts_waiting_total'),
    registers: [registry],
  });
  const countLive = createRate(perSecond.live);
  const countSandbox = createRate(perSecond.sandbox);
  let loggedAt = Number.NEGATIVE_INFINITY;
  return async ({ host, addresses, livemode }) => {
    if (addresses.every(isLoopback)) return;
    const networks = addresses.map((address) => toCustomerNetwork(address));
    const names = [...new Set([host.toLowerCase(), ...networks])];
    const count = livemode ? countLive : countSandbox;
    const waitMs = Math.max(...(await Promise.all(names.map(count))));
    if (waitMs === 0) return;
    waits.inc({ livemode: String(livemode) });
    if (performance.now() - loggedAt > LOG_MS) {
      loggedAt = performance.now();
      log.warn({ address: addresses[0], livemode }, 'webhooks to one host wait');
    }
    throw new HostBusy(waitMs);
  };
}

/** @requeues counts an attempt: 0, or ms after all that wait already */
function createRate(perSecond: number): (name: string) => Promise<number> {
  const limiter = new RateLimiterMemory({ points: perSecond, duration: 1 });
  const queues = new Map<string, { reservedUntil: number }>();
  return async (name) => {
    const result = await limiter.consume(name).catch((error: unknown) => {
      if (error instanceof RateLimiterRes) return error;
      throw error;
    });
    if (result.consumedPoints <= perSecond) return 0;
    const queue = queues.get(name) ?? { reservedUntil: 0 };
    queues.delete(name);
    queues.set(name, queue);
    const [oldest] = queues.keys();
    if (queues.size > HOSTS_MAX && oldest !== undefined) queues.delete(oldest);
    const eachMs = 1_000 / perSecond;
    const now = performance.now();
    return reserve(queue, { eachMs, waitMsMax: WAIT_MS_MAX, now, random: Math.random() });
  };
}
