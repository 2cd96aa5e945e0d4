import { randomUUID } from 'node:crypto';
import { createDeliveryStore, type DeliveryDocument } from '../../src/store/deliveries';
import type { EventDelivery } from '../../src/store/events';
import { connectMonitored, useDatabase } from '../support/database';

const database = useDatabase({ connect: connectMonitored, indexed: false });
const addAttempt = (attempt: DeliveryDocument) =>
  createDeliveryStore(database.db).addAttempt(attempt);
const attemptsOf = (id: string) => createDeliveryStore(database.db).forEvent(id);

const PENDING: EventDelivery = {
  status: 'pending',
  attempts: 0,
  next_attempt_at: '2026-03-01T12:00:00.000Z',
  run: 0,
};
const NEXT = '2026-03-01T12:00:42.000Z';

interface Event {
  _id: string;
  delivery: EventDelivery;
}

async function event(delivery: Partial<EventDelivery> = {}): Promise<string> {
  const _id = `evt_${randomUUID()}`;
  await database.db
    .collection<Event>('events')
    .insertOne({ _id, delivery: { ...PENDING, ...delivery } });
  return _id;
}

const standing = async (_id: string) =>
  (await database.db.collection<Event>('events').findOne({ _id }))?.delivery;

function row(event_id: string, changes: Partial<DeliveryDocument> = {}): DeliveryDocument {
  return {
    event_id,
    run: 0,
    attempt: 1,
    at: '2026-03-01T12:00:00.000Z',
    url: 'https://shop.example.com/$hook',
    status_code: 500,
    error: null,
    duration_ms: 5,
    response_excerpt: '$$ROOT',
    outcome: 'failed',
    next_attempt_at: NEXT,
    ...changes,
  };
}

/** Names of the commands that this client sends while `work` is done. */
async function commandsOf(work: () => Promise<unknown>): Promise<string[]> {
  const names: string[] = [];
  const note = ({ commandName }: { commandName: string }) => names.push(commandName);
  const { mongo } = database;
  mongo.on('commandStarted', note);
  await work();
  mongo.off('commandStarted', note);
  return names;
}

test('an attempt is kept, counted and told in one write, and once', async () => {
  const id = await event();
  const commands = await commandsOf(() => addAttempt(row(id)));
  expect(commands).toEqual(['update']);
  expect(await addAttempt(row(id, { status_code: 503 }))).toBe('known');
  expect(await attemptsOf(id)).toEqual([row(id)]);
  expect(await standing(id)).toEqual({ ...PENDING, attempts: 1, next_attempt_at: NEXT });
});

test('of twenty at once that keep the same attempt one counts', async () => {
  const id = await event();
  await Promise.all(Array.from({ length: 20 }, () => addAttempt(row(id))));
  expect((await standing(id))?.attempts).toBe(1);
  expect(await attemptsOf(id)).toHaveLength(1);
});

test('an attempt of an earlier run counts, and changes only what is still pending', async () => {
  const id = await event({ status: 'delivered', next_attempt_at: null, run: 2, attempts: 3 });
  await addAttempt(row(id, { run: 1 }));
  const ended = { status: 'delivered', attempts: 4, next_attempt_at: null, run: 2 };
  expect(await standing(id)).toEqual(ended);
  const waiting = await event({ run: 2 });
  await addAttempt(row(waiting, { run: 1, outcome: 'delivered', next_attempt_at: null }));
  expect(await standing(waiting)).toMatchObject({ status: 'delivered', next_attempt_at: null });
});

test('no event, nothing kept', async () => {
  expect(await addAttempt(row('evt_none'))).toBe('no_event');
  expect(await database.db.collection<Event>('events').findOne({ _id: 'evt_none' })).toBeNull();
});

test('an event holds its latest 200 attempts, and counts them all', async () => {
  const id = await event({ run: 16 });
  for (let run = 0; run <= 16; run += 1) {
    for (let attempt = 1; attempt <= 12; attempt += 1) await addAttempt(row(id, { run, attempt }));
  }
  expect((await attemptsOf(id)).at(-1)).toMatchObject({ run: 0, attempt: 5 });
  expect((await standing(id))?.attempts).toBe(204);
});

test('a page by status has as many events as it may, whatever number of endpoints each has', async () => {
  const owner = { account_id: `acct_${randomUUID()}`, livemode: false };
  const rows = ['e3', 'e2', 'e1'].flatMap((event_id) =>
    ['a', 'b', 'c'].map((endpoint) => ({
      _id: `${owner.account_id}:${event_id}:${endpoint}`,
      ...{ ...owner, event_id, position: event_id },
      delivery: { ...PENDING, status: 'exhausted' },
    })),
  );
  await database.db.collection<{ _id: string }>('event_deliveries').insertMany(rows);
  const filter = { ...owner, statuses: ['exhausted'] as const, limit: 2 };
  const found = await createDeliveryStore(database.db).listByStatus(filter);
  expect(new Set(found.map(({ event_id }) => event_id)).size).toBeGreaterThanOrEqual(2);
});
