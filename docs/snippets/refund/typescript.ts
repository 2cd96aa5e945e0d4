import { createClient } from '@durable-payments/client';

const { BASE = '', KEY = '', PAYMENT_ID = '' } = process.env;
const client = createClient({ apiKey: KEY, baseUrl: BASE });

const refund = await client.refunds.create(
  { payment_id: PAYMENT_ID, amount: 250 },
  { idempotencyKey: 'refund-1001' },
);
console.log(refund.id, refund.status);
