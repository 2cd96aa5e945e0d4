import * as Keystore from 'ox/Keystore';
import type { Hex } from 'viem';
import { type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts';
import { z } from 'zod';

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
  const keystore = parseKeystore(file);
  const key = await Keystore.toKeyAsync(keystore, { password });
  return privateKeyToAccount(decryptKey(keystore, key));
}

function parseKeystore(file: string): Keystore.Keystore {
  try {
    return KeystoreFile.parse(JSON.parse(file));
  } catch {
    throw new Error('The keystore is no JSON of version 3 (scrypt or pbkdf2, aes-128-ctr).');
  }
}

function decryptKey(keystore: Keystore.Keystore, key: Keystore.Key): Hex {
  try {
    return Keystore.decrypt(keystore, key);
  } catch {
    throw new Error('The keystore does not open with this password.');
  }
}
