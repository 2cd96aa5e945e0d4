import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import type { Environment } from '../domain/task-queues';
import { keySource } from './command';
import { refuseOpenToAll } from './file-mode';
import { checkSealingKeys, followRings, type KeyRing, ringOf, type SealingKeys } from './ring';
import { createSealer, type Sealer } from './seal';
import { followSource } from './source';

/** Rings of recipients' details. The names of their keys begin with the ring's and a colon. */
export const RECIPIENT_RINGS = {
  sandbox: 'recipients.sandbox',
  live: 'recipients.live',
} as const satisfies Record<Environment, string>;

type Part = 'private' | 'public';

const CURVE = 'P-256';

const Jwk = z.looseObject({
  kty: z.literal('EC'),
  crv: z.literal(CURVE),
  x: z.string(),
  y: z.string(),
});
const RingFile = z.object({ current: z.string(), keys: z.record(z.string(), Jwk) });

/** Path of a ring's file in `KEYS_DIR`: with its private parts, or with the public ones alone. */
export function ringPath(dir: string, environment: Environment, part: Part): string {
  const suffix = part === 'public' ? '.public.json' : '.json';
  return join(dir, `${RECIPIENT_RINGS[environment]}${suffix}`);
}

/**
 * Parses a ring of key pairs, each as a JWK.
 * @throws Error when it is none; it holds nothing of the text
 */
export function parsePairs(text: string, environment: Environment, part: Part): SealingKeys {
  const ring = RECIPIENT_RINGS[environment];
  const { current, keys } = RingFile.parse(parsedOrNone(text));
  const imported = Object.entries(keys).map(([kid, jwk]) => {
    if (!kid.startsWith(`${ring}:`))
      throw new Error(`A key of ${ring} has a name of another ring.`);
    return [kid, importedKey(kid, jwk, part)] as const;
  });
  const parsed = { current, keys: Object.fromEntries(imported) };
  checkSealingKeys(parsed);
  return parsed;
}

/** @throws Error that says nothing of the key */
function importedKey(kid: string, jwk: z.infer<typeof Jwk>, part: Part): KeyObject {
  try {
    const key = { key: jwk, format: 'jwk' } as const;
    const open = createPublicKey(key);
    if (part === 'public') return open;
    const own = createPrivateKey(key);
    if (verify('sha256', PROBE, open, sign('sha256', PROBE, own))) return own;
  } catch {
    // It may quote the key.
  }
  throw new Error(`The ${part} part of ${kid} is no key of ${CURVE}.`);
}

/** Text that a pair signs and verifies, since a private part of another pair would open nothing. */
const PROBE = Buffer.from('pair');

function parsedOrNone(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * Makes a ring that follows its file.
 * @throws Error in words when the file is missing, no ring, or for everybody to read
 */
export function followPairs(
  dir: string,
  environment: Environment,
  part: Part,
  command = '',
): KeyRing {
  const path = ringPath(dir, environment, part);
  if (command === '') {
    if (!existsSync(path)) {
      throw new Error(`${path} is missing (KEYS_DIR): \`keys split\` makes it.`);
    }
    if (part === 'private') refuseOpenToAll(path);
  }
  const parse = (text: string) => parsePairs(text, environment, part);
  return ringOf(followSource(keySource(path, command), parse), (ring) => ring);
}

/**
 * Makes the sealers of recipients' details, which have the public parts and can't open anything.
 * @throws Error in words when a file is missing or no ring
 */
export function createRecipientSealers(dir: string, command?: string): Record<Environment, Sealer> {
  return {
    sandbox: createSealer(followPairs(dir, 'sandbox', 'public', command)),
    live: createSealer(followPairs(dir, 'live', 'public', command)),
  };
}

/** Settings of a process that opens recipients' details. */
export interface RecipientKeySettings {
  /** Folder of the rings; empty where the key file's ring seals recipients. */
  KEYS_DIR: string;
  /** Key file, which opens what was sealed before there were rings of their own. */
  KEYS_FILE?: string | undefined;
  /** Program that stands for all of these files; empty or absent for none. */
  KEYS_COMMAND?: string;
}

/**
 * Makes the opener of recipients' details, of the environments that a connector serves.
 * @throws Error in words when a file is missing or no ring
 */
export function recipientOpener(
  { KEYS_DIR: dir, KEYS_FILE, KEYS_COMMAND: command }: RecipientKeySettings,
  environments: readonly Environment[],
): Pick<Sealer, 'open'> {
  const before =
    KEYS_FILE === undefined ? undefined : followRings(KEYS_FILE, undefined, command).seal;
  const pairs =
    dir === '' ? [] : environments.map((env) => followPairs(dir, env, 'private', command));
  return createSealer(byName([...pairs, ...(before === undefined ? [] : [before])]));
}

/** Makes a ring that opens with whichever has the key; the last one seals. */
export function byName(rings: readonly KeyRing[]): KeyRing {
  const none: SealingKeys = { current: '', keys: {} };
  return {
    forSealing: () => rings.at(-1)?.forSealing() ?? none,
    forOpening: (kid) => {
      for (const ring of rings) {
        const held = ring.forOpening(kid);
        if (Object.hasOwn(held.keys, kid)) return held;
      }
      return none;
    },
  };
}
