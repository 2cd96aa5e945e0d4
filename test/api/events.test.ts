import { randomUUID } from 'node:crypto';
import type { ClientSession } from 'mongodb';
import { buildEvents } from '../../activities/shared/events';
import { buildRefund } from '../support/factories';
import { gate } from '../support/gate';
import { eventually } from '../support/http';
import { type Account, useService } from '../support/service';
import { writeOnce } from '../support/write-once';
import { ids, walkPages } from './pages';
import { expectRefusal } from './refusal';

const service = useService();

const list = (shop: Account, query: Record<string, string> = {}) =>
  shop.get(`/v1/events?${new URLSearchParams(query)}`);

const LONG_AGO = Date.UTC(2026, 0, 1, 12);

/** Records events of an account, of the given seconds, in one transaction. */
async function recordEvents(
  { account_id }: Account,
  seconds: readonly number[],
  { since = Date.now() - 60_000, hold = Promise.resolve() } = {},
): Promise<string[]> {
  const events = seconds.flatMap((second) => {
    const at = new Date(since + second * 1_000).toISOString();
    const about = { resource: 'payment', resource_id: randomUUID(), account_id } as const;
    const facts = { livemode: false, at, data: { payment_id: 'p1' }, request_id: 'req_1' };
    const transitions = [{ type: 'payment.settled' as const, transition: 1 }];
    return buildEvents({ ...about, ...facts, transitions }, []).events;
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

test('events are listed newest first, and filtered by type and resource', async () => {
  const shop = await service.account();
  const { id: refund_id, payment_id } = await buildRefund(shop, { status: 'settled' });
  const types = ['refund.settled', 'payment.settled', 'payment.authorized'];
  types.push('payment.awaiting_customer');
  const events = await eventually('the event of the refund', async () => {
    const { data } = (await list(shop, { resource_id: payment_id })).body;
    return data.length === types.length && data;
  });
  expect(events.map(({ type }: { type: string }) => type)).toEqual(types);
  const [first, second] = events;
  expect(first).toEqual({
    id: expect.stringMatching(/^evt_[0-9a-f-]{36}$/),
    object: 'event',
    type: 'refund.settled',
    created: expect.any(String),
    livemode: false,
    data: { refund_id, payment_id },
    deliveries: [],
  });
  expect((await shop.get(`/v1/events/${first.id}`)).body).toEqual(first);
  expect(ids((await list(shop, { resource_id: refund_id })).body.data)).toEqual([first.id]);
  const settled = await list(shop, { type: 'payment.settled' });
  expect(ids(settled.body.data)).toEqual([second.id]);
  const pages = await walkPages((query) => list(shop, query), { limit: '3' });
  expect(pages.flat()).toEqual(ids(events));
});

test.each([
  ['recent', Date.now() - 60_000],
  ['old', LONG_AGO],
])(
  'the parameter after lists later %s events, oldest first, alike for readers that read at once',
  async (_, since) => {
    const shop = await service.account();
    const seconds = Array.from({ length: 40 }, (_, n) => n);
    const [first = '', ...rest] = await recordEvents(shop, seconds, { since });
    const reads = Array.from({ length: 8 }, () => readAfter(shop, first, '7'));
    expect(await Promise.all(reads)).toEqual(reads.map(() => rest));
    expect(await readAfter(shop, rest[34] ?? '')).toEqual(rest.slice(35));
    const [later = ''] = await recordEvents(shop, [59], { since });
    expect(await readAfter(shop, rest.at(-1) ?? '')).toEqual([later]);
    expect(await readAfter(shop, later)).toEqual([]);
  },
);

test('the parameter after never skips an event that becomes visible late', async () => {
  const shop = await service.account();
  const [first = ''] = await recordEvents(shop, [0]);
  const { opened, release } = gate();
  const late = recordEvents(shop, [10], { hold: opened });
  const shown = await recordEvents(shop, [20, 30]);
  expect(await readAfter(shop, first)).toEqual(shown);
  release();
  const [lateId = ''] = await late;
  // It is older than what was shown, and is shown nevertheless.
  expect(await readAfter(shop, shown.at(-1) ?? '')).toEqual([lateId]);
  expect(await readAfter(shop, first)).toEqual([...shown, lateId]);
  expect(ids((await list(shop)).body.data)).toEqual([...shown.toReversed(), lateId, first]);
});

test.each([
  ['recent', Date.now() - 130_000],
  ['old', LONG_AGO],
])(
  'the parameter after repeats the minute before a %s event that was not read from a list',
  async (_, since) => {
    const shop = await service.account();
    const seconds = [0, 115, 120, 130];
    const [old = '', recent = '', shown = '', next = ''] = await recordEvents(shop, seconds, {
      since,
    });
    expect(await readAfter(shop, shown)).toEqual([recent, next]);
    // It skips none for a reader who begins with another one.
    expect(await readAfter(shop, recent)).toEqual([shown, next]);
    expect(await readAfter(shop, old)).toEqual([recent, shown, next]);
  },
);

test('the first parameter after numbers no event that had settled', async () => {
  const shop = await service.account();
  const before = await recordEvents(shop, [1, 2, 3], { since: LONG_AGO });
  const [since = '', ...after] = await recordEvents(shop, [10, 20]);
  expect(await readAfter(shop, since)).toEqual(after);
  const numbers = (await service.stores.events.getAll(before)).map(({ order }) => order);
  expect(numbers).toEqual([0, 0, 0]);
  expect(await readAfter(shop, before[0] ?? '')).toEqual([...before.slice(1), since, ...after]);
});

test('the parameter after is refused with created_before, or an event of another account', async () => {
  const shop = await service.account();
  const [own = ''] = await recordEvents(shop, [0]);
  const [foreign = ''] = await recordEvents(await service.account(), [0]);
  const both = { after: own, created_before: '2026-01-01T00:00:00Z' };
  expectRefusal(await list(shop, both), 'invalid_request', ['after']);
  for (const after of [foreign, 'evt_none']) {
    expectRefusal(await list(shop, { after }), 'event_not_found');
  }
});
