import { ApiError, type Client, createClient, type Payment } from '@durable-payments/client';

const [baseUrl = '', apiKey = ''] = process.argv.slice(2);
const client: Client = createClient({ baseUrl, apiKey });

const payment: Payment = await client.payments.create({
  method: 'ideal',
  amount: 1050,
  currency: 'EUR',
  country: 'NL',
  success_url: 'https://shop.example/thanks',
  error_url: 'https://shop.example/sorry',
});
for await (const { status, amount } of client.payments.list({ status: 'settled' })) {
  const sum: number = amount;
  if (status === 'failed') console.log(sum);
}
const { code } = await client.payments.get('unknown').then(
  () => ({ code: 'none' }),
  (error: unknown) => {
    if (error instanceof ApiError) return error;
    throw error;
  },
);
// @ts-expect-error No payment has this status.
client.payments.list({ status: 'paid' });
console.log(payment.status, code);
