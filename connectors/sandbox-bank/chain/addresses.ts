import { sha256 } from '@noble/hashes/sha2';
import { bech32, createBase58check } from '@scure/base';
import type { Network } from '../../../src/domain/crypto';
import { checksummed } from '../../../src/keys/wallet-address';

/** Version byte of a Tron address. */
const TRON = 0x41;

/**
 * Derives an address with a valid checksum, each time the same one for a name. Nobody has its key.
 * Bitcoin's are those of its test network, so that no real coin is sent there.
 */
export const addressOf: Record<Network, (name: string) => string> = {
  bitcoin: (name) => bech32.encode('tb', [0, ...bech32.toWords(bytesOf(name))]),
  ethereum: (name) => checksummed(Buffer.from(bytesOf(name)).toString('hex')),
  tron: (name) => createBase58check(sha256).encode(Uint8Array.of(TRON, ...bytesOf(name))),
};

function bytesOf(name: string): Uint8Array {
  return sha256(`sandbox-chain:${name}`).subarray(0, 20);
}
