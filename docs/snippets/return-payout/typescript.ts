import { createClient } from '@durable-payments/client';

const { BASE = '', KEY = '', PAYOUT_ID = '' } = process.env;
const client = createClient({ apiKey: KEY, baseUrl: BASE });

const payout = await client.sandbox.simulatePayout(PAYOUT_ID, {
  event: 'returned',
  code: 'AC04',
  reason: 'Account closed',
});
console.log(payout.status);
