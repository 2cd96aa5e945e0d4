import { createClient } from '@durable-payments/client';

const { BASE = '', KEY = '' } = process.env;
const client = createClient({ apiKey: KEY, baseUrl: BASE });

const endpoint = await client.webhookEndpoints.create(
  { url: 'http://localhost:9000/webhooks' },
  { idempotencyKey: 'my-server' },
);
console.log(endpoint.id, endpoint.signing_secret);
