import { randomBytes } from 'node:crypto';
import { createStaticKeyRing } from '../../src/encryption/key-ring';
import type { ServiceKeys } from '../../src/encryption/service-keys';

export function newServiceKeys(): ServiceKeys {
  return {
    seal: createStaticKeyRing({ current: 'k1', keys: { k1: randomBytes(32) } }),
    pay_token: randomBytes(32),
    fingerprint: randomBytes(32),
  };
}
