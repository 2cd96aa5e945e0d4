import { createHash, ECDH } from 'node:crypto';
import * as Keystore from 'ox/Keystore';
import { type Address, toHex } from 'viem';
import {
  HDKey,
  type PrivateKeyAccount,
  privateKeyToAccount,
  publicKeyToAddress,
} from 'viem/accounts';
import { z } from 'zod';

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
  let account: HDKey;
  try {
    account = HDKey.fromExtendedKey(text.trim());
  } catch {
    // The parser's own error may quote the key.
    throw new Error('The extended key is not one of BIP-32 (xpub…).');
  }
  if (account.privateKey !== null) {
    throw new Error('The extended key is a private one: give the public one (xpub) in its place.');
  }
  const receiving = account.deriveChild(RECEIVING);
  const { publicExtendedKey } = account;
  return {
    fingerprint: createHash('sha256').update(publicExtendedKey).digest('hex').slice(0, 16),
    addressAt: (index) => {
      const { publicKey } = receiving.deriveChild(index);
      if (publicKey === null) throw new Error('The extended key has no child there.');
      const point = ECDH.convertKey(publicKey, 'secp256k1', undefined, undefined, 'uncompressed');
      return publicKeyToAddress(typeof point === 'string' ? `0x${point}` : toHex(point));
    },
  };
}

const hex = z.string().regex(/^[0-9a-f]+$/i);

const KeystoreFile = z.object({
  version: z.literal(3),
  id: z.string().default(''),
  crypto: z.intersection(
    z.object({
      cipher: z.literal('aes-128-ctr'),
      ciphertext: hex,
      cipherparams: z.object({ iv: hex }),
      mac: hex,
    }),
    z.discriminatedUnion('kdf', [
      z.object({
        kdf: z.literal('scrypt'),
        kdfparams: z.object({
          dklen: z.number(),
          n: z.number(),
          p: z.number(),
          r: z.number(),
          salt: hex,
        }),
      }),
      z.object({
        kdf: z.literal('pbkdf2'),
        kdfparams: z.object({
          c: z.number(),
          dklen: z.number(),
          prf: z.literal('hmac-sha256'),
          salt: hex,
        }),
      }),
    ]),
  ),
});

/** @throws Error, which quotes neither file nor password */
export async function decryptKeystore(file: string, password: string): Promise<PrivateKeyAccount> {
  let keystore: Keystore.Keystore;
  try {
    keystore = KeystoreFile.parse(JSON.parse(file));
  } catch {
    throw new Error('The keystore is no JSON of version 3 (scrypt or pbkdf2, aes-128-ctr).');
  }
  const key = await Keystore.toKeyAsync(keystore, { password });
  try {
    return privateKeyToAccount(Keystore.decrypt(keystore, key));
  } catch {
    throw new Error('The keystore does not open with this password.');
  }
}
