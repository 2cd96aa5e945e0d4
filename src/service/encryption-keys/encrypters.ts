import { createEncrypter, type Encrypter } from '../../encryption/encrypter';
import type { KeyRing } from '../../encryption/key-ring';
import { followPairs, RECIPIENT_KEY_RINGS } from '../../encryption/recipient-keys';
import { followKeyFile } from '../../encryption/service-keys';

/** Names that `keys rotate --ring` takes. */
export const KEY_RING_NAMES = ['seal', 'recipients.sandbox', 'recipients.live'] as const;
export type KeyRingName = (typeof KEY_RING_NAMES)[number];

export interface CurrentEncrypter {
  encrypter: Encrypter;
  /** Name of the current key. */
  kid: string;
  kids: string[];
}

export type Encrypters = Record<KeyRingName, CurrentEncrypter>;

export function createEncrypters(paths: { keysFile: string; keysDir: string }): Encrypters {
  return {
    seal: toEncrypter(followKeyFile(paths.keysFile).seal),
    'recipients.sandbox': toEncrypter(followPairs(paths.keysDir, 'sandbox', 'private')),
    'recipients.live': toEncrypter(followPairs(paths.keysDir, 'live', 'private')),
  };
}

function toEncrypter(keyRing: KeyRing): CurrentEncrypter {
  const { current: kid, keys } = keyRing.forEncryption();
  return { encrypter: createEncrypter(keyRing), kid, kids: Object.keys(keys) };
}

/** Names of recipients' keys begin with the name of their key ring. */
export function findKeyRingName(kid: string): KeyRingName {
  const names = Object.values(RECIPIENT_KEY_RINGS);
  return names.find((name) => kid.startsWith(`${name}:`)) ?? 'seal';
}
