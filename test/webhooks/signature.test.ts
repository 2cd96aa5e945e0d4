import { createHmac } from 'node:crypto';
import Stripe from 'stripe';
import { signPayload, verifySignature } from '../../src/webhooks/signature';

const SECRET = `whsec_${'k'.repeat(43)}`;
const BODY = '{"id":"evt_1","data":{"note":"Zoë — 10.50 €"}}';
const NOW = 1_770_000_000;
const { webhooks } = new Stripe('sk_test_oracle');

function verify(
  header: string | undefined,
  changes: Partial<{
    body: string | Buffer;
    secret: string;
    now: number;
    toleranceSeconds: number;
  }> = {},
) {
  return verifySignature({ header, body: BODY, secret: SECRET, now: NOW, ...changes });
}

test('the header is t and the HMAC of "t.body", keyed with the whole secret', () => {
  const v1 = createHmac('sha256', SECRET).update(`${NOW}.${BODY}`).digest('hex');
  expect(signPayload(SECRET, BODY, NOW)).toBe(`t=${NOW},v1=${v1}`);
});

describe('an independent verifier', () => {
  const now = () => Math.floor(Date.now() / 1_000);

  test('accepts our signature over text and over bytes', () => {
    const expected = JSON.parse(BODY);
    expect(webhooks.constructEvent(BODY, signPayload(SECRET, BODY, now()), SECRET)).toEqual(
      expected,
    );
    const bytes = Buffer.from(BODY);
    const header = signPayload(SECRET, bytes, now());
    expect(webhooks.constructEvent(bytes, header, SECRET)).toEqual(expected);
  });

  test('rejects a changed body, another secret and an old signature', () => {
    const header = signPayload(SECRET, BODY, now());
    expect(() => webhooks.constructEvent(`${BODY} `, header, SECRET)).toThrow(/signature/);
    expect(() => webhooks.constructEvent(BODY, header, `${SECRET}x`)).toThrow(/signature/);
    const old = signPayload(SECRET, BODY, now() - 400);
    expect(() => webhooks.constructEvent(BODY, old, SECRET)).toThrow(/tolerance/);
  });

  test('makes headers that we accept', () => {
    const header = webhooks.generateTestHeaderString({
      payload: BODY,
      secret: SECRET,
      timestamp: NOW,
    });
    expect(verify(header)).toBe(true);
  });
});

test('a genuine delivery verifies, as text and as the raw bytes', () => {
  const header = signPayload(SECRET, BODY, NOW);
  expect(verify(header)).toBe(true);
  expect(verify(header, { body: Buffer.from(BODY) })).toBe(true);
});

test('a re-serialised body, another secret or a changed signature does not', () => {
  const header = signPayload(SECRET, BODY, NOW);
  expect(verify(header, { body: JSON.stringify(JSON.parse(BODY), null, 1) })).toBe(false);
  expect(verify(header, { secret: SECRET.slice(6) })).toBe(false);
  expect(verify(header.replace(`t=${NOW}`, `t=${NOW + 1}`))).toBe(false);
  expect(verify(header.replace(/.$/, (last) => (last === '0' ? '1' : '0')))).toBe(false);
});

test.each([
  [300, true],
  [-300, true],
  [301, false],
  [-301, false],
])('a signature %i s away from now is taken: %p', (age, taken) => {
  expect(verify(signPayload(SECRET, BODY, NOW - age))).toBe(taken);
});

test('the tolerance can be narrowed', () => {
  const header = signPayload(SECRET, BODY, NOW - 11);
  expect(verify(header, { toleranceSeconds: 10 })).toBe(false);
  expect(verify(header, { toleranceSeconds: 11 })).toBe(true);
});

describe('refused whatever the signature says', () => {
  const [t = '', v1 = ''] = signPayload(SECRET, BODY, NOW).split(',');

  test('the parts may come in either order', () => expect(verify(`${v1},${t}`)).toBe(true));

  test.each([
    ['no header', undefined],
    ['an empty header', ''],
    ['no v1', t],
    ['no t', v1],
    ['two t', `${t},${t},${v1}`],
    ['two v1', `${t},${v1},${v1}`],
    ['an unknown part', `${t},${v1},v0=1`],
    ['spaces', `${t}, ${v1}`],
    ['a trailing comma', `${t},${v1},`],
    ['upper-case hex', `${t},v1=${v1.slice(3).toUpperCase()}`],
    ['a short signature', `${t},${v1.slice(0, -2)}`],
    ['a signed number', `t=+${NOW},${v1}`],
    ['a t that is no number', `t=NaN,${v1}`],
    ['a t out of all reason', `t=${'9'.repeat(13)},${v1}`],
  ])('%s', (_case, header) => expect(verify(header)).toBe(false));
});
