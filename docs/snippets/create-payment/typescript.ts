import { createClient } from '@durable-payments/client';

const { BASE = '', KEY = '' } = process.env;
const client = createClient({ apiKey: KEY, baseUrl: BASE });

const payment = await client.payments.create(
  {
    method: 'ideal',
    amount: 1050,
    currency: 'EUR',
    country: 'NL',
    reference: 'order-1001',
    success_url: 'https://example.com/thanks',
    error_url: 'https://example.com/sorry',
  },
  { idempotencyKey: 'order-1001' },
);
console.log(payment.id, payment.redirect_url);
