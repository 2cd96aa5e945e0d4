import { randomUUID } from 'node:crypto';
import os from 'node:os';
import { type Db, MongoClient } from 'mongodb';
import {
  createDeliveryStore,
  type DeliveryDocument,
  type DeliveryStore,
} from '../../src/store/deliveries';
import type { EventDelivery } from '../../src/store/events';
import { mongodbUri } from '../support/servers';

let mongo: MongoClient;
let db: Db;
let deliveries: DeliveryStore;

beforeAll(async () => {
  mongo = new MongoClient(mongodbUri(), { monitorCommands: true, runtimeAdapters: { os } });
  db = mongo.db(`deliveries_${randomUUID()}`);
  deliveries = createDeliveryStore(db);
});
afterAll(async () => {
  await db.dropDatabase();
  await mongo.close();
});

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
  await db.collection<Event>('events').insertOne({ _id, delivery: { ...PENDING, ...delivery } });
  return _id;
}

const standing = async (_id: string) =>
  (await db.collection<Event>('events').findOne({ _id }))?.delivery;

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
  mongo.on('commandStarted', note);
  await work();
  mongo.off('commandStarted', note);
  return names;
}

test('an attempt is kept, counted and told in one write, and once', async () => {
  const id = await event();
  const commands = await commandsOf(() => deliveries.addAttempt(row(id)));
  expect(commands).toEqual(['update']);
  expect(await deliveries.addAttempt(row(id, { status_code: 503 }))).toBe('known');
  expect(await deliveries.forEvent(id)).toEqual([row(id)]);
  expect(await standing(id)).toEqual({ ...PENDING, attempts: 1, next_attempt_at: NEXT });
});

test('of twenty at once that keep the same attempt one counts', async () => {
  const id = await event();
  await Promise.all(Array.from({ length: 20 }, () => deliveries.addAttempt(row(id))));
  expect((await standing(id))?.attempts).toBe(1);
  expect(await deliveries.forEvent(id)).toHaveLength(1);
});

test('an attempt of an earlier run counts, and changes only what is still pending', async () => {
  const id = await event({ status: 'delivered', next_attempt_at: null, run: 2, attempts: 3 });
  await deliveries.addAttempt(row(id, { run: 1 }));
  const ended = { status: 'delivered', attempts: 4, next_attempt_at: null, run: 2 };
  expect(await standing(id)).toEqual(ended);
  const waiting = await event({ run: 2 });
  await deliveries.addAttempt(
    row(waiting, { run: 1, outcome: 'delivered', next_attempt_at: null }),
  );
  expect(await standing(waiting)).toMatchObject({ status: 'delivered', next_attempt_at: null });
});

test('no event, nothing kept', async () => {
  expect(await deliveries.addAttempt(row('evt_none'))).toBe('no_event');
  expect(await db.collection<Event>('events').findOne({ _id: 'evt_none' })).toBeNull();
});

test('an event holds its latest 200 attempts, and counts them all', async () => {
  const id = await event({ run: 16 });
  for (let run = 0; run <= 16; run += 1) {
    for (let attempt = 1; attempt <= 12; attempt += 1)
      await deliveries.addAttempt(row(id, { run, attempt }));
  }
  expect((await deliveries.forEvent(id)).at(-1)).toMatchObject({ run: 0, attempt: 5 });
  expect((await standing(id))?.attempts).toBe(204);
});
