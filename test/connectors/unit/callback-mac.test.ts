import { randomBytes } from 'node:crypto';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { readConnectorKey, signCallback } from '../../../connectors/contract/callbacks';
import { isSignatureValid } from '../../../src/callbacks/mac';
import { createCallbackCheck, UnreadableKey } from '../../../src/callbacks/verify';
import type { AnyCallback } from '../../../src/domain/callback/callback';
import {
  callbackText,
  readSignature,
  type SignedCallback,
} from '../../../src/domain/callback/signature';
import { Faults } from '../../../src/domain/shape';
import { createEncrypter } from '../../../src/encryption/encrypter';
import { type ConnectorKeyDocument, connectorKeyOwner } from '../../../src/store/connector-keys';
import { textOf } from '../../docs/pages';

const KEY = { key_id: 'cnkey_1', secret: `cnsec_${'A'.repeat(43)}` };

/** The example of the docs, written out anew. */
const TOLD: SignedCallback = {
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

test('the example has the text and the mac that the docs tell', () => {
  expect(callbackText(TOLD)).toBe(TEXT);
  expect(signCallback(KEY, TOLD)).toEqual({ key_id: 'cnkey_1', v1: V1 });
  const page = textOf('docs/connectors.md');
  for (const told of [TEXT, V1, KEY.secret]) expect(page).toContain(told);
});

test('neither the order of the facts nor a mac among them changes the text', () => {
  const { callback, ...about } = TOLD;
  const turned: AnyCallback = { callback_id: '', occurred_at: '' };
  Object.assign(turned, { mac: { key_id: 'x', v1: 'y' } });
  for (const [field, value] of Object.entries(callback).reverse()) {
    Object.assign(turned, { [field]: value });
  }
  expect(callbackText({ ...about, callback: turned })).toBe(TEXT);
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

test('a mac fits the report that it was made of, after a way as JSON too, and no other', () => {
  fc.assert(
    fc.property(reports, reports, (one, other) => {
      const mac = signCallback(KEY, one);
      expect(isSignatureValid(KEY.secret, JSON.parse(JSON.stringify(one)), mac)).toBe(true);
      // Each field alone is altered, and each fact.
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
        expect(isSignatureValid(KEY.secret, each, mac)).toBe(isSame);
        expect(isSame).toBe(JSON.stringify(sorted(each)) === JSON.stringify(sorted(one)));
      }
      expect(isSignatureValid(`${KEY.secret} `, one, mac)).toBe(false);
    }),
  );
});

/** Report with its facts in one order. */
function sorted({ callback, ...about }: SignedCallback) {
  const given = Object.entries(callback).filter(([, value]) => value !== undefined);
  return [Object.values(about), given.sort(([one], [other]) => (one < other ? -1 : 1))];
}

test.each([
  ['no object', 'x'],
  ['null', null],
  ['no key', { v1: V1 }],
  ['a short hmac', { key_id: 'cnkey_1', v1: V1.slice(1) }],
  ['capitals', { key_id: 'cnkey_1', v1: V1.toUpperCase() }],
])('a mac is malformed: %s', (_, mac) => {
  expect(readSignature({ mac })).toBeInstanceOf(Faults);
});

test('a payload without a mac has none, and one that is no object neither', () => {
  for (const raw of [{}, { mac: undefined }, null, 7, 'mac', []]) {
    expect(readSignature(raw)).toBeUndefined();
  }
  const mac = { key_id: 'cnkey_1', v1: V1 };
  expect(readSignature({ mac: { ...mac, more: 1 } })).toEqual(mac);
});

const sealerOf = () => createEncrypter({ current: 'k1', keys: { k1: randomBytes(32) } });

async function checkWith(change: Partial<ConnectorKeyDocument> = {}, open = sealerOf()) {
  const sealer = change.sealed === undefined ? open : sealerOf();
  const sealed = await open.encrypt(KEY.secret, connectorKeyOwner(KEY.key_id));
  const dates = { created_at: '', revoked_at: null };
  const key = { _id: KEY.key_id, connector: 'acme', sealed, ...dates, ...change };
  const get = async (id: string) => (id === key._id ? key : null);
  return createCallbackCheck({ stores: { connectorKeys: { get } }, encrypter: sealer });
}

test('a sender is known by a key of its connector that counts now', async () => {
  const mac = signCallback(KEY, TOLD);
  expect(await (await checkWith())(TOLD, mac)).toBeUndefined();
  expect(await (await checkWith({ _id: 'cnkey_2' }))(TOLD, mac)).toBe('unknown_key');
  expect(await (await checkWith({ connector: 'polbank' }))(TOLD, mac)).toBe('unknown_key');
  expect(await (await checkWith({ revoked_at: '2026-11-22' }))(TOLD, mac)).toBe('revoked_key');
  const other = { ...TOLD, name: 'failed' } as const;
  expect(await (await checkWith())(other, mac)).toBe('mac_differs');
});

test('a secret that can not be opened is our fault: the check is made again', async () => {
  const sealed = await sealerOf().encrypt(KEY.secret, connectorKeyOwner(KEY.key_id));
  const check = await checkWith({ sealed });
  await expect(check(TOLD, signCallback(KEY, TOLD))).rejects.toThrow(UnreadableKey);
});

test('a key is read from the file that the command line prints; a fault quotes nothing', () => {
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
    chmodSync(path, 0o644);
    expect(read()).toEqual(KEY);
    expect(warned).toEqual([{ path, readers: 'everybody' }]);
    for (const text of [`${JSON.stringify(KEY)}}`, KEY.secret, '{"key_id": "cnkey_1"}']) {
      writeFileSync(path, text);
      const fault = `CONNECTOR_KEY_FILE: ${path} holds no key as \`connector key create\` prints it.`;
      expect(() => read()).toThrow(new Error(fault));
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});
