interface AssetRules {
  asset: string;
  network: string;
  display_name: string;
  /** Exponent: a unit has 10 to this power of the smallest. */
  decimals: number;
  /** Smallest balance that is paid out daily, in smallest units. */
  settled_from: string;
  /** Smallest units; a smaller deposit is dust unless it completes the payment. */
  least_deposit: string;
}

export const DEFAULT_WINDOW_SECONDS = 30 * 60;

/** @see docs/decisions.md#crypto */
export const ASSETS = [
  {
    asset: 'BTC',
    network: 'bitcoin',
    display_name: 'Bitcoin',
    decimals: 8,
    settled_from: '10000',
    least_deposit: '1000',
  },
  {
    asset: 'ETH',
    network: 'ethereum',
    display_name: 'Ether',
    decimals: 18,
    settled_from: '1000000000000000',
    least_deposit: '10000000000000',
  },
  {
    asset: 'USDC',
    network: 'ethereum',
    display_name: 'USD Coin on Ethereum',
    decimals: 6,
    settled_from: '1000000',
    least_deposit: '10000',
  },
  {
    asset: 'USDT',
    network: 'tron',
    display_name: 'Tether on Tron',
    decimals: 6,
    settled_from: '1000000',
    least_deposit: '10000',
  },
] as const satisfies readonly AssetRules[];

export type AssetCode = (typeof ASSETS)[number]['asset'];
export type Network = (typeof ASSETS)[number]['network'];

export const ASSET_CODES = ['BTC', 'ETH', 'USDC', 'USDT'] as const satisfies readonly AssetCode[];
export const NETWORKS = ['bitcoin', 'ethereum', 'tron'] as const satisfies readonly Network[];

interface Pair {
  asset: string;
  network: string;
}

export interface AssetPair {
  asset: AssetCode;
  network: Network;
}

export function assetRules(asset: string, network: string): (AssetRules & AssetPair) | undefined {
  return ASSETS.find((rules) => rules.asset === asset && rules.network === network);
}

function requireRules({ asset, network }: Pair): AssetRules & AssetPair {
  const rules = assetRules(asset, network);
  if (rules === undefined) throw new RangeError(`No asset: ${asset} on ${network}`);
  return rules;
}

/** Asset of network fees; null: none of ours. */
const NATIVE_ASSETS = {
  bitcoin: 'BTC',
  ethereum: 'ETH',
  tron: null,
} as const satisfies Record<Network, AssetCode | null>;

export function isNative({ asset, network }: AssetPair): boolean {
  return NATIVE_ASSETS[network] === asset;
}

const WINDOW_MINUTES_MAX = 24 * 60;

/** Seconds by asset. */
export type Windows = ReadonlyMap<string, number>;

/** Parses minutes, up to a day: `BTC=60,ETH=15`. @throws RangeError with the invalid entry */
export function readWindows(text: string): Windows {
  const entries = text.split(',').filter((entry) => entry.trim() !== '');
  return new Map(
    entries.map((entry) => {
      const [asset = '', minutes = ''] = entry.split('=', 2).map((part) => part.trim());
      const isKnown = ASSET_CODES.some((code) => code === asset);
      const count = /^\d{1,4}$/.test(minutes) ? Number(minutes) : 0;
      if (!isKnown || count < 1 || count > WINDOW_MINUTES_MAX) {
        throw new RangeError(
          `"${entry.trim()}" is not ASSET=MINUTES, from 1 to ${WINDOW_MINUTES_MAX}`,
        );
      }
      return [asset, count * 60];
    }),
  );
}

/** Name in routing and in the Temporal UI, such as `eth_ethereum`. */
export function cryptoMethod({ asset, network }: Pair): string {
  return `${asset.toLowerCase()}_${network}`;
}

export const CRYPTO_METHODS: readonly string[] = Object.freeze(ASSETS.map(cryptoMethod));

export const UNITS = /^[1-9]\d{0,27}$/;

/** @throws RangeError for anything but an integer */
export function parseUnits(text: string): bigint {
  if (!/^-?\d{1,40}$/.test(text)) throw new RangeError(`Not an amount in smallest units: ${text}`);
  return BigInt(text);
}

export function formatDecimalUnits(units: bigint, decimals: number): string {
  const digits = String(units < 0n ? -units : units).padStart(decimals + 1, '0');
  const whole = digits.slice(0, digits.length - decimals);
  const fraction = digits.slice(digits.length - decimals).replace(/0+$/, '');
  return `${units < 0n ? '-' : ''}${whole}${fraction === '' ? '' : `.${fraction}`}`;
}

/** Formats `1.5 ETH` for `1500000000000000000`. */
export function formatUnits(units: bigint | string, pair: Pair): string {
  const exact = typeof units === 'string' ? parseUnits(units) : units;
  return `${formatDecimalUnits(exact, requireRules(pair).decimals)} ${pair.asset}`;
}

/** Destination that the connector returned. */
export interface PayTo extends Pair {
  address: string;
  /** Smallest units. */
  amount_due: string;
  /** EIP-155. */
  chain_id?: number | null | undefined;
  token_contract?: string | null | undefined;
}

/** Smallest units that make a payment received. */
export function sufficientAmount(payment: {
  amount_due: string;
  tolerance_percent?: number;
}): bigint {
  const due = parseUnits(payment.amount_due);
  const hundredths = BigInt(Math.round((payment.tolerance_percent ?? 0) * 100));
  return due - (due * hundredths) / 10_000n;
}

/** BIP-21 for bitcoin, EIP-681 for ethereum; tron, without a standard, resembles BIP-21. */
export function paymentUri({ chain_id, token_contract, ...to }: PayTo): string {
  const { asset, network, address, amount_due } = to;
  const decimalAmount = formatDecimalUnits(parseUnits(amount_due), requireRules(to).decimals);
  if (network === 'bitcoin') return `bitcoin:${address}?amount=${decimalAmount}`;
  if (network === 'tron') return `tron:${address}?amount=${decimalAmount}&token=${asset}`;
  const chain = chain_id ? `@${chain_id}` : '';
  return token_contract
    ? `ethereum:${token_contract}${chain}/transfer?address=${address}&uint256=${amount_due}`
    : `ethereum:${address}${chain}?value=${amount_due}`;
}

/** Names a book, such as `ETH.ethereum`. */
export function bookCurrency({ asset, network }: Pair): string {
  return `${asset}.${network}`;
}

/** Returns undefined for an ISO 4217 code. */
export function parseBookCurrency(currency: string): AssetPair | undefined {
  const [asset = '', network = ''] = currency.split('.');
  const rules = assetRules(asset, network);
  return rules && { asset: rules.asset, network: rules.network };
}
