import { randomBytes } from 'node:crypto';
import { createSignatureCheck, UnreadableKey } from '../../../src/callbacks/verify';
import { HttpCallback } from '../../../src/domain/wire/callback';
import { createEncrypter } from '../../../src/encryption/encrypter';
import { type ConnectorKeyDocument, connectorKeyOwner } from '../../../src/store/connector-keys';
import { signPayload } from '../../../src/webhooks/signature';

const openEncrypter = () => createEncrypter({ current: 'k1', keys: { k1: randomBytes(32) } });
const encrypter = openEncrypter();
const AT = 1_770_000_000;
const BODY = '{"reason":"Zoë — 10.50 €"}';
const SECRETS = { cnkey_1: 'cnsec_one', cnkey_2: 'cnsec_two' };

async function buildKey(
  _id: string,
  secret: string,
  by = encrypter,
): Promise<ConnectorKeyDocument> {
  const sealed = await by.encrypt(secret, connectorKeyOwner(_id));
  return { _id, connector: 'acme', sealed, created_at: '', revoked_at: null };
}

/** Opens a check with two keys of `acme`, which counts how often a secret is decrypted. */
async function openCheck() {
  const keys = await Promise.all(Object.entries(SECRETS).map((key) => buildKey(...key)));
  let decrypted = 0;
  const deps = {
    now: () => new Date(AT * 1_000 + 999),
    encrypter: {
      decrypt: (...args: Parameters<typeof encrypter.decrypt>) => {
        decrypted += 1;
        return encrypter.decrypt(...args);
      },
    },
    stores: {
      connectorKeys: {
        current: async (name: string) => keys.filter(({ connector }) => connector === name),
      },
    },
  };
  const check = createSignatureCheck(deps);
  return {
    keys,
    decryptedCount: () => decrypted,
    verify: async (header: string | undefined, more: { connector?: string; body?: string } = {}) =>
      (await check({ connector: 'acme', header, body: BODY, ...more }))?.key_id,
  };
}

const signed = (secret: string, at = AT) => signPayload(secret, BODY, at);

test('each key of the connector may sign, and its secret is decrypted once', async () => {
  const { verify, decryptedCount } = await openCheck();
  for (const [id, secret] of [...Object.entries(SECRETS), ...Object.entries(SECRETS)]) {
    expect(await verify(signed(secret))).toBe(id);
  }
  expect(decryptedCount()).toBe(2);
});

test('a key that is removed from the list signs no more, although its secret is cached', async () => {
  const { verify, keys } = await openCheck();
  expect(await verify(signed('cnsec_one'))).toBe('cnkey_1');
  keys.shift();
  expect(await verify(signed('cnsec_one'))).toBeUndefined();
});

test.each([AT - 301, AT - 300, AT + 300, AT + 301])(
  'a signature of %i is valid for 300 seconds either way',
  async (at) => {
    const { verify } = await openCheck();
    const isValid = Math.abs(at - AT) <= 300;
    expect(await verify(signed('cnsec_one', at))).toBe(isValid ? 'cnkey_1' : undefined);
  },
);

const ONE = signed('cnsec_one');
const [T = '', V1 = ''] = ONE.split(',');

test.each([
  ['none', undefined],
  ['empty', ''],
  ['without a time', V1],
  ['without a signature', T],
  ['of another secret', signed('cnsec_three')],
  ['of another time', `t=${AT - 1},${V1}`],
  ['in capitals', ONE.toUpperCase()],
  ['cut short', ONE.slice(0, -1)],
  ['two signatures', `${ONE},${V1}`],
  ['two signatures of two keys', `${ONE},${signed('cnsec_two').split(',')[1]}`],
  ['a second header', `${ONE}, ${ONE}`],
  ['two times', `${T},${ONE}`],
  ['with spaces', ONE.replace(',', ', ')],
  ['with a scheme that we do not know', `${ONE},v2=00`],
])('a signature header is refused that is: %s', async (_, header) => {
  const { verify } = await openCheck();
  expect(await verify(header)).toBeUndefined();
});

test('a signature of another body, or for a connector without keys, is refused', async () => {
  const { verify } = await openCheck();
  expect(await verify(ONE, { body: `${BODY} ` })).toBeUndefined();
  expect(await verify(ONE, { connector: 'polbank' })).toBeUndefined();
});

test('a secret that cannot be decrypted, or was moved to another key, is our fault', async () => {
  const { verify, keys } = await openCheck();
  keys.push(await buildKey('cnkey_3', 'cnsec_three', openEncrypter()));
  expect(await verify(ONE)).toBe('cnkey_1');
  await expect(verify(signed('cnsec_three'))).rejects.toThrow(UnreadableKey);
  const [, second] = keys;
  keys.splice(0, 3, { ...(await buildKey('cnkey_4', '')), sealed: String(second?.sealed) });
  await expect(verify(signed('cnsec_two'))).rejects.toThrow(UnreadableKey);
});

const REPORT = {
  callback_id: 'cb_1',
  resource: 'refund',
  resource_id: '0b7d6d52-4a3f-4a5d-9b53-0f0f6d1a3c11',
  event: 'settled',
  occurred_at: '2026-03-01T12:00:00.5+01:00',
};

test('a callback body is accepted with all that it may have, or without', () => {
  const more = { bank_reference: 'R1', code: 'c', reason: 'r', amount: 1, currency: 'EUR' };
  const whole = { ...REPORT, ...more, value_date: '2026-03-01' };
  for (const body of [REPORT, whole]) expect(HttpCallback.parse(body)).toEqual(body);
});

test.each([
  ['a resource that is none', { resource: 'invoice' }, 'resource'],
  ['an event of another resource', { event: 'authorized' }, 'event'],
  ['an id that is none', { resource_id: '7' }, 'resource_id'],
  ['no callback_id', { callback_id: undefined }, 'callback_id'],
  ['an empty callback_id', { callback_id: '' }, 'callback_id'],
  ['a long callback_id', { callback_id: 'x'.repeat(201) }, 'callback_id'],
  ['a time without an offset', { occurred_at: '2026-03-01T12:00:00' }, 'occurred_at'],
  ['a part of a cent', { amount: 0.5 }, 'amount'],
  ['an amount of nothing', { amount: 0 }, 'amount'],
  ['a text for an amount', { amount: '1050' }, 'amount'],
  ['a day that is none', { value_date: '2026-02-30' }, 'value_date'],
  ['a null', { code: null }, 'code'],
  ['an unknown field', { status: 'x' }, 'status'],
])('a callback body with %s is refused', (_, change, field) => {
  const { error } = HttpCallback.safeParse({ ...REPORT, ...change });
  const [issue] = error?.issues ?? [];
  const unknown = issue?.code === 'unrecognized_keys' ? issue.keys : issue?.path;
  expect(unknown?.join('.')).toBe(field);
});
