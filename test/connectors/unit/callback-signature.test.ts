import { randomBytes } from 'node:crypto';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { readConnectorKey, signCallback } from '../../../connectors/contract/callbacks';
import {
  createCallbackCheck,
  isSignatureValid,
  UnreadableKey,
} from '../../../src/callbacks/verify';
import {
  callbackText,
  readSignature,
  type SignedCallback,
} from '../../../src/domain/banks/callback';
import { Faults } from '../../../src/domain/shape';
import { createEncrypter } from '../../../src/encryption/encrypter';
import { type ConnectorKeyDocument, connectorKeyOwner } from '../../../src/store/keys';

const KEY = { key_id: 'cnkey_1', secret: `cnsec_${'A'.repeat(43)}` };

/** The example of the docs. */
const REPORT: SignedCallback = {
  connector: 'acme',
  resource: 'payment',
  resource_id: '0b7d6d52-4a3f-4a5d-9b53-0f0f6d1a3c11',
  name: 'settled',
  callback: {
    occurred_at: '2026-11-22T09:30:00Z',
    callback_id: 'bank-7781',
    bank_reference: 'B-1',
    reason: 'Zoë — 10.50 €',
  },
};

const TEXT = `payments-callback-v1
acme
payment
0b7d6d52-4a3f-4a5d-9b53-0f0f6d1a3c11
settled
{"bank_reference":"B-1","callback_id":"bank-7781","occurred_at":"2026-11-22T09:30:00Z","reason":"Zoë — 10.50 €"}`;
const V1 = 'fe9558d2075b71aebf847a93d53a6e951e6f4aad6d04a471186768f11f1e322d';

test('the example of the docs has the text and signature that they show', () => {
  expect(callbackText(REPORT)).toBe(TEXT);
  expect(signCallback(KEY, REPORT)).toEqual({ key_id: 'cnkey_1', v1: V1 });
  const page = readFileSync(join(__dirname, '../../../docs/connectors.md'), 'utf8');
  for (const shown of [TEXT, V1, KEY.secret]) expect(page).toContain(shown);
});

test('the text depends neither on the order of the facts nor on a signature among them', () => {
  const reversed = Object.fromEntries(Object.entries(REPORT.callback).reverse());
  const callback = Object({ ...reversed, mac: { key_id: 'x', v1: 'y' } });
  expect(callbackText({ ...REPORT, callback })).toBe(TEXT);
});

const word = fc.string({ minLength: 1, maxLength: 20 });
const facts = fc.record(
  {
    callback_id: word,
    occurred_at: fc.constantFrom('2026-11-22T09:30:00Z', '2026-11-22T10:30:00+01:00'),
    bank_reference: word,
    code: word,
    reason: fc.string({ unit: 'binary', maxLength: 20 }),
    amount: fc.integer({ min: 1, max: 1_000 }),
    currency: fc.constantFrom('EUR', 'PLN'),
    value_date: fc.constantFrom('2026-03-01', '2026-03-02'),
  },
  { requiredKeys: ['callback_id', 'occurred_at'] },
);
const reports = fc.record({
  connector: fc.constantFrom('acme', 'polbank'),
  resource: fc.constantFrom('payment', 'refund', 'payout'),
  resource_id: fc.uuid(),
  name: fc.constantFrom('settled', 'failed', 'completed'),
  callback: facts,
});

test('a signature is valid for its own report alone, also after a round trip as JSON', () => {
  fc.assert(
    fc.property(reports, reports, (one, other) => {
      const signature = signCallback(KEY, one);
      expect(isSignatureValid(KEY.secret, JSON.parse(JSON.stringify(one)), signature)).toBe(true);
      // Alters each field alone, and each fact.
      const altered: SignedCallback[] = [
        { ...one, connector: other.connector },
        { ...one, resource: other.resource },
        { ...one, resource_id: other.resource_id },
        { ...one, name: other.name },
        { ...one, callback: other.callback },
        ...Object.entries(other.callback).map(([field, value]) => ({
          ...one,
          callback: { ...one.callback, [field]: value },
        })),
        { ...one, callback: { ...one.callback, reason: undefined } },
      ];
      for (const each of altered) {
        const isSame = callbackText(each) === callbackText(one);
        expect(isSignatureValid(KEY.secret, each, signature)).toBe(isSame);
        expect(isSame).toBe(sortFacts(each) === sortFacts(one));
      }
      expect(isSignatureValid(`${KEY.secret} `, one, signature)).toBe(false);
    }),
  );
});

function sortFacts({ callback, ...target }: SignedCallback): string {
  const facts = Object.entries(callback).filter(([, value]) => value !== undefined);
  facts.sort(([one], [other]) => (one < other ? -1 : 1));
  return JSON.stringify([Object.values(target), facts]);
}

test.each([
  ['not an object', 'x'],
  ['null', null],
  ['without a key', { v1: V1 }],
  ['too short', { key_id: 'cnkey_1', v1: V1.slice(1) }],
  ['in capitals', { key_id: 'cnkey_1', v1: V1.toUpperCase() }],
])('a signature is malformed if it is %s', (_, mac) => {
  expect(readSignature({ mac })).toBeInstanceOf(Faults);
});

test('a payload that has no field `mac`, or is not an object, has no signature', () => {
  for (const raw of [{}, { mac: undefined }, null, 7, 'mac', []]) {
    expect(readSignature(raw)).toBeUndefined();
  }
  const mac = { key_id: 'cnkey_1', v1: V1 };
  expect(readSignature({ mac: { ...mac, more: 1 } })).toEqual(mac);
});

/** Checks the signature of a report against the stored key, which is changed. */
async function check(report: SignedCallback, change: Partial<ConnectorKeyDocument> = {}) {
  const encrypter = createEncrypter({ current: 'k1', keys: { k1: randomBytes(32) } });
  const ciphertext = await encrypter.encrypt(KEY.secret, connectorKeyOwner(KEY.key_id));
  const dates = { created_at: '', revoked_at: null };
  const key = { _id: KEY.key_id, connector: 'acme', ciphertext, ...dates, ...change };
  const get = async (id: string) => (id === key._id ? key : null);
  const checkCallback = createCallbackCheck({ stores: { connectorKeys: { get } }, encrypter });
  return await checkCallback(report, signCallback(KEY, REPORT));
}

test('a signature is verified by a valid key of the connector', async () => {
  expect(await check(REPORT)).toBeUndefined();
  expect(await check(REPORT, { _id: 'cnkey_2' })).toBe('unknown_key');
  expect(await check(REPORT, { connector: 'polbank' })).toBe('unknown_key');
  expect(await check(REPORT, { revoked_at: '2026-11-22' })).toBe('revoked_key');
  expect(await check({ ...REPORT, name: 'failed' })).toBe('mac_differs');
});

test('a secret that this process cannot decrypt is our fault, so the check is repeated', async () => {
  const other = createEncrypter({ current: 'k1', keys: { k1: randomBytes(32) } });
  const ciphertext = await other.encrypt(KEY.secret, connectorKeyOwner(KEY.key_id));
  await expect(check(REPORT, { ciphertext })).rejects.toThrow(UnreadableKey);
});

test('a key is read from the file that `connector key create` prints, and an error quotes nothing of it', () => {
  const folder = mkdtempSync(join(tmpdir(), 'connector-key-'));
  const path = join(folder, 'key.json');
  const warned: object[] = [];
  const read = (from = path) => readConnectorKey(from, { warn: (facts) => warned.push(facts) });
  try {
    expect(read('')).toBeUndefined();
    expect(() => read()).toThrow('ENOENT');
    writeFileSync(path, `${JSON.stringify(KEY)}\n`, { mode: 0o600 });
    expect(read()).toEqual(KEY);
    expect(warned).toEqual([]);
    for (const mode of [0o640, 0o644]) {
      chmodSync(path, mode);
      expect(read()).toEqual(KEY);
    }
    expect(warned).toEqual([
      { path, readers: 'its group' },
      { path, readers: 'everybody' },
    ]);
    for (const text of [`${JSON.stringify(KEY)}}`, KEY.secret, '{"key_id": "cnkey_1"}']) {
      writeFileSync(path, text);
      const fault = `CONNECTOR_KEY_FILE: ${path} holds no key as \`connector key create\` prints it.`;
      expect(() => read()).toThrow(new Error(fault));
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});
