import { createClient, isApiError, verifyWebhook } from '@durable-payments/client';

const [baseUrl = '', apiKey = ''] = process.argv.slice(2);
const client = createClient({ baseUrl, apiKey, timeoutMs: 10_000 });

async function main(): Promise<void> {
  const payment = await client.payments.create({
    method: 'ideal',
    amount: 1050,
    currency: 'EUR',
    country: 'NL',
    success_url: 'https://shop.example/thanks',
    error_url: 'https://shop.example/sorry',
  });
  try {
    await client.payments.cancel('unknown');
  } catch (error) {
    if (!isApiError(error, 'payment_not_found')) throw error;
    const code: 'payment_not_found' = error.code;
    console.log(payment.status, code);
  }
}

/** Each type of event has its own data. */
export function fulfill(body: Buffer, signature: string): string | undefined {
  const event = verifyWebhook({ body, signature, secret: ['whsec_new', 'whsec_old'] });
  return event.type === 'refund.settled' ? event.data.refund_id : undefined;
}

void main();
