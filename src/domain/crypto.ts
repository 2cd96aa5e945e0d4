/** Rules of an asset on one network. @see docs/api.md#crypto */
interface AssetRules {
  asset: string;
  network: string;
  display_name: string;
  /** Digits behind the point of one whole coin: its smallest unit is 10 to the minus that. */
  decimals: number;
  /** Time in which the payer may pay, unless the installation says another. */
  window_seconds: number;
  /** Smallest units below which the daily settlement leaves a balance alone. */
  settled_from: string;
}

const HALF_AN_HOUR = 30 * 60;

/** Every asset that can be taken, each on one network. @see docs/decisions.md#crypto */
export const ASSETS = [
  {
    asset: 'BTC',
    network: 'bitcoin',
    display_name: 'Bitcoin',
    decimals: 8,
    window_seconds: HALF_AN_HOUR,
    settled_from: '10000',
  },
  {
    asset: 'ETH',
    network: 'ethereum',
    display_name: 'Ether',
    decimals: 18,
    window_seconds: HALF_AN_HOUR,
    settled_from: '1000000000000000',
  },
  {
    asset: 'USDC',
    network: 'ethereum',
    display_name: 'USD Coin on Ethereum',
    decimals: 6,
    window_seconds: HALF_AN_HOUR,
    settled_from: '1000000',
  },
  {
    asset: 'USDT',
    network: 'tron',
    display_name: 'Tether on Tron',
    decimals: 6,
    window_seconds: HALF_AN_HOUR,
    settled_from: '1000000',
  },
] as const satisfies readonly AssetRules[];

export type AssetCode = (typeof ASSETS)[number]['asset'];
export type Network = (typeof ASSETS)[number]['network'];

export const ASSET_CODES = ['BTC', 'ETH', 'USDC', 'USDT'] as const satisfies readonly AssetCode[];
export const NETWORKS = ['bitcoin', 'ethereum', 'tron'] as const satisfies readonly Network[];

/** An asset and the network that it moves on. */
export interface Coin {
  asset: AssetCode;
  network: Network;
}

/** Rules of a pair; undefined where the asset does not exist on that network. */
export function assetRules(asset: string, network: string): (AssetRules & Coin) | undefined {
  return ASSETS.find((rules) => rules.asset === asset && rules.network === network);
}

/** Rules of a pair that was accepted before. @throws RangeError for any other */
function rulesOf({ asset, network }: { asset: string; network: string }): AssetRules & Coin {
  const rules = assetRules(asset, network);
  if (rules === undefined) throw new RangeError(`No asset: ${asset} on ${network}`);
  return rules;
}

const WINDOW_MINUTES_MAX = 24 * 60;

/** Times in which payers may pay, in seconds, by asset: those that differ from the usual ones. */
export type Windows = ReadonlyMap<string, number>;

/**
 * Reads `BTC=60,ETH=15`: whole minutes, up to a day. @throws RangeError naming the entry at fault
 */
export function readWindows(text: string): Windows {
  const entries = text.split(',').filter((entry) => entry.trim() !== '');
  return new Map(
    entries.map((entry) => {
      const [asset = '', minutes = ''] = entry.split('=', 2).map((part) => part.trim());
      const isKnown = ASSET_CODES.some((code) => code === asset);
      const count = /^\d{1,4}$/.test(minutes) ? Number(minutes) : 0;
      if (!isKnown || count < 1 || count > WINDOW_MINUTES_MAX) {
        throw new RangeError(
          `"${entry.trim()}" is no ASSET=MINUTES, from 1 to ${WINDOW_MINUTES_MAX}`,
        );
      }
      return [asset, count * 60];
    }),
  );
}

/** Name of a pair in routing and in the Temporal UI, such as `eth_ethereum`. */
export function cryptoMethod({ asset, network }: { asset: string; network: string }): string {
  return `${asset.toLowerCase()}_${network}`;
}

/** Names of all pairs. */
export const CRYPTO_METHODS: readonly string[] = Object.freeze(ASSETS.map(cryptoMethod));

/** Form of an amount in an asset's smallest unit: a positive integer without leading zeros. */
export const UNITS = /^[1-9]\d{0,27}$/;

/**
 * Reads an amount in the smallest unit of its asset. @throws RangeError for anything but an integer
 */
export function unitsOf(text: string): bigint {
  if (!/^-?\d{1,40}$/.test(text)) throw new RangeError(`No amount in units: ${text}`);
  return BigInt(text);
}

/** Writes an amount as a decimal number of whole coins, exact and without trailing zeros. */
export function wholeCoins(units: bigint, decimals: number): string {
  const digits = String(units < 0n ? -units : units).padStart(decimals + 1, '0');
  const whole = digits.slice(0, digits.length - decimals);
  const fraction = digits.slice(digits.length - decimals).replace(/0+$/, '');
  return `${units < 0n ? '-' : ''}${whole}${fraction === '' ? '' : `.${fraction}`}`;
}

/** Writes an amount for people: `formatUnits('1500000000000000000', …)` is `1.5 ETH`. */
export function formatUnits(
  units: bigint | string,
  coin: { asset: string; network: string },
): string {
  const exact = typeof units === 'string' ? unitsOf(units) : units;
  return `${wholeCoins(exact, rulesOf(coin).decimals)} ${coin.asset}`;
}

/** Place to which the payer sends, as the connector gave it. */
export interface PayTo {
  asset: string;
  network: string;
  address: string;
  /** Smallest units. */
  amount_due: string;
  /** Chain of EIP-155; networks that have none leave it out. */
  chain_id?: number | null | undefined;
  /** Contract of a token; the network's own coin has none. */
  token_contract?: string | null | undefined;
}

/**
 * URI that a wallet opens with address and amount filled in: BIP-21 for bitcoin, EIP-681 for
 * ethereum, and in the manner of BIP-21 for tron, which has no standard.
 */
export function paymentUri({ chain_id, token_contract, ...to }: PayTo): string {
  const { asset, network, address, amount_due } = to;
  const coins = wholeCoins(unitsOf(amount_due), rulesOf(to).decimals);
  if (network === 'bitcoin') return `bitcoin:${address}?amount=${coins}`;
  if (network === 'tron') return `tron:${address}?amount=${coins}&token=${asset}`;
  const chain = chain_id ? `@${chain_id}` : '';
  return token_contract
    ? `ethereum:${token_contract}${chain}/transfer?address=${address}&uint256=${amount_due}`
    : `ethereum:${address}${chain}?value=${amount_due}`;
}

/** Currency under which the ledger keeps a pair, such as `ETH.ethereum`: a book of its own. */
export function bookCurrency({ asset, network }: { asset: string; network: string }): string {
  return `${asset}.${network}`;
}

/** Pair whose book has this currency; undefined for one of ISO 4217. */
export function coinOfBook(currency: string): Coin | undefined {
  const [asset = '', network = ''] = currency.split('.');
  const rules = assetRules(asset, network);
  return rules && { asset: rules.asset, network: rules.network };
}
