import { readFile } from 'node:fs/promises';
import { type Address, isAddress } from 'viem';
import type {
  AddressAnswer,
  AddressInstruction,
  RateAnswer,
  RateQuestion,
  ScreeningAnswer,
  ScreeningQuestion,
} from '../contract/crypto';
import { DECIMALS, servedAsset } from './assets';
import type { EvmContext } from './context';
import { amountDue } from './rates';

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
  { assets, rates, findImplausible, findings, now }: EvmContext,
  { amount, currency, asset, network, livemode }: RateQuestion,
): Promise<RateAnswer> {
  const served = servedAsset(assets, asset, network);
  if (served === undefined) return NOT_SERVED;
  if (!livemode) return NO_SANDBOX;
  const prices = await rates();
  const rate = prices.rates[served]?.[currency];
  if (rate === undefined) {
    const message = `There is no rate between ${asset} and ${currency}.`;
    return { outcome: 'declined', code: 'rate_not_available', message };
  }
  const fault = await findImplausible(prices, { asset: served, currency });
  if (fault !== undefined) {
    const hour = now().toISOString().slice(0, 13);
    const subject = `${served}:${currency}:${hour}`;
    await findings.record({ name: 'rate_refused', subject, crypto_payment_id: null, text: fault });
    const message = `The rate between ${asset} and ${currency} is not plausible now: try again later.`;
    return { outcome: 'declined', code: 'rate_not_plausible', message };
  }
  const due = amountDue({ amount, currency, decimals: DECIMALS[served] }, rate);
  return { outcome: 'quoted', amount_due: String(due), rate };
}

/** @throws Error while the chain is not followed yet */
export async function giveAddress(
  { assets, chainId, confirmations, addresses, book }: EvmContext,
  { crypto_payment_id, asset, network, amount_due, livemode, expires_at }: AddressInstruction,
): Promise<AddressAnswer> {
  const served = servedAsset(assets, asset, network);
  if (served === undefined) return NOT_SERVED;
  if (!livemode) return NO_SANDBOX;
  if ((await book.cursor()) === null) throw new Error('The chain is not followed yet.');
  const terms = {
    asset: served,
    required_confirmations: confirmations,
    amount_due,
    check_at: new Date(expires_at),
  };
  const { address, required_confirmations } = await addresses.give(crypto_payment_id, terms);
  const token = served === 'USDC' ? { token_contract: assets.usdc } : {};
  return { outcome: 'given', address, chain_id: chainId, required_confirmations, ...token };
}

export async function readChainTime({ book, deposits }: EvmContext) {
  // Read first: a deposit that comes meanwhile is above it.
  const cursor = await book.cursor();
  if (cursor?.mined_at === undefined) return { reported_until: null };
  const unreported = await deposits.oldestUnreported();
  const until = Math.min(
    cursor.mined_at.getTime(),
    // Its own time is not reported yet.
    unreported === undefined ? Number.POSITIVE_INFINITY : unreported.mined_at.getTime() - 1,
  );
  return { reported_until: new Date(until).toISOString() };
}

/**
 * @throws Error for an unknown deposit, and if the list cannot be read, so that nobody passes then
 */
export async function screenSource(
  { deposits, screeningFile }: EvmContext,
  { crypto_payment_id, transaction_id }: ScreeningQuestion,
): Promise<ScreeningAnswer> {
  const rows = await deposits.find(crypto_payment_id, transaction_id);
  if (rows.length === 0) throw new Error('There is no such deposit in the book.');
  // Read at each call, so that a new list takes effect at once: an address per line, `#` for comments.
  const list = await readFile(screeningFile, 'utf8');
  const listed = new Set<string>();
  for (const [row, line] of list.split(/\r?\n/).entries()) {
    const address = line.replace(/#.*/, '').trim();
    if (address === '') continue;
    if (!isAddress(address, { strict: false })) {
      throw new Error(`The screening list has no address in line ${row + 1}.`);
    }
    listed.add(address.toLowerCase());
  }
  const isListed = (source: Address) => listed.has(source.toLowerCase());
  if (!rows.some(({ sources }) => sources.some(isListed))) return { outcome: 'passed' };
  // The answer never names the address.
  return { outcome: 'failed', code: 'source_listed', reason: 'A source is on the screening list.' };
}
