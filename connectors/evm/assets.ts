import type { Address } from 'viem';

/** Assets of one chain: ether, and a token where its contract is known. */
export interface Assets {
  /** Contract of USDC; ether alone is served without it. */
  usdc: Address | undefined;
}

const NETWORK = 'ethereum';

export type Asset = 'ETH' | 'USDC';

/** Digits of an asset's smallest unit. */
export const DECIMALS: Record<Asset, number> = { ETH: 18, USDC: 6 };

/** Reads a pair that this chain serves; undefined for any other. */
export function servedAsset({ usdc }: Assets, asset: string, network: string): Asset | undefined {
  if (network !== NETWORK) return undefined;
  if (asset === 'ETH') return asset;
  return asset === 'USDC' && usdc !== undefined ? asset : undefined;
}
