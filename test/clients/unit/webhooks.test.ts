import { SignatureError, signWebhook, verifyWebhook } from '../../../clients/typescript/src';
import { signPayload } from '../../../src/webhooks/signature';

const SECRET = 'whsec_of_a_test';
const EVENT = { id: 'evt_1', type: 'payment.settled', data: { payment_id: 'p' } };
const BODY = JSON.stringify(EVENT);
const NOW = new Date('2026-11-21T12:00:00Z');
const SECONDS = NOW.getTime() / 1_000;

const webhook = {
  body: BODY,
  signature: signPayload(SECRET, BODY, SECONDS),
  secret: SECRET,
  now: NOW,
};

test('what the service signs is verified, as text and as bytes, also while a secret is rolled', () => {
  expect(verifyWebhook(webhook)).toEqual(EVENT);
  expect(verifyWebhook({ ...webhook, body: Buffer.from(BODY) })).toEqual(EVENT);
  expect(verifyWebhook({ ...webhook, secret: ['whsec_new', SECRET] })).toEqual(EVENT);
});

test('the client signs as the service does', () => {
  expect(signWebhook({ body: BODY, secret: SECRET, now: NOW })).toBe(webhook.signature);
});

test.each([
  ['no signature', { signature: undefined }],
  ['no time', { signature: webhook.signature.replace(/^t=\d+,/, '') }],
  ['a time that is no number', { signature: webhook.signature.replace(/^t=\d+/, 't=soon') }],
  ['two signatures', { signature: `${webhook.signature},v1=${'0'.repeat(64)}` }],
  ['a signature that is too short', { signature: webhook.signature.slice(0, -2) }],
  ['another secret', { secret: 'whsec_another' }],
  ['no secret', { secret: [''] }],
  ['a changed body', { body: `${BODY} ` }],
  ['an age of 301 seconds', { now: new Date(NOW.getTime() + 301_000) }],
  ['a time 301 seconds ahead', { now: new Date(NOW.getTime() - 301_000) }],
])('%s is refused', (_, changes) => {
  expect(() => verifyWebhook({ ...webhook, ...changes })).toThrow(SignatureError);
});

test('300 seconds are tolerated, or as many as the caller says', () => {
  const old = { ...webhook, now: new Date(NOW.getTime() + 300_000) };
  expect(verifyWebhook(old)).toEqual(EVENT);
  expect(() => verifyWebhook({ ...old, toleranceSeconds: 60 })).toThrow(SignatureError);
});
