import { randomUUID } from 'node:crypto';
import type { Report } from '../../../connectors/kit';
import { createBankClient } from '../../../connectors/kit/bank-client';
import type { StripeTools } from '../../../connectors/stripe/api';
import type { createEventReader } from '../../../connectors/stripe/events';
import { createMemoryBook } from '../../../connectors/stripe/rehearse';
import { startFakeStripe } from './fake';

export const KEY = 'sk_test_fake';
export const WEBHOOK_SECRET = 'whsec_0123456789abcdef';

/** Functions of the connector, a book, and a fake Stripe whose clock they share. */
export async function openStripe() {
  const bank = await startFakeStripe({ key: KEY });
  const errors: object[] = [];
  const now = () => new Date(bank.now() * 1_000);
  const settings = {
    ...{ STRIPE_API_URL: bank.url, STRIPE_SECRET_KEY_FILE: KEY },
    ...{ STRIPE_WEBHOOK_SECRET_FILE: WEBHOOK_SECRET, STRIPE_CURRENCIES: ['EUR', 'PLN'] },
  };
  const book = createMemoryBook(now);
  const limits = { perSecond: 1_000, atOnce: 50 };
  const tools: StripeTools = {
    call: createBankClient({ limits, needsTls: false, count: () => undefined })(),
    ...{ settings, now, book, livemode: false, pause: { until: 0 } },
    log: {
      info: () => undefined,
      warn: () => undefined,
      error: (about: object) => errors.push(about),
    } as never,
  };
  return {
    ...{ bank, tools, book, errors },
    stop: bank.stop,
  };
}

/** Reads events until nothing is left. @returns names and resources of reports, and the cursor */
export async function drain(
  reader: ReturnType<typeof createEventReader>,
  from: string | null,
  tools: StripeTools,
) {
  const reports: Report[] = [];
  for (let cursor = from; ; ) {
    const page = await reader(cursor, tools);
    ({ cursor } = page);
    reports.push(...page.reports);
    if (page.more) continue;
    const names = reports.map(({ name }) => name);
    return { names, ids: reports.map(({ resource_id }) => resource_id), cursor };
  }
}

export function buildPayment(change: object = {}) {
  return {
    ...{ payment_id: randomUUID(), amount: 1_000, currency: 'EUR', method: 'visa' },
    ...{ country: null, livemode: false, return_url: 'https://shop.example/return' },
    expires_at: new Date(Date.now() + 1_800_000).toISOString(),
    ...change,
  };
}
