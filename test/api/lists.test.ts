import type { Client } from '../support/http';
import { useService } from '../support/service';
import { LISTS, type Likeness, type Listed, makeLikeness, OLD } from './list-setting';
import { ids, walkPages } from './pages';
import { expectRefusal } from './refusal';

const service = useService();
let like: Likeness;

beforeAll(async () => {
  like = await makeLikeness(service);
});

describe.each(LISTS)('the list of $name', ({ open, rows, statuses, unknown }) => {
  let list: Listed;
  beforeEach(async () => {
    list = await open(service, like);
  });

  const get = (query: Record<string, string> = {}, as: Client = list) =>
    as.get(`${list.path}?${new URLSearchParams(query)}`);
  const count = async (query: Record<string, string>) => (await get(query)).body.data.length;

  test('is newest first, each row as a read of it', async () => {
    const times = ['2026-01-02T00:00:00.000Z', '2026-01-02T00:00:00.001Z', OLD];
    const made: string[] = [];
    for (const at of times) made.push(...(await list.insert(1, at)));
    const { status, body } = await get();
    expect(status).toBe(200);
    const read = await Promise.all(made.reverse().map((id) => list.get(`${rows}/${id}`)));
    expect(body).toEqual({
      object: 'list',
      data: read.map((each) => each.body),
      has_more: false,
      next_cursor: null,
    });
  });

  test('is one empty page where there are no rows', async () => {
    expect((await get()).body).toEqual({
      object: 'list',
      data: [],
      has_more: false,
      next_cursor: null,
    });
  });

  test('gives hundreds of rows of one millisecond each exactly once', async () => {
    const made = await list.insert(300);
    const pages = await walkPages(get, { limit: '37' });
    expect(pages.slice(0, -1).every((page) => page.length === 37)).toBe(true);
    expect(pages.flat().toSorted()).toEqual(made.toSorted());
  });

  test('gives every row once though new ones come meanwhile', async () => {
    const made = await list.insert(20);
    const pages = await walkPages(
      async (query) => {
        const page = await get(query);
        await list.insert(1, new Date().toISOString());
        return page;
      },
      { limit: '8' },
    );
    expect(pages.flat().toSorted()).toEqual(made.toSorted());
  });

  test('has 25 rows a page unless told, and no next page after a last one that is full', async () => {
    await list.insert(30);
    expect(await count({})).toBe(25);
    const all = (await get({ limit: '30' })).body;
    expect([all.data.length, all.has_more, all.next_cursor]).toEqual([30, false, null]);
    expect((await get({ limit: '29' })).body.has_more).toBe(true);
  });

  test.each(statuses)('filters by the status %s, also page by page', async (status) => {
    const made = await list.insert(5, OLD, { status });
    for (const other of statuses)
      if (other !== status) await list.insert(1, OLD, { status: other });
    const pages = await walkPages(get, { status, limit: '2' });
    expect(pages.map((page) => page.length)).toEqual([2, 2, 1]);
    expect(pages.flat().toSorted()).toEqual(made.toSorted());
  });

  test.each([
    ['2026-01-02T03:04:05.678Z', 0],
    ['2026-01-02T03:04:05.679Z', 3],
    ['2026-01-02T03:04:05.678999999Z', 3],
    ['2026-01-02T03:04:05.6789999Z', 3],
    ['2026-01-02T03:04:05Z', 0],
    ['2026-01-02T03:04:06Z', 3],
    ['2026-01-02T03:04:05.7Z', 3],
    ['2026-01-02T04:04:05.679+01:00', 3],
    ['2026-01-01T22:04:05.679-05:00', 3],
    ['2026-01-02T03:04:05.679+00:30', 0],
    ['0001-01-01T00:00:00Z', 0],
  ])('created_before %s gives the rows before that moment', async (created_before, before) => {
    await list.insert(3);
    expect(await count({ created_before })).toBe(before);
  });

  test('created_before with a + that a query string turned into a space is understood', async () => {
    await list.insert(3);
    const path = `${list.path}?created_before=2026-01-02T04:04:05.679+01:00`;
    const { body } = await list.get(path);
    expect(body.data).toHaveLength(3);
  });

  test.each([
    '',
    'yesterday',
    '2026-01-02',
    '2026-01-02T03:04:05',
    '2026-02-30T00:00:00Z',
    '2026-01-02T24:00:00Z',
    '2026-01-02T03:04:60Z',
    '2026-01-02T03:04:05.0123456789Z',
    '1767323045',
    '2026-01-02T03:04:05Z ',
    '2026-01-02T03:04:05+25:00',
    '{"$gt":""}',
  ])('refuses created_before "%s" as invalid_cursor', async (created_before) => {
    expectRefusal(await get({ created_before }), 'invalid_cursor', ['created_before']);
  });

  test("never shows another account's or environment's rows", async () => {
    const [own] = await list.insert(1);
    const live = await list.insert(3, OLD, { livemode: true });
    const other = await service.account();
    const liveKey = await service.withKey(list, true);
    expect(ids((await get()).body.data)).toEqual([own]);
    if (list.path !== rows) {
      // The payment itself is of this account and environment.
      for (const each of [other, liveKey]) expectRefusal(await get({}, each), 'payment_not_found');
      return;
    }
    expect((await get({}, other)).body.data).toEqual([]);
    const shown = (await get({}, liveKey)).body.data;
    expect(ids(shown).toSorted()).toEqual(live.toSorted());
    // A refund does not say its environment.
    for (const row of shown) expect(row.livemode ?? true).toBe(true);
  });

  test.each(['0', '101', '-1', '1.0', '1e1', '', 'ten', '٣', '0x10', '99999999999999999999'])(
    'refuses limit "%s"',
    async (limit) => {
      expectRefusal(await get({ limit }), 'invalid_request', ['limit']);
    },
  );

  test.each([
    ['status=paid', ['status']],
    ['status=Settled', ['status']],
    ['status=', ['status']],
    ['limit=1&limit=1', ['limit']],
    ['status=failed&status=failed', ['status']],
    ['status[$ne]=failed', ['status[$ne]']],
    ['page=2', ['page']],
    ['Limit=2', ['Limit']],
    ['__proto__=1&constructor=2', ['__proto__', 'constructor']],
    ['limit=0&status=paid&page=2', ['limit', 'status', 'page']],
  ])('refuses ?%s, naming each parameter at fault', async (query, fields) => {
    const answer = await list.get(`${list.path}?${query}`);
    expectRefusal(answer, 'invalid_request', fields);
  });

  test.each(unknown)('has no filter %s', async (field) => {
    expectRefusal(await get({ [field]: 'ideal' }), 'invalid_request', [field]);
  });
});
