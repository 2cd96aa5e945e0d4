import { createHmac } from 'node:crypto';
import Stripe from 'stripe';
import { SignatureError, signWebhook, verifyWebhook } from '../../clients/typescript/src';
import { signPayload, verifySignature } from '../../src/webhooks/attempt';

const SECRET = `whsec_${'k'.repeat(43)}`;
const BODY = '{"id":"evt_1","data":{"note":"Zoë — 10.50 €"}}';
const NOW = 1_770_000_000;
const { webhooks } = new Stripe('sk_test_oracle');

type Verification = Parameters<typeof verifySignature>[0];
type Verify = (header: string | undefined, changes?: Partial<Verification>) => boolean;

const verifyHere: Verify = (header, changes = {}) =>
  verifySignature({ header, body: BODY, secret: SECRET, now: NOW, ...changes });

/** Verifies as a merchant does by the client, which parses what is genuine. */
const verifyByClient: Verify = (signature, { now = NOW, ...changes } = {}) => {
  const received = { body: BODY, secret: SECRET, ...changes };
  try {
    const event = verifyWebhook({ ...received, signature, now: new Date(now * 1_000) });
    expect(event).toEqual(JSON.parse(BODY));
    return true;
  } catch (error) {
    if (error instanceof SignatureError) return false;
    throw error;
  }
};

test('a header is t and the HMAC of "t.body", keyed with the whole secret, also where the client signs', () => {
  const v1 = createHmac('sha256', SECRET).update(`${NOW}.${BODY}`).digest('hex');
  const now = new Date(NOW * 1_000);
  expect(signPayload(SECRET, BODY, NOW)).toBe(`t=${NOW},v1=${v1}`);
  expect(signWebhook({ body: BODY, secret: SECRET, now })).toBe(`t=${NOW},v1=${v1}`);
});

test('the stripe library accepts our signatures, unless they are changed or old, and we accept its', () => {
  const now = Math.floor(Date.now() / 1_000);
  const header = signPayload(SECRET, BODY, now);
  for (const body of [BODY, Buffer.from(BODY)]) {
    expect(webhooks.constructEvent(body, header, SECRET)).toEqual(JSON.parse(BODY));
  }
  expect(() => webhooks.constructEvent(`${BODY} `, header, SECRET)).toThrow(/signature/);
  expect(() => webhooks.constructEvent(BODY, header, `${SECRET}x`)).toThrow(/signature/);
  const old = signPayload(SECRET, BODY, now - 400);
  expect(() => webhooks.constructEvent(BODY, old, SECRET)).toThrow(/tolerance/);
  const parts = { payload: BODY, secret: SECRET, timestamp: NOW };
  expect(verifyHere(webhooks.generateTestHeaderString(parts))).toBe(true);
});

test('the client verifies by any secret of an endpoint, and by none that is empty', () => {
  const webhook = {
    body: BODY,
    signature: signPayload(SECRET, BODY, NOW),
    now: new Date(NOW * 1_000),
  };
  const event = verifyWebhook({ ...webhook, secret: ['whsec_new', SECRET] });
  expect(event).toEqual(JSON.parse(BODY));
  expect(() => verifyWebhook({ ...webhook, secret: [''] })).toThrow(SignatureError);
});

describe.each([
  ['the service', verifyHere],
  ['the client', verifyByClient],
])('for %s', (_, verify) => {
  const genuine = signPayload(SECRET, BODY, NOW);
  const [t = '', v1 = ''] = genuine.split(',');

  test.each<[string, boolean, Partial<Verification>]>([
    ['the text', true, {}],
    ['its bytes', true, { body: Buffer.from(BODY) }],
    ['a text serialized again', false, { body: JSON.stringify(JSON.parse(BODY), null, 1) }],
    ['another secret', false, { secret: SECRET.slice(6) }],
    ['300 seconds later', true, { now: NOW + 300 }],
    ['301 seconds later', false, { now: NOW + 301 }],
    ['301 seconds earlier', false, { now: NOW - 301 }],
    ['a narrow tolerance', false, { now: NOW + 11, toleranceSeconds: 10 }],
  ])('a genuine signature with %s is valid: %p', (_, isValid, changes) => {
    expect(verify(genuine, changes)).toBe(isValid);
  });

  test('a header may have its parts in either order', () => {
    expect(verify(`${v1},${t}`)).toBe(true);
  });

  test.each([
    ['is missing', undefined],
    ['has another v1', `${t},${v1.replace(/.$/, (last) => (last === '0' ? '1' : '0'))}`],
    ['has no v1', t],
    ['has no t', v1],
    ['has two t', `${t},${t},${v1}`],
    ['has two v1', `${t},${v1},${v1}`],
    ['has an unknown part', `${t},${v1},v0=1`],
    ['has spaces', `${t}, ${v1}`],
    ['has a short signature', `${t},${v1.slice(0, -2)}`],
    ['has a t that is no number', `t=NaN,${v1}`],
    ['has a t with too many digits', `t=${'9'.repeat(13)},${v1}`],
  ])('a header is refused when it %s', (_case, header) => expect(verify(header)).toBe(false));
});
