import { randomUUID } from 'node:crypto';
import {
  buildDelivery,
  createDeliveryStore,
  type DeliveryAttempt,
  type DeliveryRow,
  listAttempts,
} from '../../src/store/deliveries';
import { createEventStore, type EventDocument } from '../../src/store/events';
import { connectMonitored, useDatabase } from '../support/database';

const database = useDatabase({ connect: connectMonitored, indexed: false });
const store = () => createDeliveryStore(database.db);
const addAttempt = (attempt: DeliveryAttempt) => store().addAttempt(attempt);
const readRow = async (event_id: string) => (await store().forEvents([event_id]))[0];
const readAttempts = async (event_id: string) => listAttempts(await store().readLogs([event_id]));

const AT = '2026-03-01T12:00:00.000Z';
const NEXT = '2026-03-01T12:00:42.000Z';

const buildEvent = (_id: string, account_id = 'acct_1'): EventDocument => ({
  ...{ _id, account_id, livemode: false, type: 'payment.settled', created: AT },
  ...{ resource_id: randomUUID(), position: _id, data: {}, body: '{}', request_id: 'r', order: 0 },
});

const buildRow = (event_id: string, endpoint_id = 'we_1'): DeliveryRow =>
  buildDelivery(buildEvent(event_id), endpoint_id, 'pending');

async function insertRow(state: Partial<DeliveryRow> = {}): Promise<DeliveryRow> {
  const row = { ...buildRow(`evt_${randomUUID()}`), ...state };
  await store().insert([row]);
  return row;
}

/** A failed attempt, with texts that MongoDB could take for expressions. */
const buildAttempt = (event_id: string, changes: Partial<DeliveryAttempt> = {}) => ({
  ...{ event_id, endpoint_id: 'we_1', run: 0, attempt: 1, at: AT },
  ...{ url: 'https://shop.example.com/$hook', status_code: 500, error: null, duration_ms: 5 },
  ...{ response_excerpt: '$$ROOT', outcome: 'failed' as const, next_attempt_at: NEXT },
  ...changes,
});

test('stores and counts an attempt in one write, and once, also when twenty workers store it', async () => {
  const [row, busy] = [await insertRow(), await insertRow()];
  const { event_id: id } = row;
  const commands: string[] = [];
  const listen = ({ commandName }: { commandName: string }) => commands.push(commandName);
  database.mongo.on('commandStarted', listen);
  await addAttempt(buildAttempt(id));
  database.mongo.off('commandStarted', listen);
  expect(commands).toEqual(['update']);
  expect(await addAttempt(buildAttempt(id, { status_code: 503 }))).toBe('known');
  await Promise.all(Array.from({ length: 20 }, () => addAttempt(buildAttempt(busy.event_id))));
  for (const each of [row, busy]) {
    expect(await readAttempts(each.event_id)).toEqual([buildAttempt(each.event_id)]);
    const counted = { ...each, attempts: 1, next_attempt_at: NEXT };
    expect(await readRow(each.event_id)).toEqual(counted);
  }
  expect(await addAttempt(buildAttempt('evt_none'))).toBe('no_event');
  expect(await store().forEvents(['evt_none'])).toEqual([]);
});

test('stores the last attempt with the end of the delivery', async () => {
  const { event_id } = await insertRow();
  await addAttempt(buildAttempt(event_id, { attempt: 12, next_attempt_at: null }));
  expect(await readRow(event_id)).toMatchObject({ status: 'exhausted', next_attempt_at: null });
});

test('counts an attempt of an earlier run, which changes only a pending delivery', async () => {
  const ended = { status: 'delivered', next_attempt_at: null, run: 2, attempts: 3 } as const;
  const row = await insertRow(ended);
  await addAttempt(buildAttempt(row.event_id, { run: 1 }));
  expect(await readRow(row.event_id)).toEqual({ ...row, attempts: 4 });
  const waiting = await insertRow({ run: 2 });
  const success = { run: 1, outcome: 'delivered', next_attempt_at: null } as const;
  await addAttempt(buildAttempt(waiting.event_id, success));
  expect(await readRow(waiting.event_id)).toMatchObject({
    ...{ status: 'delivered', next_attempt_at: null },
  });
});

test('stores the latest 200 attempts of a delivery, and counts them all', async () => {
  const { event_id } = await insertRow({ run: 16 });
  for (let n = 0; n < 17 * 12; n += 1) {
    await addAttempt(buildAttempt(event_id, { run: Math.floor(n / 12), attempt: 1 + (n % 12) }));
  }
  expect((await readAttempts(event_id)).at(-1)).toMatchObject({ run: 0, attempt: 5 });
  expect((await readRow(event_id))?.attempts).toBe(204);
});

test('restores what a redelivery has reserved, unless an attempt has changed it', async () => {
  const ended = { status: 'exhausted', attempts: 12, next_attempt_at: null } as const;
  const before = await insertRow(ended);
  const reserved = await store().reserveRun(before, AT);
  if (reserved === null) throw new Error('Nothing was reserved.');
  expect(await store().reserveRun(before, AT)).toBeNull();
  await store().releaseRun(reserved, before);
  expect(await readRow(before.event_id)).toEqual({ ...before, run: 1 });
  const again = await store().reserveRun({ ...before, run: 1 }, AT);
  if (again === null) throw new Error('Nothing was reserved.');
  await addAttempt(buildAttempt(before.event_id, { run: 2 }));
  await store().releaseRun(again, before);
  expect(await readRow(before.event_id)).toMatchObject({ status: 'pending', attempts: 13, run: 2 });
});

test('lists what failed page by page, also the deliveries of one event, and full pages of events', async () => {
  const account_id = `acct_${randomUUID()}`;
  const rows = ['e1', 'e2', 'e3'].flatMap((event_id) =>
    ['a', 'b', 'c'].map((endpoint_id) => ({
      ...{ ...buildRow(`${account_id}:${event_id}`, endpoint_id), account_id, position: event_id },
      status: 'exhausted' as const,
    })),
  );
  await store().insert(rows);
  const owner = { account_id, livemode: false };
  const filter = { ...owner, since: 'e', until: 'f', statuses: ['exhausted'] as const };
  const list = (after?: DeliveryRow) => store().listResendable(filter, 2, after);
  const ids: string[] = [];
  for (let page = await list(); page.length > 0; page = await list(page.at(-1))) {
    ids.push(...page.map(({ _id }) => _id));
  }
  expect(ids).toEqual(rows.map(({ _id }) => _id));
  const page = await store().listByStatus({ ...owner, status: 'exhausted', limit: 2 });
  expect(new Set(page.map(({ event_id }) => event_id)).size).toBeGreaterThanOrEqual(2);
});

test('lists events without an endpoint, or whose endpoint was deleted, in both directions', async () => {
  const account_id = `acct_${randomUUID()}`;
  const events = ['1', '2', '3', '4', '5'].map((n) => buildEvent(`${account_id}:${n}`, account_id));
  const [none, delivered, deleted, both, last] = events.map(({ _id }) => _id);
  const eventStore = createEventStore(database.db);
  await eventStore.insert(events);
  const rows = [
    { ...buildRow(delivered ?? ''), status: 'delivered' as const },
    { ...buildRow(deleted ?? ''), status: 'no_endpoint' as const },
    { ...buildRow(both ?? '', 'we_1'), status: 'no_endpoint' as const },
    { ...buildRow(both ?? '', 'we_2'), status: 'delivered' as const },
  ];
  await store().insert(rows);
  const list = async (page: object) => {
    const filter = { account_id, livemode: false, limit: 3, ...page };
    return (await eventStore.listWithoutEndpoint(filter)).map(({ _id }) => _id);
  };
  expect(await list({})).toEqual([last, both, deleted]);
  expect(await list({ before: deleted })).toEqual([none]);
  expect(await list({ after: none, limit: 2 })).toEqual([both, deleted]);
});
