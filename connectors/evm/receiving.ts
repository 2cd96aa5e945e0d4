import type {
  AddressAnswer,
  AddressInstruction,
  RateAnswer,
  RateQuestion,
  ScreeningAnswer,
  ScreeningQuestion,
} from '../contract/crypto';
import type { Addresses } from './addresses';
import { type Assets, DECIMALS, servedAsset } from './assets';
import type { ChainBook } from './chain-store';
import type { Deposits } from './deposits';
import type { RatesReader } from './rates';
import type { Screening } from './screening';

export interface ReceivingDeps {
  assets: Assets;
  chainId: number;
  confirmations: number;
  addresses: Addresses;
  book: Pick<ChainBook, 'cursor'>;
  deposits: Pick<Deposits, 'find'>;
  rates: RatesReader;
  screening: Screening;
}

const NOT_SERVED = {
  outcome: 'declined',
  code: 'asset_not_available',
  message: 'This connector does not take this asset.',
} as const;

const NO_SANDBOX = {
  outcome: 'declined',
  code: 'sandbox_not_supported',
  message: 'This chain takes no sandbox payments.',
} as const;

export async function quoteRate(
  { assets, rates }: ReceivingDeps,
  { amount, currency, asset, network, livemode }: RateQuestion,
): Promise<RateAnswer> {
  const served = servedAsset(assets, asset, network);
  if (served === undefined) return NOT_SERVED;
  if (!livemode) return NO_SANDBOX;
  const quote = await rates({ amount, currency, asset: served, decimals: DECIMALS[served] });
  if (quote === undefined) {
    const message = `There is no rate between ${asset} and ${currency}.`;
    return { outcome: 'declined', code: 'rate_not_available', message };
  }
  return { outcome: 'quoted', amount_due: String(quote.due), rate: quote.price };
}

/** @throws Error while the chain is not followed yet */
export async function giveAddress(
  { assets, chainId, confirmations, addresses, book }: ReceivingDeps,
  { crypto_payment_id, asset, network, livemode }: AddressInstruction,
): Promise<AddressAnswer> {
  const served = servedAsset(assets, asset, network);
  if (served === undefined) return NOT_SERVED;
  if (!livemode) return NO_SANDBOX;
  if ((await book.cursor()) === null) throw new Error('The chain is not followed yet.');
  const terms = { asset: served, required_confirmations: confirmations };
  const { address, required_confirmations } = await addresses.give(crypto_payment_id, terms);
  const answer = { outcome: 'given', address, chain_id: chainId } as const;
  return {
    ...answer,
    required_confirmations,
    ...(served === 'USDC' ? { token_contract: assets.usdc } : {}),
  };
}

/**
 * Screens all senders of a deposit.
 * @throws Error for an unknown deposit, and if the list cannot be read, so that nobody passes then
 */
export async function screenSource(
  { deposits, screening }: ReceivingDeps,
  { crypto_payment_id, transaction_id }: ScreeningQuestion,
): Promise<ScreeningAnswer> {
  const rows = await deposits.find(crypto_payment_id, transaction_id);
  if (rows.length === 0) throw new Error('There is no such deposit in the book.');
  const listedSource = await screening(rows.flatMap(({ sources }) => sources));
  if (listedSource === undefined) return { outcome: 'passed' };
  // The answer never names the address.
  return { outcome: 'failed', code: 'source_listed', reason: 'A source is on the screening list.' };
}
