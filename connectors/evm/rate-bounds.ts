import type { Collection, Db } from 'mongodb';
import type { Rates } from './rates';

/** Price that later ones are compared with. */
interface Anchor {
  /** Asset and currency. */
  _id: string;
  price: string;
  at: Date;
}

export interface RateBoundsDeps {
  db: Db;
  /** Percent by which a price may change in an hour. */
  changeMax: number;
  /** Percent by which two sources may differ, and USDC from one dollar. */
  differenceMax: number;
  /** Reads the second source; undefined without one. */
  readSecond: (() => Promise<Rates>) | undefined;
  now: () => Date;
}

export interface RatePair {
  asset: string;
  currency: string;
}

const HOUR_MS = 3_600_000;

/**
 * Creates the check that a price is plausible: near the last accepted one and the second source,
 * and USDC near one dollar.
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
    // An anchor holds for an hour, so that many small steps are no more than one.
    if (anchor === null || age >= HOUR_MS) {
      const update = { $set: { price, at: now() } };
      await anchors.updateOne({ _id: `${asset}:${currency}` }, update, { upsert: true });
    }
    return undefined;
  };
}

export type RateBounds = ReturnType<typeof createRateBounds>;

/** Percent by which the larger price exceeds the smaller. */
function getChange(one: number, other: number): number {
  return (Math.max(one, other) / Math.min(one, other) - 1) * 100;
}

/** Prices of USDC in dollars: its own, and that in the currency by way of ether. */
function listDollarPrices({ rates }: Rates, currency: string): number[] {
  const { USDC = {}, ETH = {} } = rates;
  const dollar = Number(ETH['USD']) / Number(ETH[currency]);
  const prices = [Number(USDC['USD']), Number(USDC[currency]) * dollar];
  return prices.filter((price) => Number.isFinite(price));
}
