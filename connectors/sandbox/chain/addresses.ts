import { sha256 } from '@noble/hashes/sha2';
import { bech32, createBase58check } from '@scure/base';
import { checksum } from 'ox/Address';
import type { Network } from '../../../src/domain/crypto/assets';

const TRON = 0x41;

/**
 * Derives valid addresses without a known key. Bitcoin's are of its test network, so that nobody
 * sends real funds there.
 */
export const deriveAddress: Record<Network, (name: string) => string> = {
  bitcoin: (name) => bech32.encode('tb', [0, ...bech32.toWords(deriveBytes(name))]),
  ethereum: (name) => checksum(`0x${Buffer.from(deriveBytes(name)).toString('hex')}`),
  tron: (name) => createBase58check(sha256).encode(Uint8Array.of(TRON, ...deriveBytes(name))),
};

function deriveBytes(name: string): Uint8Array {
  return sha256(`sandbox-chain:${name}`).subarray(0, 20);
}
