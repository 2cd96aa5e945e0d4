import { randomUUID } from 'node:crypto';
import type { ClientSession } from 'mongodb';
import { buildEvents } from '../../activities/shared/events';
import { gate } from '../support/gate';
import { call, eventually } from '../support/http';
import { type Account, useService } from '../support/service';
import { writeOnce } from '../support/write-once';
import { ids, walkPages } from './pages';
import { expectRefusal } from './refusal';

const service = useService();

const get = (shop: Account, path: string) => shop.get(`/v1/events${path}`);
const list = (shop: Account, query: Record<string, string> = {}) =>
  get(shop, `?${new URLSearchParams(query)}`);

/** Events of one account, of the given seconds of a minute, in one transaction. */
async function record(
  { account_id }: Account,
  seconds: readonly number[],
  hold: Promise<void> = Promise.resolve(),
): Promise<string[]> {
  const events = seconds.flatMap((second) => {
    const { events: built } = buildEvents(
      {
        ...{ resource: 'payment', resource_id: randomUUID(), account_id, livemode: false },
        at: new Date(Date.UTC(2026, 0, 1, 12, 0, second)).toISOString(),
        data: { payment_id: 'p1' },
        request_id: 'req_1',
        transitions: [{ type: 'payment.settled', version: 1 }],
      },
      [],
    );
    return built;
  });
  const eventIds = events.map(({ _id }) => _id);
  const write = async (session: ClientSession) => {
    await service.stores.events.insert(events, session);
    await hold;
  };
  // The server ends a transaction after 3 s, which a held one may exceed.
  const isRecorded = async () =>
    (await service.stores.events.getAll(eventIds)).length === events.length;
  await writeOnce(service.mongo, write, isRecorded);
  return eventIds;
}

/** Reads every page after an event. */
async function readAfter(shop: Account, start: string, limit = '2'): Promise<string[]> {
  const seen: string[] = [];
  for (let after: string | null = start; after !== null; ) {
    const { status, body }: Awaited<ReturnType<typeof list>> = await list(shop, { after, limit });
    expect(status).toBe(200);
    seen.push(...ids(body.data));
    after = body.next_cursor;
    expect(body.has_more).toBe(after !== null);
  }
  return seen;
}

test('events are listed newest first, and read with the attempts of their deliveries', async () => {
  const shop = await service.account();
  const payment = await shop.settledPayment();
  const refund = await shop.post('/v1/refunds', { payment_id: payment.id, amount: 100 });
  const path = `/v1/sandbox/refunds/${refund.body.id}/simulate`;
  await shop.post(path, { event: 'settled' });
  const types = [
    'refund.settled',
    'payment.settled',
    'payment.authorized',
    'payment.awaiting_customer',
  ];
  const about = await eventually('the refund', async () => {
    const page = await list(shop, { resource_id: String(payment.id) });
    return page.body.data.length === types.length && page.body.data;
  });
  expect(about.map(({ type }: { type: string }) => type)).toEqual(types);
  expect(about[0]).toEqual({
    id: expect.stringMatching(/^evt_[0-9a-f-]{36}$/),
    object: 'event',
    type: 'refund.settled',
    created: expect.any(String),
    livemode: false,
    data: { refund_id: refund.body.id, payment_id: payment.id },
    deliveries: [],
  });
  expect((await get(shop, `/${about[0].id}`)).body).toEqual(about[0]);
  expect(ids((await list(shop, { resource_id: refund.body.id })).body.data)).toEqual([about[0].id]);
  const settled = await list(shop, { type: 'payment.settled' });
  expect(ids(settled.body.data)).toEqual([about[1].id]);
  const pages = await walkPages((query) => list(shop, query), { limit: '3' });
  expect(pages.flat()).toEqual(ids(about));
});

test('after lists what follows, the oldest first, page by page', async () => {
  const shop = await service.account();
  const [first = '', ...rest] = await record(shop, [0, 10, 20, 30, 40, 50]);
  expect(await readAfter(shop, first)).toEqual(rest);
  expect(await readAfter(shop, rest[2] ?? '')).toEqual(rest.slice(3));
  const [later = ''] = await record(shop, [59]);
  expect(await readAfter(shop, rest.at(-1) ?? '')).toEqual([later]);
  expect(await readAfter(shop, later)).toEqual([]);
});

test('after never skips an event that becomes visible late', async () => {
  const shop = await service.account();
  const [first = ''] = await record(shop, [0]);
  const { opened, release } = gate();
  const late = record(shop, [10], opened);
  const shown = await record(shop, [20, 30]);
  expect(await readAfter(shop, first)).toEqual(shown);
  release();
  const [lateId = ''] = await late;
  // It is older than what was shown, and is shown nevertheless.
  expect(await readAfter(shop, shown.at(-1) ?? '')).toEqual([lateId]);
  expect(await readAfter(shop, first)).toEqual([...shown, lateId]);
  expect(ids((await list(shop)).body.data)).toEqual([...shown.toReversed(), lateId, first]);
});

test('after an event that a webhook showed, the minute before it comes again', async () => {
  const shop = await service.account();
  const [old = '', recent = '', shown = '', next = ''] = await record(shop, [0, 115, 120, 130]);
  expect(await readAfter(shop, shown)).toEqual([recent, next]);
  expect(await readAfter(shop, old)).toEqual([shown, recent, next]);
});

test('readers that catch up at once see the same events in the same order', async () => {
  const shop = await service.account();
  const [first = '', ...rest] = await record(
    shop,
    Array.from({ length: 40 }, (_, n) => n),
  );
  const reads = Array.from({ length: 8 }, () => readAfter(shop, first, '7'));
  expect(await Promise.all(reads)).toEqual(reads.map(() => rest));
});

test('a bad list is refused', async () => {
  const shop = await service.account();
  const [own = ''] = await record(shop, [0]);
  const foreign = (await record(await service.account(), [0]))[0] ?? '';
  expectRefusal(await list(shop, { type: 'payment.lost' }), 'invalid_request', ['type']);
  const both = { after: own, created_before: '2026-01-01T00:00:00Z' };
  expectRefusal(await list(shop, both), 'invalid_request', ['after']);
  expectRefusal(await list(shop, { created_before: 'then' }), 'invalid_cursor', ['created_before']);
  expectRefusal(await list(shop, { status: 'pending' }), 'invalid_request', ['status']);
  for (const id of [foreign, 'evt_none']) {
    expectRefusal(await list(shop, { after: id }), 'event_not_found');
  }
  const { key } = await service.withKey(shop, false, ['payments:read']);
  const refused = await call(service.url, 'GET', '/v1/events', { key });
  expectRefusal(refused, 'api_key_scope_insufficient');
});
