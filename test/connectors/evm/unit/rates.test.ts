import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { amountDue, createRates } from '../../../../connectors/evm/rates';

const AS_OF = '2026-05-01T12:00:00Z';
const now = () => new Date('2026-05-01T12:01:00Z');
const ETHER = { amount: 10_000, currency: 'EUR', decimals: 18 };
const text = (rates: object, as_of = AS_OF) => JSON.stringify({ as_of, rates });

let folder: string;
let place: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'rates-'));
  place = join(folder, 'rates.json');
});
afterEach(() => rmSync(folder, { recursive: true }));

const prices = async () =>
  (await createRates({ location: place, ageSecondsMax: 300 }, now)()).rates;

it.each([
  ['ETH', 18, 10_000, 'EUR', '2000', 50_000_000_000_000_000n],
  ['USDC', 6, 1_000, 'EUR', '0.8', 12_500_000n],
  ['USDC', 6, 1, 'EUR', '3', 3_334n],
  ['ETH', 18, 99_999_999_999, 'JPY', '1', 99_999_999_999n * 10n ** 18n],
  ['USDC', 6, 1_234, 'KWD', '0.000001', 1_234_000_000_000n],
])('%s of %i digits for %i %s at %s', (_, decimals, amount, currency, price, due) => {
  expect(amountDue({ decimals, amount, currency }, price)).toBe(due);
});

test('what is due is worth the amount at least, and one unit less is not', () => {
  const price = fc.tuple(fc.bigInt(1n, 10n ** 18n), fc.integer({ min: 0, max: 18 }));
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 99_999_999_999 }), price, (amount, [digits, places]) => {
      const padded = String(digits).padStart(places + 1, '0');
      const cut = padded.length - places;
      const written = `${padded.slice(0, cut)}${places === 0 ? '' : `.${padded.slice(cut)}`}`;
      const due = amountDue({ ...ETHER, amount }, written);
      const worth = (units: bigint) => units * digits * 100n;
      const asked = BigInt(amount) * 10n ** BigInt(18 + places);
      expect(worth(due) >= asked && worth(due - 1n) < asked).toBe(true);
    }),
  );
});

test('prices come from a file, read anew each time', async () => {
  writeFileSync(place, text({ ETH: { EUR: '2000' } }));
  expect(await prices()).toEqual({ ETH: { EUR: '2000' } });
  writeFileSync(place, text({ ETH: { EUR: '1000.5' } }));
  expect(await prices()).toEqual({ ETH: { EUR: '1000.5' } });
});

test('prices come over HTTP, and an error of their source is none of a price', async () => {
  let status = 200;
  const server = createServer((_, answer) => {
    answer.writeHead(status).end(text({ ETH: { EUR: '2000' } }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const at = server.address();
  const port = at !== null && typeof at === 'object' ? at.port : 0;
  const ask = createRates({ location: `http://127.0.0.1:${port}/`, ageSecondsMax: 300 }, now);
  expect((await ask()).rates).toEqual({ ETH: { EUR: '2000' } });
  status = 503;
  await expect(ask()).rejects.toThrow('answered 503');
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

it.each([
  ['too old', text({ ETH: { EUR: '2000' } }, '2026-05-01T11:55:59Z'), 'too old'],
  ['from the future', text({ ETH: { EUR: '2000' } }, '2026-05-01T12:02:01Z'), 'not of our time'],
  ['of nothing', text({ ETH: { EUR: '0.00' } }), 'documented shape'],
  ['negative', text({ ETH: { EUR: '-1' } }), 'documented shape'],
  ['a number', text({ ETH: { EUR: 2000 } }), 'documented shape'],
  ['no JSON', 'ETH 2000', 'documented shape'],
])('prices that are %s are refused', async (_, written, why) => {
  writeFileSync(place, written);
  await expect(prices()).rejects.toThrow(why);
});
