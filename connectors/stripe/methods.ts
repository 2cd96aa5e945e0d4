import type { PaymentMethodId } from '../../src/domain/payment/catalog';

/** Method of Stripe behind one of ours. */
interface StripeMethod {
  /** Name in `payment_method_types` and in `payment_method_details.type`. */
  type: 'card' | 'ideal' | 'bancontact' | 'p24' | 'multibanco' | 'mb_way';
  /** Brand of the card: all others are blocked. */
  brand?: CardBrand;
  /** Undefined: every currency of the table below. */
  currencies?: readonly string[];
}

type CardBrand = 'visa' | 'mastercard' | 'amex';

const METHODS = {
  visa: { type: 'card', brand: 'visa' },
  mastercard: { type: 'card', brand: 'mastercard' },
  amex: { type: 'card', brand: 'amex' },
  ideal: { type: 'ideal', currencies: ['EUR'] },
  bancontact: { type: 'bancontact', currencies: ['EUR'] },
  przelewy24: { type: 'p24', currencies: ['EUR', 'PLN'] },
  multibanco: { type: 'multibanco', currencies: ['EUR'] },
  mbway: { type: 'mb_way', currencies: ['EUR'] },
} as const satisfies Partial<Record<PaymentMethodId, StripeMethod>>;

export type MethodId = keyof typeof METHODS;

export const METHOD_IDS = Object.keys(METHODS) as MethodId[];

/** Stripe's names of the brands that it can block, by the name on a charge. */
const BRANDS = {
  visa: 'visa',
  mastercard: 'mastercard',
  amex: 'american_express',
  /** Discover, Diners Club, JCB and UnionPay. */
  others: 'discover_global_network',
} as const;

export function findMethod(id: string): StripeMethod | undefined {
  return Object.hasOwn(METHODS, id) ? METHODS[id as MethodId] : undefined;
}

/** Lists the brands that a payment of this method refuses. */
export function listBlockedBrands({ brand }: StripeMethod): string[] {
  if (brand === undefined) return [];
  return Object.entries(BRANDS).flatMap(([name, blocked]) => (name === brand ? [] : [blocked]));
}

/** Smallest charge in minor units, which are ISO's; JPY has none. */
const MINIMA: Readonly<Record<string, number>> = {
  ...{ AED: 200, AUD: 50, BRL: 50, CAD: 50, CHF: 50, CZK: 1_500, DKK: 250, EUR: 50 },
  ...{ GBP: 30, HKD: 400, HUF: 17_500, INR: 50, JPY: 50, MXN: 1_000, MYR: 200, NOK: 300 },
  ...{ NZD: 50, PLN: 200, RON: 200, SEK: 300, SGD: 50, THB: 1_000, USD: 50 },
};

/** Largest charge: eight digits in every currency above. */
const AMOUNT_MAX = 99_999_999;

/** Currencies that can be served: a smallest charge is published of these alone. */
export const STRIPE_CURRENCIES = Object.keys(MINIMA);

/** Finds why Stripe would not take a payment, in words for merchants. */
export function findRefusal(
  { method, amount, currency }: { method: string; amount: number; currency: string },
  served: readonly string[],
): { code: string; message: string } | undefined {
  const own = findMethod(method);
  if (own === undefined) return { code: 'not_supported', message: 'The method is not served.' };
  const { currencies = STRIPE_CURRENCIES } = own;
  if (!currencies.includes(currency) || !served.includes(currency)) {
    return { code: 'currency_not_supported', message: `${currency} is not served.` };
  }
  const min = MINIMA[currency] ?? AMOUNT_MAX;
  if (amount < min) {
    return { code: 'amount_too_small', message: `Less than ${min} (minor units) is not taken.` };
  }
  if (amount <= AMOUNT_MAX) return undefined;
  return {
    code: 'amount_too_large',
    message: `More than ${AMOUNT_MAX} (minor units) is not taken.`,
  };
}
