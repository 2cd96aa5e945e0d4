import { type Assets, DECIMALS } from './assets';
import type { EvmNode } from './node';

/**
 * Holds that the node is on the chain of the configuration. Asked again and again, since a provider
 * may come to answer of another one.
 * @throws Error in words
 */
export async function assertChain(node: Pick<EvmNode, 'chainId'>, chainId: number): Promise<void> {
  const actual = await node.chainId();
  if (actual === chainId) return;
  throw new Error(`The node is on chain ${actual}, and chain_id is ${chainId}.`);
}

/** @throws Error in words, when the token is not what it should be */
export async function assertToken(
  node: Pick<EvmNode, 'getDecimals'>,
  { usdc }: Assets,
): Promise<void> {
  if (usdc === undefined) return;
  const decimals = await node.getDecimals(usdc);
  if (decimals === DECIMALS.USDC) return;
  throw new Error(`The contract at usdc_address has ${decimals} decimals, and USDC has 6.`);
}
