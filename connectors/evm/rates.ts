import { readFile } from 'node:fs/promises';
import { request } from 'undici';
import { z } from 'zod';
import { minorUnitDigits } from '../../src/domain/money';

const TIMEOUT_MS = 5_000;
const PRICE = /^(?=.*[1-9])\d{1,18}(\.\d{1,18})?$/;
const MINUTE_MS = 60_000;

/** Decimal prices of one whole unit, by asset and currency. */
const Rates = z.object({
  as_of: z.iso.datetime({ offset: true }),
  rates: z.record(z.string(), z.record(z.string(), z.string().regex(PRICE))),
});

export type Rates = z.infer<typeof Rates>;

interface RateQuery {
  /** Minor units. */
  amount: number;
  currency: string;
  decimals: number;
}

/**
 * @param source `location` is a path or `https://…`
 * @returns function that throws Error if the prices are unreachable, malformed or too old
 */
export function createRates(
  { location, ageSecondsMax }: { location: string; ageSecondsMax: number },
  now: () => Date,
) {
  return async (): Promise<Rates> => {
    const rates = parseRates(await read(location));
    const age = now().getTime() - Date.parse(rates.as_of);
    if (age > ageSecondsMax * 1_000 || age < -MINUTE_MS) {
      throw new Error(`The rates are of ${rates.as_of}: too old, or not of our time.`);
    }
    return rates;
  };
}

export type RatesReader = ReturnType<typeof createRates>;

/** Smallest units, rounded up. */
export function amountDue({ amount, currency, decimals }: RateQuery, price: string): bigint {
  const [whole = '', fraction = ''] = price.split('.');
  const scaled = BigInt(whole + fraction);
  const numerator = BigInt(amount) * 10n ** BigInt(decimals + fraction.length);
  const denominator = scaled * 10n ** BigInt(minorUnitDigits(currency));
  return (numerator + denominator - 1n) / denominator;
}

async function read(location: string): Promise<string> {
  if (!/^https?:/.test(location)) return await readFile(location, 'utf8');
  const { statusCode, body } = await request(location, {
    headersTimeout: TIMEOUT_MS,
    bodyTimeout: TIMEOUT_MS,
  });
  const text = await body.text();
  if (statusCode !== 200) throw new Error(`The source of rates answered ${statusCode}.`);
  return text;
}

function parseRates(text: string): Rates {
  try {
    return Rates.parse(JSON.parse(text));
  } catch {
    throw new Error('The rates are not of the documented shape (docs/evm.md).');
  }
}
