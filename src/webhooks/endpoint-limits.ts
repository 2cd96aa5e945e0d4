import { isAcknowledged, type PostResult } from './post-result';

/**
 * Shares of the slots, for one endpoint and for all of the same health. A hanging endpoint uses
 * few, so that some are always free for the endpoints that respond.
 */
const SHARES = {
  /** Its last response was a 2xx within `GOOD_WITHIN_MS`. */
  good: { each: 1 / 4, all: 1 },
  unproven: { each: 1 / 20, all: 1 / 2 },
  hanging: { each: 1 / 100, all: 1 / 4 },
} as const;

type Health = keyof typeof SHARES;

/** Conditions for a first attempt inside a workflow task, which must be short. */
const PROMPT = { tookMs: 1_000, ageMs: 5 * 60_000, each: 5 } as const;
const HANGING_AFTER = 5;
const GOOD_WITHIN_MS = 3_000;
/** A failure after this time counts as a timeout. */
const HUNG_MS = 3_000;
/** Estimates the duration of an unanswered attempt by its age, up to the deadline. */
const AGE_FACTOR = 10;
const DEADLINE_MS = 10_000;
const WAIT_MS_MIN = 500;
const WAIT_MS_MAX = 60_000;
const ENDPOINTS_MAX = 10_000;

interface Endpoint {
  /** The oldest first. */
  inFlight: Set<{ beganAt: number }>;
  consecutiveTimeouts: number;
  isGood: boolean;
  /** Undefined unless the last response was good and prompt. */
  promptAt: number | undefined;
  /** Attempts for which a workflow task waits. */
  prompt: number;
  averageMs: number;
  /** When the last reserved slot becomes free. */
  reservedUntil: number;
}

export type Admission =
  | { admitted: true; leave: (result?: PostResult) => void }
  | { admitted: false; waitMs: number };

export interface EndpointLimits {
  /** Admits an attempt, which must call `leave` with its result; otherwise returns the wait. */
  admit(owner: string): Admission;
  /** Admits an attempt for which a workflow task waits, if a prompt response is likely. */
  admitPrompt(owner: string): Extract<Admission, { admitted: true }> | null;
}

interface LimitsOptions {
  slots: number;
  /** Slots for attempts for which workflow tasks wait. */
  promptSlots?: number;
  now?: () => number;
  /** From 0 to 1. */
  random?: () => number;
}

/**
 * Limits the attempts in flight for each endpoint, in one process. An attempt beyond the limit uses
 * no slot while it waits.
 * @see docs/operations.md#scaling
 */
export function createEndpointLimits(options: LimitsOptions): EndpointLimits {
  const { slots, promptSlots = 0, now = () => performance.now(), random = Math.random } = options;
  const endpoints = new Map<string, Endpoint>();
  const slotsInUse: Record<Health, number> = { good: 0, unproven: 0, hanging: 0 };
  let promptSlotsInUse = 0;
  const share = (part: number) => Math.max(1, Math.floor(slots * part));
  const getEndpoint = (owner: string): Endpoint => {
    const endpoint = endpoints.get(owner) ?? newEndpoint();
    // Eviction starts at the beginning.
    endpoints.delete(owner);
    endpoints.set(owner, endpoint);
    evictIdle(endpoints);
    return endpoint;
  };
  const limits: EndpointLimits = {
    admit(owner) {
      const endpoint = getEndpoint(owner);
      const health = getHealth(endpoint);
      const { each, all } = SHARES[health];
      if (endpoint.inFlight.size >= share(each) || slotsInUse[health] >= share(all)) {
        return { admitted: false, waitMs: reserveSlot(endpoint, share(each), now(), random()) };
      }
      const attempt = { beganAt: now() };
      endpoint.inFlight.add(attempt);
      slotsInUse[health] += 1;
      const leave = (result?: PostResult) => {
        endpoint.inFlight.delete(attempt);
        slotsInUse[health] -= 1;
        if (result !== undefined) recordResult(endpoint, result, now());
      };
      return { admitted: true, leave };
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
      return { admitted: true, leave };
    },
  };
  return limits;
}

function newEndpoint(): Endpoint {
  return {
    inFlight: new Set(),
    consecutiveTimeouts: 0,
    isGood: false,
    promptAt: undefined,
    prompt: 0,
    averageMs: 1_000,
    reservedUntil: 0,
  };
}

function getHealth({ consecutiveTimeouts, isGood }: Endpoint): Health {
  if (consecutiveTimeouts >= HANGING_AFTER) return 'hanging';
  return isGood ? 'good' : 'unproven';
}

function recordResult(endpoint: Endpoint, result: PostResult, now: number): void {
  const { durationMs } = result;
  const isAnswer = result.outcome === 'response';
  const oldHealth = getHealth(endpoint);
  endpoint.isGood = isAcknowledged(result) && durationMs < GOOD_WITHIN_MS;
  endpoint.promptAt = endpoint.isGood && durationMs < PROMPT.tookMs ? now : undefined;
  if (!isAnswer && durationMs >= HUNG_MS) endpoint.consecutiveTimeouts += 1;
  // A failed name lookup may be cached, so it does not reset the count.
  else if (isAnswer || result.kind !== 'dns') endpoint.consecutiveTimeouts = 0;
  endpoint.averageMs = (3 * endpoint.averageMs + durationMs) / 4;
  if (oldHealth !== 'good' && endpoint.isGood) endpoint.reservedUntil = now;
}

/** Reserves the next slot after the waiting attempts; beyond a minute the wait is random. */
function reserveSlot(endpoint: Endpoint, limit: number, now: number, random: number): number {
  const slotAt = Math.max(endpoint.reservedUntil, now) + estimateMs(endpoint, now) / limit;
  endpoint.reservedUntil = Math.min(slotAt, now + WAIT_MS_MAX);
  const waitMs = slotAt - now > WAIT_MS_MAX ? (WAIT_MS_MAX * (1 + random)) / 2 : slotAt - now;
  return Math.round(Math.max(waitMs, WAIT_MS_MIN));
}

/**
 * Estimates the duration of an attempt. For an unhealthy endpoint, attempts in flight count too: in
 * a burst, most timeouts are still to come.
 */
function estimateMs(endpoint: Endpoint, now: number): number {
  const [oldest] = endpoint.inFlight;
  if (oldest === undefined || getHealth(endpoint) === 'good') return endpoint.averageMs;
  const ageMs = now - oldest.beganAt;
  return Math.max(endpoint.averageMs, Math.min(ageMs * AGE_FACTOR, DEADLINE_MS));
}

function evictIdle(endpoints: Map<string, Endpoint>): void {
  for (const [owner, { inFlight }] of endpoints) {
    if (endpoints.size <= ENDPOINTS_MAX || inFlight.size > 0) return;
    endpoints.delete(owner);
  }
}
