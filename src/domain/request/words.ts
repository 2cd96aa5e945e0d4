import { CALLBACKS } from '../callback/callback';
import { COUNTRIES } from '../countries';
import { ASSET_CODES, CRYPTO_METHODS, NETWORKS } from '../crypto/assets';
import { SIMULATED_DEPOSITS } from '../crypto/simulation';
import { CURRENCIES } from '../currencies';
import { PAYMENT_METHOD_IDS } from '../payment/catalog';
import { RAIL_IDS } from '../payout/rails';
import { CARD_SCHEMES } from '../payout/recipient';
import { ENDPOINT_STATUSES } from '../webhook/endpoint';
import { EVENT_TYPES } from '../webhook/event';

/** Values that a request can choose from a list. */
const WORDS: readonly string[] = [
  ...COUNTRIES,
  ...CURRENCIES,
  ...PAYMENT_METHOD_IDS,
  ...CRYPTO_METHODS,
  ...ASSET_CODES,
  ...NETWORKS,
  ...RAIL_IDS,
  ...CARD_SCHEMES,
  ...Object.values(CALLBACKS).flat(),
  ...SIMULATED_DEPOSITS,
  ...EVENT_TYPES,
  ...ENDPOINT_STATUSES,
  // Types of recipients, and times at which a secret is rolled.
  ...['card', 'bank_account', 'now', '1h', '24h'],
];

const OWN_WORDS: ReadonlySet<string> = new Set(WORDS.map((word) => word.toLowerCase()));

/** Ignores case. */
export function isOwnWord(text: string): boolean {
  return OWN_WORDS.has(text.toLowerCase());
}
