import type { Collection, Db } from 'mongodb';
import type { Rates } from './rates';

interface Anchor {
  _id: string;
  price: string;
  at: Date;
}

export interface RateBoundsDeps {
  db: Db;
  /** Percent in an hour. */
  changeMax: number;
  /** Percent by which two sources may differ, and USDC from one dollar. */
  differenceMax: number;
  readSecond: (() => Promise<Rates>) | undefined;
  now: () => Date;
}

export interface RatePair {
  asset: string;
  currency: string;
}

const HOUR_MS = 3_600_000;

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
    const dollars = asset === 'USDC' ? listDollarPrices(rates, currency) : [];
    const wrongDollar = dollars.find((each) => !isNear(each, 1));
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

/** USDC's own price in dollars, and that by way of ether. */
function listDollarPrices({ rates }: Rates, currency: string): number[] {
  const { USDC = {}, ETH = {} } = rates;
  const dollar = Number(ETH['USD']) / Number(ETH[currency]);
  const prices = [Number(USDC['USD']), Number(USDC[currency]) * dollar];
  return prices.filter((price) => Number.isFinite(price));
}
