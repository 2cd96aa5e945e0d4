import { randomUUID } from 'node:crypto';
import { createDeliveryStore, type DeliveryDocument } from '../../src/store/deliveries';
import type { EventDelivery } from '../../src/store/events';
import { connectMonitored, useDatabase } from '../support/database';

const database = useDatabase({ connect: connectMonitored, indexed: false });
const events = () => database.db.collection<{ _id: string; delivery: EventDelivery }>('events');
const addAttempt = (attempt: DeliveryDocument) =>
  createDeliveryStore(database.db).addAttempt(attempt);
const listAttempts = (id: string) => createDeliveryStore(database.db).forEvent(id);
const readDelivery = async (_id: string) => (await events().findOne({ _id }))?.delivery;

const AT = '2026-03-01T12:00:00.000Z';
const NEXT = '2026-03-01T12:00:42.000Z';
const PENDING: EventDelivery = { status: 'pending', attempts: 0, next_attempt_at: AT, run: 0 };

async function insertEvent(delivery: Partial<EventDelivery> = {}): Promise<string> {
  const _id = `evt_${randomUUID()}`;
  await events().insertOne({ _id, delivery: { ...PENDING, ...delivery } });
  return _id;
}

/** A failed attempt, with texts that MongoDB could take for expressions. */
const buildAttempt = (event_id: string, changes: Partial<DeliveryDocument> = {}) => ({
  ...{ event_id, run: 0, attempt: 1, at: AT, url: 'https://shop.example.com/$hook' },
  ...{ status_code: 500, error: null, duration_ms: 5, response_excerpt: '$$ROOT' },
  ...{ outcome: 'failed' as const, next_attempt_at: NEXT },
  ...changes,
});

test('stores and counts an attempt in one write, and once', async () => {
  const id = await insertEvent();
  const commands: string[] = [];
  const listen = ({ commandName }: { commandName: string }) => commands.push(commandName);
  database.mongo.on('commandStarted', listen);
  await addAttempt(buildAttempt(id));
  database.mongo.off('commandStarted', listen);
  expect(commands).toEqual(['update']);
  expect(await addAttempt(buildAttempt(id, { status_code: 503 }))).toBe('known');
  expect(await listAttempts(id)).toEqual([buildAttempt(id)]);
  expect(await readDelivery(id)).toEqual({ ...PENDING, attempts: 1, next_attempt_at: NEXT });
});

test('counts an attempt once that twenty workers store at once', async () => {
  const id = await insertEvent();
  await Promise.all(Array.from({ length: 20 }, () => addAttempt(buildAttempt(id))));
  expect((await readDelivery(id))?.attempts).toBe(1);
  expect(await listAttempts(id)).toHaveLength(1);
});

test('counts an attempt of an earlier run, which changes only a pending delivery', async () => {
  const ended = { status: 'delivered', next_attempt_at: null, run: 2 } as const;
  const id = await insertEvent({ ...ended, attempts: 3 });
  await addAttempt(buildAttempt(id, { run: 1 }));
  expect(await readDelivery(id)).toEqual({ ...ended, attempts: 4 });
  const waiting = await insertEvent({ run: 2 });
  const success = { run: 1, outcome: 'delivered', next_attempt_at: null } as const;
  await addAttempt(buildAttempt(waiting, success));
  expect(await readDelivery(waiting)).toMatchObject({ status: 'delivered', next_attempt_at: null });
});

test('stores no attempt without its event', async () => {
  expect(await addAttempt(buildAttempt('evt_none'))).toBe('no_event');
  expect(await events().findOne({ _id: 'evt_none' })).toBeNull();
});

test('stores the latest 200 attempts of an event, and counts them all', async () => {
  const id = await insertEvent({ run: 16 });
  for (let n = 0; n < 17 * 12; n += 1) {
    await addAttempt(buildAttempt(id, { run: Math.floor(n / 12), attempt: 1 + (n % 12) }));
  }
  expect((await listAttempts(id)).at(-1)).toMatchObject({ run: 0, attempt: 5 });
  expect((await readDelivery(id))?.attempts).toBe(204);
});

test('lists a full page of events by status, whatever number of endpoints each has', async () => {
  const owner = { account_id: `acct_${randomUUID()}`, livemode: false };
  const delivery = { ...PENDING, status: 'exhausted' };
  const rows = ['e3', 'e2', 'e1'].flatMap((event_id) =>
    ['a', 'b', 'c'].map((endpoint) => {
      const _id = `${owner.account_id}:${event_id}:${endpoint}`;
      return { _id, ...owner, event_id, position: event_id, delivery };
    }),
  );
  await database.db.collection<{ _id: string }>('event_deliveries').insertMany(rows);
  const filter = { ...owner, statuses: ['exhausted'] as const, limit: 2 };
  const page = await createDeliveryStore(database.db).listByStatus(filter);
  expect(new Set(page.map(({ event_id }) => event_id)).size).toBeGreaterThanOrEqual(2);
});
