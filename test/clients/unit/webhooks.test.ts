import { SignatureError, signWebhook, verifyWebhook } from '../../../clients/typescript/src';
import { signPayload } from '../../../src/webhooks/signature';

const SECRET = 'whsec_of_a_test';
const EVENT = { id: 'evt_1', type: 'payment.settled', data: { payment_id: 'p' } };
const BODY = JSON.stringify(EVENT);
const NOW = new Date('2026-11-21T12:00:00Z');
const SECONDS = NOW.getTime() / 1_000;
const SIGNATURE = signPayload(SECRET, BODY, SECONDS);
const webhook = { body: BODY, signature: SIGNATURE, secret: SECRET, now: NOW };

test('a webhook of the service is verified as text and as bytes, also while its secret is rolled', () => {
  expect(verifyWebhook(webhook)).toEqual(EVENT);
  expect(verifyWebhook({ ...webhook, body: Buffer.from(BODY) })).toEqual(EVENT);
  expect(verifyWebhook({ ...webhook, secret: ['whsec_new', SECRET] })).toEqual(EVENT);
});

test('the client signs as the service does', () => {
  expect(signWebhook({ body: BODY, secret: SECRET, now: NOW })).toBe(SIGNATURE);
});

test.each([
  ['no signature', { signature: undefined }],
  ['no time', { signature: SIGNATURE.replace(/^t=\d+,/, '') }],
  ['a time that is not a number', { signature: SIGNATURE.replace(/^t=\d+/, 't=soon') }],
  ['two signatures', { signature: `${SIGNATURE},v1=${'0'.repeat(64)}` }],
  ['a signature that is too short', { signature: SIGNATURE.slice(0, -2) }],
  ['another secret', { secret: 'whsec_another' }],
  ['no secret', { secret: [''] }],
  ['a changed body', { body: `${BODY} ` }],
  ['an age of 301 seconds', { now: new Date(NOW.getTime() + 301_000) }],
  ['a time 301 seconds ahead', { now: new Date(NOW.getTime() - 301_000) }],
])('a webhook with %s is refused', (_, changes) => {
  expect(() => verifyWebhook({ ...webhook, ...changes })).toThrow(SignatureError);
});

test('a webhook may be 300 seconds old, or as old as the caller says', () => {
  const old = { ...webhook, now: new Date(NOW.getTime() + 300_000) };
  expect(verifyWebhook(old)).toEqual(EVENT);
  expect(() => verifyWebhook({ ...old, toleranceSeconds: 60 })).toThrow(SignatureError);
});
