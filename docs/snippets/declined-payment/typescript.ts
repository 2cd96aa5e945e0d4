import { createClient } from '@durable-payments/client';

const { BASE = '', KEY = '' } = process.env;
const client = createClient({ apiKey: KEY, baseUrl: BASE });

const payment = await client.payments.create(
  {
    method: 'ideal',
    amount: 66602,
    currency: 'EUR',
    country: 'NL',
    success_url: 'https://example.com/thanks',
    error_url: 'https://example.com/sorry',
  },
  { idempotencyKey: 'order-1002' },
);
console.log(payment.id, payment.status);
