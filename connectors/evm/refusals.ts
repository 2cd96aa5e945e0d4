import { type Address, getAddress, isAddress, zeroAddress } from 'viem';
import type { SettlementInstruction } from '../contract/crypto';
import { type Assets, servedAsset } from './assets';

export interface RefusalReason {
  code: string;
  message: string;
}

export const REVERTS: RefusalReason = {
  code: 'wallet_refused',
  message: 'The chain would refuse a transfer to this wallet.',
};

/** Reason for which this connector never pays an instruction. */
export function findRefusal(
  { assets, payer }: { assets: Assets; payer: Address },
  { asset, network, wallet_address: wallet, livemode }: SettlementInstruction,
): RefusalReason | undefined {
  if (!livemode) {
    return { code: 'sandbox_not_supported', message: 'This chain pays no sandbox settlements.' };
  }
  if (servedAsset(assets, asset, network) === undefined) {
    return { code: 'asset_not_available', message: 'This connector does not pay this asset.' };
  }
  if (!isAddress(wallet)) {
    return { code: 'wallet_invalid', message: 'The wallet is no address of this network.' };
  }
  const lossAddresses = [zeroAddress, assets.usdc, payer];
  if (lossAddresses.includes(getAddress(wallet))) {
    return { code: 'wallet_invalid', message: 'Money that is sent to this wallet would be lost.' };
  }
  return undefined;
}
