export const JAVASCRIPT = String.raw`// Node.js. header: Service-Signature, body: the raw bytes, secret: whsec_…
const { createHmac, timingSafeEqual } = require('node:crypto');

function isGenuine(header, body, secret) {
  const match = /^t=(\d{1,12}),v1=([0-9a-f]{64})$/.exec(header ?? '');
  if (!match) return false;
  const [, t, v1] = match;
  if (Math.abs(Date.now() / 1000 - Number(t)) > 300) return false;
  const expected = createHmac('sha256', secret).update(t + '.').update(body).digest();
  return timingSafeEqual(expected, Buffer.from(v1, 'hex'));
}
`;
