// A complete webhook receiver: verifies each delivery and prints it.
//   node docs/examples/receiver.mjs SIGNING_SECRET [PORT]
import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';

const TOLERANCE_SECONDS = 300;
const BODY_BYTES_MAX = 1_048_576;
const [secret, port = '9000'] = process.argv.slice(2);
if (!secret) {
  console.error('Usage: node docs/examples/receiver.mjs SIGNING_SECRET [PORT]');
  process.exit(1);
}

/** `header` is Service-Signature, `body` the exact bytes received. */
function isGenuine(header, body) {
  const { t, v1 } = Object.fromEntries(header.split(',').map((part) => part.split('=', 2)));
  if (!t || !v1) return false;
  const age = Math.abs(Date.now() / 1_000 - Number(t));
  if (!(age <= TOLERANCE_SECONDS)) return false; // also when `t` is no number
  const expected = createHmac('sha256', secret).update(`${t}.`).update(body).digest();
  const actual = Buffer.from(v1, 'hex');
  return actual.length === expected.length && timingSafeEqual(actual, expected);
}

const seen = new Set(); // yours outlives a restart: a table with the event's id as its key

const server = createServer(async (request, response) => {
  const chunks = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size > BODY_BYTES_MAX) return void request.destroy();
    chunks.push(chunk);
  }
  const body = Buffer.concat(chunks);
  if (!isGenuine(String(request.headers['service-signature'] ?? ''), body)) {
    console.log('refused: the signature does not verify');
    response.writeHead(400).end();
    return;
  }
  const event = JSON.parse(body);
  const repeat = seen.has(event.id) ? ' (seen before)' : '';
  seen.add(event.id);
  console.log(`verified: ${event.type} ${JSON.stringify(event.data)} ${event.id}${repeat}`);
  response.writeHead(204).end();
});

server.listen(Number(port), '127.0.0.1', () => {
  console.log(`Listening on http://localhost:${server.address().port}`);
});
