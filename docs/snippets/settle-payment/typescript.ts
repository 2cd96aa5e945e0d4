import { createClient } from '@durable-payments/client';

const { BASE = '', KEY = '', PAYMENT_ID = '' } = process.env;
const client = createClient({ apiKey: KEY, baseUrl: BASE });

const payment = await client.sandbox.simulatePayment(PAYMENT_ID, {
  event: 'settled',
});
console.log(payment.status);
