import type { Stores } from '../../src/store';
import { idOf, LARGE_MERCHANT } from '../lists/fill';

const OWNER = { account_id: LARGE_MERCHANT, livemode: false } as const;
/** Rows of a page, and the one that tells of another page. */
const LIMIT = 26;

/** Page of the dashboard, and the bare query that its rows come from. */
export interface DashboardPage {
  name: string;
  /** Path behind `/dashboard/sandbox`. */
  path: (n: number) => string;
  query: (stores: Stores, n: number) => Promise<unknown>;
}

const list = (name: string, query: string, narrowed: object): DashboardPage => ({
  name,
  path: () => `/payments${query}`,
  query: ({ payments }) => payments.list({ ...OWNER, ...narrowed, limit: LIMIT }),
});

/** Last thirty days, by both their ends. */
const MONTH = { from: daysAgo(30), until: daysAgo(0) };

/** Pages that are measured; `n` names a payment that the merchant has. */
export const PAGES: readonly DashboardPage[] = [
  {
    name: 'overview',
    path: () => '/overview',
    query: ({ payments }) => payments.settledByDay(OWNER.account_id, OWNER.livemode, daysAgo(29)),
  },
  list('payments', '', {}),
  list('payments by status', '?status=expired', { status: 'expired' }),
  list('payments by method and status', '?method=visa&status=failed', {
    method: 'visa',
    status: 'failed',
  }),
  list('payments of a month by status', `?from=${MONTH.from}&to=${daysAgo(1)}&status=failed`, {
    status: 'failed',
    since: positionOfDay(MONTH.from),
    until: positionOfDay(MONTH.until),
  }),
  {
    name: 'payments by reference',
    path: (n) => `/payments?search=order-${n}`,
    query: ({ payments }, n) => payments.list({ ...OWNER, reference: `order-${n}`, limit: LIMIT }),
  },
  {
    name: 'a payment with its timeline',
    path: (n) => `/payments/${idOf('payment', n)}`,
    query: ({ payments }, n) => payments.find(idOf('payment', n), OWNER.account_id, OWNER.livemode),
  },
  {
    name: 'refunds',
    path: () => '/refunds',
    query: ({ refunds }) => refunds.list({ ...OWNER, limit: LIMIT }),
  },
  {
    name: 'payouts that came back',
    path: () => '/payouts?status=returned',
    query: ({ payouts }) => payouts.list({ ...OWNER, status: 'returned', limit: LIMIT }),
  },
  {
    name: 'balances',
    path: () => '/balances',
    query: ({ ledger }) => ledger.balances(OWNER.account_id, OWNER.livemode),
  },
  {
    name: 'deliveries',
    path: () => '/webhooks/deliveries',
    query: ({ events }) => events.list({ ...OWNER, limit: LIMIT }),
  },
  {
    name: 'deliveries that failed',
    path: () => '/webhooks/deliveries?status=exhausted',
    query: ({ events }) => events.list({ ...OWNER, statuses: ['exhausted'], limit: LIMIT }),
  },
];

function positionOfDay(day: string): string {
  return `${day}T00:00:00.000000000Z`;
}

function daysAgo(days: number): string {
  return new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10);
}
