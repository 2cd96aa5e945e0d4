import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { decodeProtectedHeader } from 'jose';
import { warnOfReaders } from '../../src/keys/file-mode';
import { addPair, makeRecipientRings, removePair } from '../../src/keys/recipient-files';
import { createRecipientSealers, recipientOpener, ringPath } from '../../src/keys/recipient-rings';
import { SealError } from '../../src/keys/seal';

const OWNER = 'recipient/r1';
const PLAIN = '{"iban":"NL91"}';
const now = new Date('2026-03-01T00:00:00Z');
let dir: string;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'recipient-rings-'));
  makeRecipientRings(dir, now);
});
afterEach(() => rmSync(dir, { recursive: true }));

const opener = (...environments: ('sandbox' | 'live')[]) =>
  recipientOpener({ KEYS_DIR: dir }, environments);
const modeOf = (path: string) => statSync(path).mode & 0o777;
const closed = (opening: Promise<string>) => expect(opening).rejects.toThrow(SealError);

test('what the public part seals, the private part of its environment opens and nothing else', async () => {
  const sealers = createRecipientSealers(dir);
  for (const [environment, other] of [
    ['sandbox', 'live'],
    ['live', 'sandbox'],
  ] as const) {
    const sealed = await sealers[environment].seal(PLAIN, OWNER);
    expect(decodeProtectedHeader(sealed)).toMatchObject({
      alg: 'ECDH-ES+A256KW',
      kid: expect.stringMatching(new RegExp(`^recipients[.]${environment}:k20260301-`)),
    });
    expect(await opener(environment).open(sealed, OWNER)).toBe(PLAIN);
    await closed(opener(other).open(sealed, OWNER));
    await closed(opener(environment).open(sealed, 'recipient/r2'));
    await closed(sealers[environment].open(sealed, OWNER));
  }
});

test('public files hold no private part, and only they may be read by others', () => {
  for (const environment of ['sandbox', 'live'] as const) {
    const [own, open] = [
      ringPath(dir, environment, 'private'),
      ringPath(dir, environment, 'public'),
    ];
    expect([modeOf(own), modeOf(open)]).toEqual([0o600, 0o644]);
    expect(readFileSync(own, 'utf8')).toContain('"d"');
    expect(readFileSync(open, 'utf8')).not.toContain('"d"');
  }
});

test('made again, what stands stays; a public part that is missing or old is written', () => {
  const [own, open] = [ringPath(dir, 'live', 'private'), ringPath(dir, 'live', 'public')];
  const before = [readFileSync(own, 'utf8'), readFileSync(open, 'utf8')];
  expect(makeRecipientRings(dir, now)).toEqual([]);
  writeFileSync(open, readFileSync(ringPath(dir, 'sandbox', 'public')));
  expect(makeRecipientRings(dir, now)).toEqual([open]);
  expect([readFileSync(own, 'utf8'), readFileSync(open, 'utf8')]).toEqual(before);
});

test('a rotation reaches who opens at once; the earlier pair opens its own until it is removed', async () => {
  const opening = opener('live');
  const before = await createRecipientSealers(dir).live.seal(PLAIN, OWNER);
  const kid = addPair(dir, 'live', now);
  const sealer = createRecipientSealers(dir).live;
  const after = await sealer.seal(PLAIN, OWNER);
  expect(sealer.kidOf(after)).toBe(kid);
  for (const sealed of [before, after]) expect(await opening.open(sealed, OWNER)).toBe(PLAIN);
  expect(() => removePair(dir, 'live', kid)).toThrow('is the current key');
  removePair(dir, 'live', sealer.kidOf(before));
  await closed(opener('live').open(before, OWNER));
  expect(await opener('live').open(after, OWNER)).toBe(PLAIN);
});

test('what a process needs and lacks is told in words, and nothing of a key', () => {
  const own = ringPath(dir, 'sandbox', 'private');
  const text = readFileSync(own, 'utf8');
  writeFileSync(own, text.replaceAll('recipients.sandbox:', 'recipients.live:'));
  expect(() => opener('sandbox')).toThrow('name of another ring');
  writeFileSync(own, text.replace(/"d": "[^"]+"/, '"d": "AA"'));
  expect(() => opener('sandbox')).toThrow(/^The private part of recipients.sandbox:\S+ is no key/);
  writeFileSync(own, text);
  chmodSync(own, 0o644);
  expect(() => opener('sandbox')).toThrow('Everybody may read');
  chmodSync(own, 0o440);
  expect(() => opener('sandbox')).not.toThrow();
  rmSync(ringPath(dir, 'live', 'public'));
  expect(() => createRecipientSealers(dir)).toThrow('live.public.json is missing (KEYS_DIR)');
});

test('a key file that others may read is warned of', () => {
  const path = join(dir, 'keys.json');
  writeFileSync(path, '{}');
  const told: object[] = [];
  for (const mode of [0o600, 0o640, 0o644]) {
    chmodSync(path, mode);
    warnOfReaders(path, { warn: (facts) => told.push(facts) });
  }
  expect(told).toEqual([
    { path, readers: 'its group' },
    { path, readers: 'everybody' },
  ]);
});
