import { randomBytes } from 'node:crypto';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ASK_EVERY_MS, RUN_EVERY_MS, SILENT_MS_MAX } from '../../src/keys/command';
import { makeRecipientRings } from '../../src/keys/recipient-files';
import { createRecipientSealers, recipientOpener } from '../../src/keys/recipient-rings';
import { followRings } from '../../src/keys/ring';
import { createSealer, SealError } from '../../src/keys/seal';
import { KeyRingError } from '../../src/keys/source';
import { eventually } from '../support/http';

const OWNER = 'recipient/1';
const ALL_BUT_INTERVALS = [
  ...(['Date', 'hrtime', 'nextTick', 'performance', 'queueMicrotask'] as const),
  ...(['setImmediate', 'clearImmediate', 'setTimeout', 'clearTimeout'] as const),
];
let dir: string;
let command: string;
let now = 0;

/** A program as one for a KMS would be: what it has under a name, it prints. */
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'keys-command-'));
  command = join(dir, 'kms');
  writeFileSync(command, `#!/bin/sh\necho x >> "${dir}/runs"\nexec cat "${dir}/$1"\n`);
  chmodSync(command, 0o700);
  now = 0;
  put('k1');
});
afterEach(() => rmSync(dir, { recursive: true }));

const key = () => randomBytes(32).toString('base64url');
const keys: Record<string, string> = { k1: key(), k2: key() };
function put(...kids: string[]): void {
  const seal = {
    current: kids.at(-1),
    keys: Object.fromEntries(kids.map((kid) => [kid, keys[kid]])),
  };
  writeFileSync(
    join(dir, 'keys.json'),
    JSON.stringify({ pay_token: key(), fingerprint: key(), seal }),
  );
}
const follow = () => followRings('/nowhere/keys.json', () => now, command).seal;
const runs = () => readFileSync(join(dir, 'runs'), 'utf8').length / 2;

test('keys come from the program, which is asked again for one that is not in hand', async () => {
  const [ring, sealer] = [follow(), createSealer(follow())];
  const sealed = await sealer.seal('plain', OWNER);
  expect(sealer.kidOf(sealed)).toBe('k1');
  put('k1', 'k2');
  const later = await createSealer(follow()).seal('newer', OWNER);
  const asked = runs();
  await expect(createSealer(ring).open(later, OWNER)).rejects.toThrow(SealError);
  expect(runs()).toBe(asked);
  // On a busy machine the program may be given up before it has begun.
  await eventually('the newer key', async () => {
    now += ASK_EVERY_MS;
    const opened = createSealer(ring).open(later, OWNER);
    return (await opened.catch(() => undefined)) === 'newer';
  });
  expect(runs()).toBeLessThanOrEqual(asked + now / ASK_EVERY_MS);
});

test('a new current key is taken within half a minute, beside the work', async () => {
  const ring = follow();
  put('k1', 'k2');
  now = RUN_EVERY_MS;
  expect(ring.forSealing().current).toBe('k1');
  await eventually('the program has run', async () => {
    now += 1_000;
    return ring.forSealing().current === 'k2';
  });
});

test('a process that nothing asks for hours knows the current key at once, and seals', async () => {
  jest.useFakeTimers({ doNotFake: ALL_BUT_INTERVALS });
  const ring = follow();
  put('k1', 'k2');
  const asked = runs();
  now = 10 * SILENT_MS_MAX;
  jest.advanceTimersByTime(RUN_EVERY_MS);
  await eventually('the program has run', async () => runs() > asked);
  // It has printed before the process has taken it.
  await eventually('its keys', async () => {
    now += 1_000;
    try {
      return ring.forSealing().current === 'k2';
    } catch {
      return false;
    }
  });
  jest.useRealTimers();
});

test('while it fails the keys in hand do for five minutes, and open for good', async () => {
  const ring = follow();
  const sealed = await createSealer(ring).seal('plain', OWNER);
  rmSync(join(dir, 'keys.json'));
  now = SILENT_MS_MAX;
  expect(ring.forSealing().current).toBe('k1');
  now += 1_001;
  expect(() => ring.forSealing()).toThrow(KeyRingError);
  expect(await createSealer(ring).open(sealed, OWNER)).toBe('plain');
});

test('it is needed at the start, and nothing that it prints is told', () => {
  writeFileSync(join(dir, 'keys.json'), 'c2VjcmV0');
  expect(follow).toThrow(expect.objectContaining({ message: expect.not.stringContaining('c2V') }));
  writeFileSync(command, '#!/bin/sh\necho c2VjcmV0 >&2; exit 3\n');
  expect(follow).toThrow('KEYS_COMMAND gives no keys.json: it fails, or takes too long.');
});

test('rings of recipients come from it, too', async () => {
  makeRecipientRings(dir, new Date());
  const sealed = await createRecipientSealers('/nowhere', command).live.seal('plain', OWNER);
  const settings = { KEYS_DIR: '/nowhere', KEYS_COMMAND: command };
  expect(await recipientOpener(settings, ['live']).open(sealed, OWNER)).toBe('plain');
});
