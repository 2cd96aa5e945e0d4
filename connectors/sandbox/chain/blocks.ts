import { createHash } from 'node:crypto';
import type { Network } from '../../../src/domain/crypto/assets';

export const BLOCK_MS = 1_000;

/** Includes the deposit's own block. */
export const REQUIRED_CONFIRMATIONS = 3;

export function heightAt(now: Date): number {
  return Math.floor(now.getTime() / BLOCK_MS);
}

/** Differs on each branch of the chain. */
export function blockHash(network: Network, height: number, branch: number): string {
  return deriveHash(network, `block:${height}:${branch}`);
}

export function transactionId(network: Network, name: string): string {
  return deriveHash(network, `transaction:${name}`);
}

function deriveHash(network: Network, name: string): string {
  const hex = createHash('sha256').update(`sandbox-chain:${network}:${name}`).digest('hex');
  return network === 'ethereum' ? `0x${hex}` : hex;
}
