import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

/** Half of a secret is random, half its signature: 128 bits each. */
const HALF_BYTES = 16;

/** Creates a secret that the holder of the key recognizes without a database. */
export function createSignedSecret(key: Buffer, use: string): string {
  const random = randomBytes(HALF_BYTES);
  return Buffer.concat([random, sign(key, use, random)]).toString('base64url');
}

export function isSignedSecret(key: Buffer, use: string, secret: string): boolean {
  const bytes = Buffer.from(secret, 'base64url');
  if (bytes.length !== 2 * HALF_BYTES) return false;
  const [random, signature] = [bytes.subarray(0, HALF_BYTES), bytes.subarray(HALF_BYTES)];
  return timingSafeEqual(sign(key, use, random), signature);
}

function sign(key: Buffer, use: string, random: Buffer): Buffer {
  const signature = createHmac('sha256', key).update(`${use}\n`).update(random).digest();
  return signature.subarray(0, HALF_BYTES);
}
