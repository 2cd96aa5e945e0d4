import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { amountDue, createRates } from '../../../../connectors/evm/rates';
import { answer, useScriptedServer } from '../../../clients/unit/scripted-server';

const now = () => new Date('2026-05-01T12:01:00Z');
const writeRates = (rates: object, as_of = '2026-05-01T12:00:00Z') =>
  JSON.stringify({ as_of, rates });

const server = useScriptedServer();
const folder = mkdtempSync(join(tmpdir(), 'rates-'));
afterAll(() => rmSync(folder, { recursive: true }));

const path = join(folder, 'rates.json');
const createReader = (location = path) => createRates({ location, ageSecondsMax: 300 }, now);

test.each([
  ['ETH', 18, 10_000, 'EUR', '2000', 50_000_000_000_000_000n],
  ['USDC', 6, 1_000, 'EUR', '0.8', 12_500_000n],
  ['USDC', 6, 1, 'EUR', '3', 3_334n],
  ['ETH', 18, 99_999_999_999, 'JPY', '1', 99_999_999_999n * 10n ** 18n],
  ['USDC', 6, 1_234, 'KWD', '0.000001', 1_234_000_000_000n],
])('due in %s of %i digits for %i %s at %s: %s', (_, decimals, amount, currency, price, due) => {
  expect(amountDue({ decimals, amount, currency }, price)).toBe(due);
});

test('what is due is worth the amount at least, and one unit less is not', () => {
  const price = fc.tuple(fc.bigInt(1n, 10n ** 18n), fc.integer({ min: 0, max: 18 }));
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 99_999_999_999 }), price, (amount, [digits, places]) => {
      const padded = String(digits).padStart(places + 1, '0');
      const cut = padded.length - places;
      const written = `${padded.slice(0, cut)}${places === 0 ? '' : `.${padded.slice(cut)}`}`;
      const due = amountDue({ amount, currency: 'EUR', decimals: 18 }, written);
      const worth = (units: bigint) => units * digits * 100n;
      const owed = BigInt(amount) * 10n ** BigInt(18 + places);
      expect(worth(due) >= owed && worth(due - 1n) < owed).toBe(true);
    }),
  );
});

test('a file with rates is read again each time', async () => {
  const read = createReader();
  for (const rates of [{ ETH: { EUR: '2000' } }, { ETH: { EUR: '1000.5' } }]) {
    writeFileSync(path, writeRates(rates));
    expect((await read()).rates).toEqual(rates);
  }
});

test('rates are read over HTTP, and an error of the server is not a rate', async () => {
  const rates = { ETH: { EUR: '2000' } };
  server.script.push(answer(200, writeRates(rates)), answer(503, writeRates(rates)));
  // By its address, since undici keeps the worker open with what it tries for the name.
  const read = createReader(server.url.replace('localhost', '127.0.0.1'));
  expect((await read()).rates).toEqual(rates);
  await expect(read()).rejects.toThrow('answered 503');
});

test.each([
  ['too old', writeRates({ ETH: { EUR: '2000' } }, '2026-05-01T11:55:59Z'), 'too old'],
  [
    'from the future',
    writeRates({ ETH: { EUR: '2000' } }, '2026-05-01T12:02:01Z'),
    'not of our time',
  ],
  ['zero', writeRates({ ETH: { EUR: '0.00' } }), 'documented shape'],
  ['negative', writeRates({ ETH: { EUR: '-1' } }), 'documented shape'],
  ['numbers', writeRates({ ETH: { EUR: 2000 } }), 'documented shape'],
  ['not JSON', 'ETH 2000', 'documented shape'],
])('rates that are %s are refused', async (_, text, message) => {
  writeFileSync(path, text);
  await expect(createReader()()).rejects.toThrow(message);
});
