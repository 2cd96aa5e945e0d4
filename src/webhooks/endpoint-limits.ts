import { Counter, type Registry } from 'prom-client';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import type { Logger } from '../base/log';
import { describeMetric } from '../base/metrics';
import { isLoopback, toCustomerNetwork } from '../base/networks';
import { isAcknowledged, type PostResult } from './post-result';
import { toHostAddress } from './url';

/**
 * Shares of the slots of one endpoint, and of all of the same health. Hanging ones get few, so that
 * the others always find one.
 */
const SHARES = {
  /** Last response: 2xx within `GOOD_WITHIN_MS`. */
  good: { each: 1 / 4, all: 1 },
  unproven: { each: 1 / 20, all: 1 / 2 },
  /** Last five attempts hung: one attempt at a time probes it. */
  hanging: { each: 1 / 200, all: 1 / 4 },
} as const;

type Health = keyof typeof SHARES;

/**
 * Conditions for a first attempt inside a workflow task, which must be short: an endpoint that
 * begins to hang holds a fifth of those tasks, for one attempt.
 */
const PROMPT = { tookMs: 1_000, ageMs: 5 * 60_000, each: 20 } as const;
const HANGING_AFTER = 5;
const GOOD_WITHIN_MS = 3_000;
/** A later failure counts as a timeout. */
const HUNG_MS = 3_000;
/** An unanswered attempt is estimated by its age, up to the deadline. */
const AGE_FACTOR = 10;
const DEADLINE_MS = 10_000;
const WAIT_MS_MIN = 500;
/** Longest wait for an endpoint that responds. */
export const WAIT_MS_MAX = 60_000;
/** Pause between probes of a hanging endpoint: longer than an attempt. */
const PROBE_MS = 15_000;
/** Limit for all endpoints that hang: their slots allow five. */
const PROBES_PER_SECOND = 4;
/** Longest wait for a hanging endpoint: 100,000 events then cause four attempts a second. */
const PROBE_WAIT_MS_MAX = 10 * 3_600_000;
/** Pause until one more attempt at once is welcome. */
const GROWTH_MS = 100;
const ENDPOINTS_MAX = 10_000;

interface Endpoint {
  /** Oldest first. */
  inFlight: Set<{ beganAt: number }>;
  consecutiveTimeouts: number;
  /** Time of the last result. */
  endedAt: number;
  isGood: boolean;
  /** Undefined unless the last response was good and prompt. */
  promptAt: number | undefined;
  /** Attempts for which a workflow task waits. */
  prompt: number;
  averageMs: number;
  /** Time at which the last reserved slot becomes free. */
  reservedUntil: number;
  grownAt: number;
}

export type Admission =
  | {
      admitted: true;
      isProbe: boolean;
      leave: (result?: PostResult) => void;
    }
  | { admitted: false; waitMs: number };

export interface EndpointLimits {
  /** Admits an attempt, which must call `leave` with its result, or returns the wait. */
  admit(owner: string): Admission;
  /** Admits an attempt for which a workflow task waits only if a prompt response is likely. */
  admitPrompt(owner: string): Extract<Admission, { admitted: true }> | null;
  /** Whether most slots are free, and the last such attempt came earlier. */
  admitMore(owner: string): boolean;
}

interface LimitsOptions {
  slots: number;
  /** Slots of attempts for which workflow tasks wait. */
  promptSlots?: number;
  now?: () => number;
  /** From 0 to 1. */
  random?: () => number;
}

/**
 * Limits the attempts in flight for each endpoint, in one process. A waiting attempt uses no slot.
 * @see docs/operations.md#scaling
 */
export function createEndpointLimits(options: LimitsOptions): EndpointLimits {
  const { slots, promptSlots = 0, now = () => performance.now(), random = Math.random } = options;
  const endpoints = new Map<string, Endpoint>();
  const slotsInUse: Record<Health, number> = { good: 0, unproven: 0, hanging: 0 };
  /** In the order of their last results, oldest first. */
  const hanging = new Set<Endpoint>();
  let promptSlotsInUse = 0;
  const share = (part: number) => Math.max(1, Math.floor(slots * part));
  const getEndpoint = (owner: string): Endpoint => {
    const endpoint = endpoints.get(owner) ?? {
      inFlight: new Set(),
      consecutiveTimeouts: 0,
      endedAt: 0,
      isGood: false,
      promptAt: undefined,
      prompt: 0,
      averageMs: 1_000,
      reservedUntil: 0,
      grownAt: Number.NEGATIVE_INFINITY,
    };
    // Eviction starts at the beginning.
    endpoints.delete(owner);
    endpoints.set(owner, endpoint);
    for (const [name, idle] of endpoints) {
      if (endpoints.size <= ENDPOINTS_MAX || idle.inFlight.size > 0) break;
      endpoints.delete(name);
      hanging.delete(idle);
    }
    return endpoint;
  };
  const limits: EndpointLimits = {
    admit(owner) {
      const endpoint = getEndpoint(owner);
      const health = getHealth(endpoint);
      const { each, all } = SHARES[health];
      if (endpoint.inFlight.size >= share(each) || slotsInUse[health] >= share(all)) {
        // One that was deleted or disabled must not slow down the probes of others.
        for (const oldest of hanging) {
          if (now() - oldest.endedAt < PROBE_WAIT_MS_MAX) break;
          hanging.delete(oldest);
        }
        // Waiting events cost a hanging endpoint no attempts: the first response to a probe starts all.
        const probeMs = Math.max(PROBE_MS, (hanging.size / PROBES_PER_SECOND) * 1_000);
        const pace =
          health === 'hanging'
            ? { eachMs: probeMs, waitMsMax: PROBE_WAIT_MS_MAX }
            : { eachMs: estimateMs(endpoint, now()) / share(each), waitMsMax: WAIT_MS_MAX };
        const waitMs = reserve(endpoint, { ...pace, now: now(), random: random() });
        return { admitted: false, waitMs };
      }
      const attempt = { beganAt: now() };
      endpoint.inFlight.add(attempt);
      slotsInUse[health] += 1;
      const leave = (result?: PostResult) => {
        endpoint.inFlight.delete(attempt);
        slotsInUse[health] -= 1;
        if (result === undefined) return;
        recordResult(endpoint, result, now());
        hanging.delete(endpoint);
        if (getHealth(endpoint) === 'hanging') hanging.add(endpoint);
      };
      return { admitted: true, isProbe: health === 'hanging', leave };
    },
    admitPrompt(owner) {
      const endpoint = getEndpoint(owner);
      const { promptAt, prompt } = endpoint;
      if (promptAt === undefined || now() - promptAt > PROMPT.ageMs) return null;
      if (prompt >= PROMPT.each || promptSlotsInUse >= promptSlots) return null;
      const admission = limits.admit(owner);
      if (!admission.admitted) return null;
      endpoint.prompt += 1;
      promptSlotsInUse += 1;
      const leave = (result?: PostResult) => {
        endpoint.prompt -= 1;
        promptSlotsInUse -= 1;
        admission.leave(result);
      };
      return { ...admission, leave };
    },
    admitMore(owner) {
      const endpoint = getEndpoint(owner);
      const { inFlight, grownAt } = endpoint;
      if (inFlight.size >= share(SHARES[getHealth(endpoint)].each) / 2) return false;
      if (now() - grownAt < GROWTH_MS) return false;
      endpoint.grownAt = now();
      return true;
    },
  };
  return limits;
}

function getHealth({ consecutiveTimeouts, isGood }: Endpoint): Health {
  if (consecutiveTimeouts >= HANGING_AFTER) return 'hanging';
  return isGood ? 'good' : 'unproven';
}

function recordResult(endpoint: Endpoint, result: PostResult, now: number): void {
  const { durationMs } = result;
  const isAnswer = result.outcome === 'response';
  const oldHealth = getHealth(endpoint);
  endpoint.endedAt = now;
  endpoint.isGood = isAcknowledged(result) && durationMs < GOOD_WITHIN_MS;
  endpoint.promptAt = endpoint.isGood && durationMs < PROMPT.tookMs ? now : undefined;
  if (!isAnswer && durationMs >= HUNG_MS) endpoint.consecutiveTimeouts += 1;
  // A failed name lookup may be cached, so it does not reset the count.
  else if (isAnswer || result.kind !== 'dns') endpoint.consecutiveTimeouts = 0;
  endpoint.averageMs = (3 * endpoint.averageMs + durationMs) / 4;
  const isBetter = oldHealth === 'hanging' ? getHealth(endpoint) !== oldHealth : endpoint.isGood;
  if (oldHealth !== 'good' && isBetter) endpoint.reservedUntil = now;
}

interface Reservation {
  eachMs: number;
  waitMsMax: number;
  now: number;
  random: number;
}

/** @returns ms until the slot after all that are reserved; beyond the longest wait at random */
function reserve(
  endpoint: Pick<Endpoint, 'reservedUntil'>,
  { eachMs, waitMsMax, now, random }: Reservation,
): number {
  const slotAt = Math.max(endpoint.reservedUntil, now) + eachMs;
  endpoint.reservedUntil = Math.min(slotAt, now + waitMsMax);
  const waitMs = slotAt - now > waitMsMax ? (waitMsMax * (1 + random)) / 2 : slotAt - now;
  return Math.round(Math.max(waitMs, WAIT_MS_MIN));
}

/** Counts attempts in flight of an unhealthy endpoint: in a burst, most timeouts are to come. */
function estimateMs(endpoint: Endpoint, now: number): number {
  const [oldest] = endpoint.inFlight;
  if (oldest === undefined || getHealth(endpoint) === 'good') return endpoint.averageMs;
  const ageMs = now - oldest.beganAt;
  return Math.max(endpoint.averageMs, Math.min(ageMs * AGE_FACTOR, DEADLINE_MS));
}

/** Anybody gets a sandbox key. */
const PER_SECOND = { live: 500, sandbox: 50 };
const HOST_WAIT_MS_MAX = 3_600_000;
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
    // A gateway has the IPv4 hosts of all merchants in one network.
    const networks = addresses.map((address) => toCustomerNetwork(toHostAddress(address)));
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
    return reserve(queue, { eachMs, waitMsMax: HOST_WAIT_MS_MAX, now, random: Math.random() });
  };
}
