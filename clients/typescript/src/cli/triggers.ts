import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '../client';
import type { CreatePayment, WebhookEvent } from '../schema';

type Type = WebhookEvent['type'];
/** Makes an event happen; gives the ID of the resource that it is about. */
type Trigger = (client: Client) => Promise<string>;

const ETH = { asset: 'ETH', network: 'ethereum' };

/** How each type of event is made in the sandbox. */
const TRIGGERS: Record<Type, Trigger> = {
  'payment.awaiting_customer': async (client) => (await createPayment(client)).id,
  'payment.authorized': (client) => simulatePayment(client, 'authorized'),
  'payment.settled': (client) => simulatePayment(client, 'settled'),
  'payment.failed': (client) => simulatePayment(client, 'failed'),
  'payment.expired': (client) => simulatePayment(client, 'expired'),
  'payment.cancelled': async (client) => {
    const { id } = await createPayment(client);
    return (await client.payments.cancel(id)).id;
  },
  'refund.settled': (client) => simulateRefund(client, 'settled'),
  'refund.failed': (client) => simulateRefund(client, 'failed'),
  'payout.submitted': createPayout,
  'payout.sent': createPayout,
  'payout.completed': (client) => simulatePayout(client, 'completed'),
  'payout.failed': (client) => simulatePayout(client, 'failed'),
  'payout.returned': (client) => simulatePayout(client, 'returned'),
  'crypto.payment.received': (client) => simulateCryptoPayment(client, 'received'),
  'crypto.payment.underpaid': (client) => simulateCryptoPayment(client, 'underpaid'),
  'crypto.payment.held': (client) => simulateCryptoPayment(client, 'held'),
  'crypto.payment.expired': (client) => simulateCryptoPayment(client, 'expired'),
  'crypto.settlement.completed': (client) => simulateCryptoSettlement(client, 'completed'),
  'crypto.settlement.failed': (client) => simulateCryptoSettlement(client, 'failed'),
  'dispute.opened': (client) => simulateDispute(client),
  'dispute.updated': (client) => simulateDispute(client, 'dispute_updated'),
  'dispute.closed': (client) => simulateDispute(client, 'dispute_lost'),
};

export const EVENT_TYPES = Object.keys(TRIGGERS) as Type[];

export function listTypes(): string {
  return `Types:\n${EVENT_TYPES.map((type) => `  ${type}\n`).join('')}`;
}

export function findTrigger(type: string): Trigger | undefined {
  return Object.entries(TRIGGERS).find(([name]) => name === type)?.[1];
}

/** Uses a method that the account has, with all that any method needs. */
async function createPayment(client: Client) {
  const available = await client.paymentMethods.listAvailable();
  const catalog = await client.paymentMethods.list();
  const isAvailable = ({ method }: { method: string }) =>
    available.some((a) => a.method === method);
  const usable = catalog.filter(isAvailable);
  // Most methods can be refunded, and iDEAL is one of them.
  const [first] = usable.filter(({ refunds }) => refunds.kind === 'standard').concat(usable);
  const { method, currencies, countries } = first ?? {
    method: 'ideal',
    currencies: [],
    countries: [],
  };
  const body: CreatePayment = {
    ...{ method, amount: 1_050, currency: currencies[0] ?? 'EUR', country: countries[0] ?? 'NL' },
    success_url: 'https://shop.example/thanks',
    error_url: 'https://shop.example/sorry',
    reference: 'trigger',
    customer: { email: 'ada@example.com', first_name: 'Ada', last_name: 'Lovelace' },
  };
  return await client.payments.create(body);
}

async function simulatePayment(
  client: Client,
  event: 'authorized' | 'settled' | 'failed' | 'expired',
): Promise<string> {
  const { id } = await createPayment(client);
  return (await client.sandbox.simulatePayment(id, { event })).id;
}

async function simulateDispute(
  client: Client,
  event?: 'dispute_updated' | 'dispute_lost',
): Promise<string> {
  const payment_id = await simulatePayment(client, 'settled');
  await waitFor(async () => (await client.payments.get(payment_id)).status === 'settled');
  const dispute_id = payment_id;
  await client.sandbox.simulatePayment(payment_id, { event: 'dispute_opened', dispute_id });
  if (event !== undefined) {
    const status = event === 'dispute_updated' ? { dispute_status: 'under_review' as const } : {};
    await client.sandbox.simulatePayment(payment_id, { event, dispute_id, ...status });
  }
  const dispute = await waitFor(async () => (await client.disputes.list({ payment_id })).data[0]);
  return dispute?.id ?? payment_id;
}

async function simulateRefund(client: Client, event: 'settled' | 'failed'): Promise<string> {
  const payment_id = await simulatePayment(client, 'settled');
  await waitFor(async () => (await client.payments.get(payment_id)).status === 'settled');
  const { id } = await client.refunds.create({ payment_id, reason: 'trigger' });
  return (await client.sandbox.simulateRefund(id, { event })).id;
}

async function createPayout(client: Client): Promise<string> {
  const recipient = await client.recipients.create({
    ...{ type: 'bank_account', first_name: 'Ada', last_name: 'Lovelace' },
    ...{ iban: 'NL91ABNA0417164300', address_line1: 'Keizersgracht 1' },
    ...{ city: 'Amsterdam', postal_code: '1015 CN' },
  });
  const money = { amount: 1_050, currency: 'EUR', method: 'sepa_credit_transfer' };
  const body = { recipient_id: recipient.id, reference: 'trigger', ...money };
  return (await client.payouts.create(body)).id;
}

async function simulatePayout(
  client: Client,
  event: 'completed' | 'failed' | 'returned',
): Promise<string> {
  const id = await createPayout(client);
  return (await client.sandbox.simulatePayout(id, { event })).id;
}

async function simulateCryptoPayment(
  client: Client,
  event: 'received' | 'underpaid' | 'held' | 'expired',
): Promise<string> {
  const body = { amount: 1_050, currency: 'EUR', reference: 'trigger', ...ETH };
  const { id } = await client.crypto.payments.create(body);
  return (await client.sandbox.simulateCryptoPayment(id, { event })).id;
}

/** Pays out what a crypto payment brings; the account needs a wallet. */
async function simulateCryptoSettlement(
  client: Client,
  event: 'completed' | 'failed',
): Promise<string> {
  const paymentId = await simulateCryptoPayment(client, 'received');
  await waitFor(async () => (await client.crypto.payments.get(paymentId)).status === 'received');
  const { amount_received: amount } = await client.crypto.payments.get(paymentId);
  const { id } = await client.crypto.settlements.create({ ...ETH, amount });
  return (await client.sandbox.simulateCryptoSettlement(id, { event })).id;
}

const PATIENCE_MS = 30_000;

/** The bank's report may be processed after its answer. What does not come, the next call refuses. */
async function waitFor<T>(look: () => Promise<T>): Promise<T | undefined> {
  for (const end = Date.now() + PATIENCE_MS; Date.now() < end; await sleep(250)) {
    const found = await look();
    if (found) return found;
  }
  return undefined;
}
