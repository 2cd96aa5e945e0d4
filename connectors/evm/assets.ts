import type { Address } from 'viem';

export interface Assets {
  /** Contract of USDC; without it, only ether is served. */
  usdc: Address | undefined;
}

export const NETWORK = 'ethereum';

export type Asset = 'ETH' | 'USDC';

export const DECIMALS: Record<Asset, number> = { ETH: 18, USDC: 6 };

export function servedAsset({ usdc }: Assets, asset: string, network: string): Asset | undefined {
  if (network !== NETWORK) return undefined;
  if (asset === 'ETH') return asset;
  return asset === 'USDC' && usdc !== undefined ? asset : undefined;
}
