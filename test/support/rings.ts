import { randomBytes } from 'node:crypto';
import { FIRST_KEY } from '../../src/config';
import { constantRing, type KeyRing, type Rings } from '../../src/keys/ring';

/** Ring of one random key, as in a key file before its first rotation. */
export function newRing(): KeyRing {
  return constantRing({ current: FIRST_KEY, keys: { [FIRST_KEY]: randomBytes(32) } });
}

export function newRings(): Rings {
  return { seal: newRing(), pay_token: newRing(), fingerprint: newRing() };
}
