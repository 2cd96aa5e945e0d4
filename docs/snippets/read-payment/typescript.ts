import { createClient } from '@durable-payments/client';

const { BASE = '', KEY = '', PAYMENT_ID = '' } = process.env;
const client = createClient({ apiKey: KEY, baseUrl: BASE });

const payment = await client.payments.get(PAYMENT_ID);
console.log(payment.status, payment.amount);
