// A webhook receiver, whole: it verifies each delivery and prints it.
//   node docs/examples/receiver.mjs SIGNING_SECRET [PORT]
import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';

const [secret, port = '9000'] = process.argv.slice(2);
if (!secret) {
  console.error('Usage: node docs/examples/receiver.mjs SIGNING_SECRET [PORT]');
  process.exit(1);
}
const TOLERANCE_SECONDS = 300;
const seen = new Set();

function verified(header, body) {
  const parts = new Map(header.split(',').map((part) => part.split('=', 2)));
  const [t, v1] = [parts.get('t'), parts.get('v1')];
  if (!t || !v1 || Math.abs(Date.now() / 1_000 - Number(t)) > TOLERANCE_SECONDS) return false;
  const expected = createHmac('sha256', secret).update(`${t}.`).update(body).digest();
  const given = Buffer.from(v1, 'hex');
  return given.length === expected.length && timingSafeEqual(given, expected);
}

createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = Buffer.concat(chunks); // the exact bytes: never sign a re-serialised body
  if (!verified(String(request.headers['service-signature'] ?? ''), body)) {
    console.log('refused: the signature does not verify');
    response.writeHead(400).end();
    return;
  }
  const event = JSON.parse(body);
  const repeat = seen.has(event.id) ? ' (seen before)' : '';
  seen.add(event.id);
  console.log(`verified: ${event.type} ${JSON.stringify(event.data)} ${event.id}${repeat}`);
  response.writeHead(204).end();
}).listen(Number(port), '127.0.0.1', () => console.log(`Listening on http://localhost:${port}`));
