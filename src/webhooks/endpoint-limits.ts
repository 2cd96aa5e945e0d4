import type { PostResult } from './post-result';

/**
 * Shares of the slots that an endpoint may hold, and all endpoints of that standing together. An
 * endpoint that hangs holds few, and those that answer always find some.
 */
const SHARES = {
  /** Its last answer was a 2xx, and came soon. */
  good: { each: 1 / 4, all: 1 },
  unproven: { each: 1 / 20, all: 1 / 2 },
  /** Its last attempts all hung. */
  hanging: { each: 1 / 100, all: 1 / 4 },
} as const;

type Standing = keyof typeof SHARES;

/** Conditions of a first attempt within a workflow's own task, which must be short. */
const PROMPT = { tookMs: 1_000, ageMs: 5 * 60_000, each: 5 } as const;
const HANGING_AFTER = 5;
const GOOD_WITHIN_MS = 3_000;
/** From here on a failure is one that held its slot. */
const HUNG_MS = 3_000;
/** Times its age that an attempt may take which is not answered yet, up to its deadline. */
const AGE_FACTOR = 10;
const DEADLINE_MS = 10_000;
const WAIT_MS_MIN = 500;
const WAIT_MS_MAX = 60_000;
const ENDPOINTS_MAX = 10_000;

interface Endpoint {
  /** Attempts under way, by when they began, the oldest first. */
  underWay: Set<{ beganAt: number }>;
  /** Attempts one after the other that hung. */
  hung: number;
  isGood: boolean;
  /** When it was last good, and answered promptly; undefined while its last answer was another. */
  promptAt: number | undefined;
  /** Part of those under way that workflow tasks wait for. */
  prompt: number;
  /** Time that an attempt takes lately. */
  tookMs: number;
  /** When the turn of the last one put back is expected. */
  bookedUntil: number;
}

export type Admission =
  | { admitted: true; leave: (result?: PostResult) => void }
  | { admitted: false; waitMs: number };

export interface EndpointLimits {
  /** Admits an attempt at an endpoint, to be left with its result; or says when to ask again. */
  admit(owner: string): Admission;
  /** Admits an attempt that a workflow task waits for, where the answer is likely to come at once. */
  admitPrompt(owner: string): Extract<Admission, { admitted: true }> | null;
}

interface LimitsOptions {
  /** Attempts that this process makes at once. */
  slots: number;
  /** Attempts among them that workflow tasks wait for; none when not given. */
  promptSlots?: number;
  now?: () => number;
  /** From 0 to 1. */
  random?: () => number;
}

/**
 * Makes the limits of attempts under way, by endpoint, in one process. Who is over them is told to
 * come back when its turn is likely, so that it holds no slot meanwhile.
 * @see docs/operations.md#scaling
 */
export function createEndpointLimits(options: LimitsOptions): EndpointLimits {
  const { slots, promptSlots = 0, now = () => performance.now(), random = Math.random } = options;
  const endpoints = new Map<string, Endpoint>();
  const held: Record<Standing, number> = { good: 0, unproven: 0, hanging: 0 };
  let promptHeld = 0;
  const share = (part: number) => Math.max(1, Math.floor(slots * part));
  const endpointOf = (owner: string): Endpoint => {
    const endpoint = endpoints.get(owner) ?? newcomer();
    // The one used last comes last, as the first ones are forgotten.
    endpoints.delete(owner);
    endpoints.set(owner, endpoint);
    forgetIdle(endpoints);
    return endpoint;
  };
  const limits: EndpointLimits = {
    admit(owner) {
      const endpoint = endpointOf(owner);
      const standing = standingOf(endpoint);
      const { each, all } = SHARES[standing];
      if (endpoint.underWay.size >= share(each) || held[standing] >= share(all)) {
        return { admitted: false, waitMs: book(endpoint, share(each), now(), random()) };
      }
      const attempt = { beganAt: now() };
      endpoint.underWay.add(attempt);
      held[standing] += 1;
      const leave = (result?: PostResult) => {
        endpoint.underWay.delete(attempt);
        held[standing] -= 1;
        if (result !== undefined) learn(endpoint, result, now());
      };
      return { admitted: true, leave };
    },
    admitPrompt(owner) {
      const endpoint = endpointOf(owner);
      const { promptAt, prompt } = endpoint;
      if (promptAt === undefined || now() - promptAt > PROMPT.ageMs) return null;
      if (prompt >= PROMPT.each || promptHeld >= promptSlots) return null;
      const admission = limits.admit(owner);
      if (!admission.admitted) return null;
      endpoint.prompt += 1;
      promptHeld += 1;
      const leave = (result?: PostResult) => {
        endpoint.prompt -= 1;
        promptHeld -= 1;
        admission.leave(result);
      };
      return { admitted: true, leave };
    },
  };
  return limits;
}

function newcomer(): Endpoint {
  return {
    underWay: new Set(),
    hung: 0,
    isGood: false,
    promptAt: undefined,
    prompt: 0,
    tookMs: 1_000,
    bookedUntil: 0,
  };
}

function standingOf({ hung, isGood }: Endpoint): Standing {
  if (hung >= HANGING_AFTER) return 'hanging';
  return isGood ? 'good' : 'unproven';
}

function learn(endpoint: Endpoint, result: PostResult, now: number): void {
  const { durationMs } = result;
  const isAnswer = result.outcome === 'response';
  const was = standingOf(endpoint);
  endpoint.isGood =
    isAnswer && result.status >= 200 && result.status < 300 && durationMs < GOOD_WITHIN_MS;
  endpoint.promptAt = endpoint.isGood && durationMs < PROMPT.tookMs ? now : undefined;
  if (!isAnswer && durationMs >= HUNG_MS) endpoint.hung += 1;
  // A name that was not found a moment ago says nothing new.
  else if (isAnswer || result.kind !== 'dns') endpoint.hung = 0;
  endpoint.tookMs = (3 * endpoint.tookMs + durationMs) / 4;
  if (was !== 'good' && endpoint.isGood) endpoint.bookedUntil = now;
}

/** Books the next turn behind those that wait already; past a minute they come back at random. */
function book(endpoint: Endpoint, limit: number, now: number, random: number): number {
  const turn = Math.max(endpoint.bookedUntil, now) + likelyMs(endpoint, now) / limit;
  endpoint.bookedUntil = Math.min(turn, now + WAIT_MS_MAX);
  const waitMs = turn - now > WAIT_MS_MAX ? (WAIT_MS_MAX * (1 + random)) / 2 : turn - now;
  return Math.round(Math.max(waitMs, WAIT_MS_MIN));
}

/**
 * Time that an attempt is likely to take. Of an endpoint that is not in good standing those under
 * way are asked, too: most of its time-outs are still to come when a burst finds it hanging, and
 * whoever is told to come back too soon costs a dispatch for nothing.
 */
function likelyMs(endpoint: Endpoint, now: number): number {
  const [oldest] = endpoint.underWay;
  if (oldest === undefined || standingOf(endpoint) === 'good') return endpoint.tookMs;
  const ageMs = now - oldest.beganAt;
  return Math.max(endpoint.tookMs, Math.min(ageMs * AGE_FACTOR, DEADLINE_MS));
}

function forgetIdle(endpoints: Map<string, Endpoint>): void {
  for (const [owner, { underWay }] of endpoints) {
    if (endpoints.size <= ENDPOINTS_MAX || underWay.size > 0) return;
    endpoints.delete(owner);
  }
}
