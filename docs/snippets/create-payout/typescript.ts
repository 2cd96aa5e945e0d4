import { createClient } from '@durable-payments/client';

const { BASE = '', KEY = '', RECIPIENT_ID = '' } = process.env;
const client = createClient({ apiKey: KEY, baseUrl: BASE });

const payout = await client.payouts.create(
  {
    recipient_id: RECIPIENT_ID,
    method: 'sepa_instant',
    amount: 5000,
    currency: 'EUR',
    metadata: { balance_account: 'marketing' },
  },
  { idempotencyKey: 'payout-1001' },
);
console.log(payout.id, payout.status);
