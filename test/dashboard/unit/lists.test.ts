import { once } from 'node:events';
import { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { cell, createExports, csvStream } from '../../../src/dashboard/resources/csv';
import { parseListQuery, toQueryString } from '../../../src/dashboard/resources/list';
import { parseMoney } from '../../../src/domain/money/money';
import { readPage, toBounds } from '../../../src/service/paging';

const CHOICES = { statuses: ['settled'], methods: ['ideal'] };
const parse = (query: string) => parseListQuery(new URLSearchParams(query), CHOICES);
const CURSOR = '2026-03-01T12:00:00.000000001Z';

test('the address of a list keeps its filters, and nothing else', () => {
  const all = `search=+a+&status=settled&method=ideal&from=2026-02-28&to=2026-02-28&before=${CURSOR}`;
  expect(toQueryString(parse(all), { before: CURSOR })).toBe(
    `?search=a&status=settled&method=ideal&from=2026-02-28&to=2026-02-28&before=${encodeURIComponent(CURSOR)}`,
  );
  expect(parse(`${all}&after=${CURSOR}`).after).toBeUndefined();
  expect(toQueryString(parse('status=x&method=y&from=2026-13-01&to=x&before=2026-03-01'))).toBe('');
  expect(parse('before=x').before).toBeUndefined();
});

test('the bounds of days include the whole last day', () => {
  expect(toBounds({ from: '2026-02-28', to: '2026-02-28' })).toEqual({
    since: '2026-02-28T00:00:00.000000000Z',
    until: '2026-03-01T00:00:00.000000000Z',
  });
});

test('a page knows whether there are older and newer pages', async () => {
  const rows = ['5', '4', '3'].map((position) => ({ position }));
  const read = (query: { before?: string; after?: string }, size: number, all = rows) =>
    readPage({ before: undefined, after: undefined, ...query }, async () => all, size);
  expect(await read({}, 2)).toMatchObject({ older: '4', newer: undefined });
  expect(await read({}, 3)).toMatchObject({ older: undefined, newer: undefined });
  expect(await read({ before: '6' }, 3)).toMatchObject({ newer: '5' });
  const back = await read({ after: '2' }, 2);
  expect(back).toEqual({ rows: rows.slice(1), older: '3', newer: '4' });
  expect(await read({}, 2, [])).toEqual({ rows: [], older: undefined, newer: undefined });
});

test.each([
  ['=1+1', "'=1+1"],
  ['+49', "'+49"],
  ['@x', "'@x"],
  ['\tx', `"'\tx"`],
  ['x;=1+1', `"x;'=1+1"`],
  ['x;"=1+1;y', `"x;'""=1+1;y"`],
  ['＝1+1', "'＝1+1"],
  ['\u00a0=1+1', "'\u00a0=1+1"],
  ['\u200b ﹦1+1', "'\u200b ﹦1+1"],
  ['Müller – 1', 'Müller – 1'],
  ['say "x"', '"say ""x"""'],
  ['=a,"b"\r\n', `"'=a,""b""\r\n"`],
  [null, ''],
  [12, '12'],
])('the cell of %j is %j', (value, text) => expect(cell(value)).toBe(text));

const open = (rows: AsyncIterable<{ n: number }>) => csvStream(rows, [['n', ({ n }) => n]]);

test('an export reads no further than its reader, and ends when its reader leaves', async () => {
  let read = 0;
  let isClosed = false;
  async function* rows() {
    try {
      for (; read < 1_000_000; read += 1) yield { n: read };
    } finally {
      isClosed = true;
    }
  }
  const stream = open(rows());
  await once(stream, 'readable');
  await new Promise((resolve) => setImmediate(resolve));
  expect(read).toBeLessThan(100_000);
  stream.destroy();
  await once(stream, 'close');
  expect(isClosed).toBe(true);
});

test('an export of any size has a few chunks in memory, also for a slow reader', async () => {
  const ROWS = 40_000;
  let [read, most, bytes] = [0, 0, 0];
  async function* rows() {
    for (; read < ROWS; read += 1) yield { reference: `order-${read}`.padEnd(100) };
  }
  const stream = csvStream(rows(), [['reference', ({ reference }) => reference]]);
  const reader = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      bytes += chunk.length;
      most = Math.max(most, read * 102 - bytes, stream.readableLength);
      setImmediate(done);
    },
  });
  await pipeline(stream, reader);
  expect(bytes).toBe(ROWS * 102 + '\uFEFFreference\r\n'.length + 2);
  expect(most).toBeLessThan(256 * 1_024);
});

test('an account has at most four exports at once: one that ends, fails or is left makes place for another', async () => {
  const exports = createExports(4);
  async function* rows(isBroken = false) {
    yield { n: 1 };
    if (isBroken) throw new Error('away');
  }
  const begin = (account: string, isBroken = false) =>
    exports.begin(account, () => open(rows(isBroken)));
  const isRefused = () => begin('a') === null;
  const [ended, left, failed] = [begin('a'), begin('a'), begin('a', true)];
  expect([1, 2, 3].map(isRefused)).toEqual([false, true, true]);
  expect(begin('b')).not.toBeNull();
  await ended?.toArray();
  left?.destroy();
  await expect(failed?.toArray()).rejects.toThrow('away');
  await new Promise((resolve) => setImmediate(resolve));
  expect([1, 2, 3, 4].map(isRefused)).toEqual([false, false, false, true]);
  const unopened = () => {
    throw new Error('away');
  };
  for (let n = 0; n < 5; n += 1) expect(() => exports.begin('c', unopened)).toThrow('away');
});

test.each([
  ['10.50', 'EUR', 1_050],
  ['10,5', 'EUR', 1_050],
  [' 7 ', 'JPY', 7],
  ['1.234', 'KWD', 1_234],
  ['1,000', 'KWD', undefined],
  ['1.0', 'JPY', undefined],
  ['1e3', 'EUR', undefined],
  ['', 'EUR', undefined],
])('the amount %j in %s is read as %p minor units', (text, currency, amount) => {
  expect(parseMoney(text, currency)).toBe(amount);
});
