import { createHash, ECDH } from 'node:crypto';
import { type Address, toHex } from 'viem';
import { HDKey, publicKeyToAddress } from 'viem/accounts';

/** BIP-44. */
const RECEIVING = 0;

export interface ExtendedKey {
  fingerprint: string;
  addressAt(index: number): Address;
}

/**
 * Reads an account's extended public key (`xpub…`, of `m/44'/60'/0'`).
 * @throws Error if it is none, or contains a private key
 */
export function readExtendedKey(text: string): ExtendedKey {
  const account = parseKey(text.trim());
  if (account.privateKey !== null) {
    throw new Error('The extended key is a private one: give the public one (xpub) in its place.');
  }
  const receiving = account.deriveChild(RECEIVING);
  const { publicExtendedKey } = account;
  return {
    fingerprint: createHash('sha256').update(publicExtendedKey).digest('hex').slice(0, 16),
    addressAt: (index) => deriveAddress(receiving.deriveChild(index).publicKey),
  };
}

function parseKey(text: string): HDKey {
  try {
    return HDKey.fromExtendedKey(text);
  } catch {
    // The parser's own error may quote the key.
    throw new Error('The extended key is not one of BIP-32 (xpub…).');
  }
}

function deriveAddress(publicKey: Uint8Array | null): Address {
  if (publicKey === null) throw new Error('The extended key has no child there.');
  const point = ECDH.convertKey(publicKey, 'secp256k1', undefined, undefined, 'uncompressed');
  return publicKeyToAddress(typeof point === 'string' ? `0x${point}` : toHex(point));
}
