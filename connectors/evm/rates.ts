import { readFile } from 'node:fs/promises';
import type { Collection, Db } from 'mongodb';
import { request } from 'undici';
import { z } from 'zod';
import { minorUnitDigits } from '../../src/domain/money/money';

const TIMEOUT_MS = 5_000;
const PRICE = /^(?=.*[1-9])\d{1,18}(\.\d{1,18})?$/;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

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
    const isUrl = /^https?:/.test(location);
    const text = isUrl ? await fetchText(location) : await readFile(location, 'utf8');
    let rates: Rates;
    try {
      rates = Rates.parse(JSON.parse(text));
    } catch {
      throw new Error('The rates are not of the documented shape (docs/evm.md).');
    }
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

async function fetchText(url: string): Promise<string> {
  const { statusCode, body } = await request(url, {
    headersTimeout: TIMEOUT_MS,
    bodyTimeout: TIMEOUT_MS,
  });
  const text = await body.text();
  if (statusCode !== 200) throw new Error(`The source of rates answered ${statusCode}.`);
  return text;
}

interface Anchor {
  _id: string;
  price: string;
  at: Date;
}

interface RateBoundsDeps {
  db: Db;
  /** Percent in an hour. */
  changeMax: number;
  /** Percent by which two sources may differ, and USDC from one dollar. */
  differenceMax: number;
  readSecond: (() => Promise<Rates>) | undefined;
  now: () => Date;
}

interface RatePair {
  asset: string;
  currency: string;
}

/**
 * Prices must be near the last accepted one and the second source, and USDC near one dollar.
 * @returns function that returns the reason for a refusal, and throws Error if the second source
 *   cannot be read
 */
export function createRateBounds(deps: RateBoundsDeps) {
  const { db, changeMax, differenceMax, readSecond, now } = deps;
  const anchors: Collection<Anchor> = db.collection<Anchor>('rates');
  const isNear = (one: number, other: number) => getChange(one, other) <= differenceMax;
  return async (rates: Rates, { asset, currency }: RatePair): Promise<string | undefined> => {
    const price = rates.rates[asset]?.[currency];
    if (price === undefined) return undefined;
    const pair = `${asset} in ${currency}`;
    // USDC's own price in dollars, and that by way of ether.
    const { USDC = {}, ETH = {} } = rates.rates;
    const dollar = Number(ETH['USD']) / Number(ETH[currency]);
    const dollars = asset === 'USDC' ? [Number(USDC['USD']), Number(USDC[currency]) * dollar] : [];
    const wrongDollar = dollars.find((each) => Number.isFinite(each) && !isNear(each, 1));
    if (wrongDollar !== undefined) return `USDC costs ${wrongDollar} USD.`;
    if (readSecond !== undefined) {
      const second = (await readSecond()).rates[asset]?.[currency];
      if (second === undefined) return `The second source has no price of ${pair}.`;
      if (!isNear(Number(price), Number(second))) {
        return `The price of ${pair} is ${price}, and ${second} at the second source.`;
      }
    }
    const anchor = await anchors.findOne({ _id: `${asset}:${currency}` });
    const age = anchor === null ? 0 : now().getTime() - anchor.at.getTime();
    const hours = Math.max(1, age / HOUR_MS);
    if (anchor !== null && getChange(Number(price), Number(anchor.price)) > changeMax * hours) {
      return `The price of ${pair} is ${price}, and was ${anchor.price} at ${anchor.at.toISOString()}.`;
    }
    // Anchors hold for an hour, so that many small steps are no more than one.
    if (anchor === null || age >= HOUR_MS) {
      const update = { $set: { price, at: now() } };
      await anchors.updateOne({ _id: `${asset}:${currency}` }, update, { upsert: true });
    }
    return undefined;
  };
}

export type RateBounds = ReturnType<typeof createRateBounds>;

function getChange(one: number, other: number): number {
  return (Math.max(one, other) / Math.min(one, other) - 1) * 100;
}
