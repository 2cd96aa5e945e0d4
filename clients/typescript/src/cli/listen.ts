import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '../client';
import { ApiError, ConnectionError, isApiError } from '../errors';
import type { Event } from '../resources/events';
import type { Forward, Repeat } from './forward';
import { chooseBaseline, isRedelivered } from './redelivered';
import type { State } from './state';

const POLL_MS = 1_000;
const AWAY_MS = 2_000;
const PAGE = 100;
/** Redeliveries are looked for among the newest 100 events each time, among 1,000 each 30th time. */
const WIDE_EVERY = 30;
const WIDE_PAGES = 10;
const RETRIES_MAX = 5;
const RETRY_MS = 10_000;

interface Listening {
  client: Pick<Client, 'events'>;
  state: State;
  forward: Forward;
  types: ReadonlySet<string>;
  signal: AbortSignal;
  print: (line: string) => void;
}

/**
 * Forwards events until the signal: new ones in the order of the API, those that were refused, and those
 * that are sent again. @throws ApiError when the key is refused
 */
export async function listen(listening: Listening): Promise<void> {
  const { signal, print } = listening;
  let isReady = false;
  let isAway = false;
  for (let round = 0; ; round += 1) {
    try {
      if (!listening.state.read().hasBegun) await begin(listening);
      await forwardNew(listening);
      await forwardRefused(listening);
      await forwardRedelivered(listening, round % WIDE_EVERY === 0 ? WIDE_PAGES : 1);
      if (!isReady) print('Waiting for events. Ctrl-C stops.');
      else if (isAway) print('The service is back.');
      isReady = true;
      isAway = false;
    } catch (error) {
      signal.throwIfAborted();
      if (!isOutage(error)) throw error;
      if (!isAway) print(`The service is away (${error.message}); it is tried again.`);
      isAway = true;
    }
    await sleep(isAway ? AWAY_MS : POLL_MS, undefined, { signal });
  }
}

/** Remembers what is there before the first start: it is not forwarded. */
async function begin({ client, state, signal }: Listening): Promise<void> {
  const { data } = await client.events.list({ limit: PAGE }, { signal });
  const ids = data.map(({ id }) => id);
  state.write({ hasBegun: true, cursor: ids[0], recent: ids });
}

async function forwardNew(listening: Listening): Promise<void> {
  const { client, state, signal, print } = listening;
  const { cursor } = state.read();
  if (cursor === undefined) return await forwardFirst(listening);
  try {
    const rows = client.events.list({ after: cursor, limit: PAGE }, { signal });
    for await (const event of rows) await forwardOnce(listening, event);
  } catch (error) {
    const code: string | undefined = isApiError(error) ? error.code : undefined;
    if (code !== 'event_not_found') throw error;
    print('The last event is gone from the service: goes on with the events from now on.');
    state.clear();
  }
}

/** Without an event there is nothing to list after: the first ones are read from the newest on. */
async function forwardFirst(listening: Listening): Promise<void> {
  const { client, signal } = listening;
  const events: Event[] = [];
  for await (const event of client.events.list({ limit: PAGE }, { signal })) events.unshift(event);
  for (const event of events) await forwardOnce(listening, event);
}

/** Forwards an event unless that was done; a kill at any moment makes it a repeat, or nothing. */
async function forwardOnce(listening: Listening, event: Event): Promise<void> {
  const { state } = listening;
  const { recent, sending } = state.read();
  if (recent.includes(event.id)) return state.write({ cursor: event.id });
  await send(listening, event, sending === event.id ? 'restart' : undefined, 0);
  const { deliveries } = state.read();
  state.write({
    ...{ cursor: event.id, recent: [...recent, event.id], sending: undefined },
    deliveries: { ...deliveries, [event.id]: event.deliveries },
  });
}

async function send(
  { state, forward, types }: Listening,
  event: Event,
  repeat: Repeat | undefined,
  attempts: number,
): Promise<void> {
  if (!types.has(event.type)) return;
  state.write({ sending: event.id });
  const isAccepted = await forward(event, repeat);
  const others = state.read().refused.filter(({ id }) => id !== event.id);
  const isLast = isAccepted || attempts >= RETRIES_MAX;
  const at = Date.now() + RETRY_MS * 2 ** attempts;
  const refused = isLast ? others : [...others, { id: event.id, attempts: attempts + 1, at }];
  state.write({ refused });
}

/** Sends what was answered with an error again, up to five times. */
async function forwardRefused(listening: Listening): Promise<void> {
  const { client, state, signal } = listening;
  const due = state.read().refused.filter(({ at }) => at <= Date.now());
  for (const { id, attempts } of due) {
    await send(listening, await client.events.get(id, { signal }), 'retry', attempts);
    state.write({ sending: undefined });
  }
}

async function forwardRedelivered(listening: Listening, pagesMax: number): Promise<void> {
  const { client, state, signal } = listening;
  const seen = new Map<string, Event>();
  let count = 0;
  for await (const { data } of client.events.list({ limit: PAGE }, { signal }).pages()) {
    for (const event of data) seen.set(event.id, event);
    count += 1;
    if (count >= pagesMax) break;
  }
  const { recent, deliveries } = state.read();
  const isKept = ([id]: [string, unknown]) => pagesMax < WIDE_PAGES || seen.has(id);
  const latest = Object.fromEntries(Object.entries(deliveries).filter(isKept));
  for (const event of [...seen.values()].reverse()) {
    // An event that was not forwarded yet has nothing to repeat.
    if (!recent.includes(event.id)) continue;
    const before = deliveries[event.id] ?? [];
    if (wasRedelivered(before, event)) await send(listening, event, 'redelivery', 0);
    latest[event.id] = event.deliveries.map((after) =>
      chooseBaseline(findDelivery(before, after), after),
    );
  }
  if (JSON.stringify(latest) === JSON.stringify(deliveries)) return;
  state.write({ deliveries: latest, sending: undefined });
}

function wasRedelivered(before: Event['deliveries'], { deliveries }: Event): boolean {
  return deliveries.some((after) => isRedelivered(findDelivery(before, after), after, new Date()));
}

function findDelivery(rows: Event['deliveries'], { endpoint_id }: Event['deliveries'][number]) {
  return rows.find((row) => row.endpoint_id === endpoint_id);
}

function isOutage(error: unknown): error is Error {
  return error instanceof ConnectionError || (error instanceof ApiError && error.status >= 429);
}
