import { createHash } from 'node:crypto';
import { keccak_256 } from '@noble/hashes/sha3';
import { base58, bech32 } from '@scure/base';
import type { Network } from '../../../src/domain/crypto';

/** Version byte of a Tron address. */
const TRON = 0x41;

/**
 * Derives an address with a valid checksum, each time the same one for a name. Nobody has its key.
 * Bitcoin's are those of its test network, so that no real coin is sent there.
 */
export const addressOf: Record<Network, (name: string) => string> = {
  bitcoin: (name) => bech32.encode('tb', [0, ...bech32.toWords(bytesOf(name))]),
  ethereum: (name) => withCase(bytesOf(name).toString('hex')),
  tron: (name) => withSum(Buffer.concat([Buffer.of(TRON), bytesOf(name)])),
};

function bytesOf(name: string): Buffer {
  return sha256(Buffer.from(`sandbox-chain:${name}`)).subarray(0, 20);
}

/** Writes the checksum of EIP-55 as the case of the letters. */
function withCase(hex: string): string {
  const sum = Buffer.from(keccak_256(hex)).toString('hex');
  const cased = [...hex].map((digit, i) =>
    Number.parseInt(sum[i] ?? '0', 16) > 7 ? digit.toUpperCase() : digit,
  );
  return `0x${cased.join('')}`;
}

/** Base58Check: the first four bytes of a double SHA-256 follow. */
function withSum(body: Buffer): string {
  return base58.encode(Buffer.concat([body, sha256(sha256(body)).subarray(0, 4)]));
}

function sha256(bytes: Buffer): Buffer {
  return createHash('sha256').update(bytes).digest();
}
