import type { PaymentStatus } from '../../domain/payment';
import type { BalanceRow, Receivable } from '../../ledger/book';
import type { Stores } from '../../store';
import type { SettledDay } from '../../store/payment-figures';
import type { Call } from '../route';

const DAY_MS = 86_400_000;
/** Days of the chart, today included. */
export const DAYS = 30;
/** Resources of each kind that are named among those in need. */
const IN_NEED_MAX = 5;

/** Resource that our operators look into. */
interface InNeed {
  noun: string;
  /** Path of its list. */
  path: string;
  id: string;
  attention: string;
  created_at: string;
}

/** Webhooks of the last 24 hours. */
interface WebhookHealth {
  isRegistered: boolean;
  events: number;
  exhausted: number;
  /** Events that wait for another attempt. */
  waiting: number;
}

export interface Overview {
  balances: readonly BalanceRow[];
  receivables: readonly Receivable[];
  settled: readonly SettledDay[];
  /** Payments made today, by state. */
  today: readonly { status: PaymentStatus; payments: number }[];
  inNeed: readonly InNeed[];
  webhooks: WebhookHealth;
}

/** Reads the figures of the first page; each comes from an index, and days are those of UTC. */
export async function readOverview(
  stores: Stores,
  { account_id, livemode }: Call['scope'],
  { now, viewer }: Pick<Call, 'now' | 'viewer'>,
): Promise<Overview> {
  const owner = [account_id, livemode] as const;
  const today = dayText(now);
  const first = dayText(new Date(now.getTime() - (DAYS - 1) * DAY_MS));
  const [balances, receivables, settled, counts, inNeed, webhooks] = await Promise.all([
    stores.ledger.balances(...owner),
    stores.ledger.receivables(...owner),
    stores.payments.settledByDay(...owner, first),
    stores.payments.countByStatus(...owner, today),
    readInNeed(stores, owner, viewer.account.crypto),
    readHealth(stores, owner, now),
  ]);
  return { balances, receivables, settled, today: counts, inNeed, webhooks };
}

const MONEY = [
  { noun: 'payment', path: '/payments', rows: 'payments' },
  { noun: 'refund', path: '/refunds', rows: 'refunds' },
  { noun: 'payout', path: '/payouts', rows: 'payouts' },
] as const;
const COINS = [
  { noun: 'crypto payment', path: '/crypto/payments', rows: 'crypto_payments' },
  { noun: 'settlement', path: '/crypto/settlements', rows: 'crypto_settlements' },
] as const;

async function readInNeed(
  stores: Stores,
  owner: readonly [string, boolean],
  crypto: boolean,
): Promise<InNeed[]> {
  const kinds = crypto ? [...MONEY, ...COINS] : MONEY;
  const each = await Promise.all(
    kinds.map(async ({ noun, path, rows }) => {
      const found = await stores[rows].inNeed(...owner, IN_NEED_MAX);
      return found.map(({ _id: id, attention, created_at }) => ({
        noun,
        path,
        id,
        attention: attention ?? '',
        created_at,
      }));
    }),
  );
  return each.flat();
}

async function readHealth(
  { events, endpoints }: Stores,
  [account_id, livemode]: readonly [string, boolean],
  now: Date,
): Promise<WebhookHealth> {
  const since = new Date(now.getTime() - DAY_MS).toISOString();
  const undelivered = { account_id, livemode, since, until: now.toISOString() };
  const [endpoint, count, exhausted, waiting] = await Promise.all([
    endpoints.get(account_id, livemode),
    events.countSince(account_id, livemode, since),
    events.countToSendAgain({ ...undelivered, statuses: ['exhausted'] }),
    events.countToSendAgain({ ...undelivered, statuses: ['pending'] }),
  ]);
  return { isRegistered: endpoint !== null, events: count, exhausted, waiting };
}

/** Currencies that were settled, the one of most payments first. */
export function currenciesOf(settled: readonly SettledDay[]): string[] {
  const counts = new Map<string, number>();
  for (const { currency, payments } of settled) {
    counts.set(currency, (counts.get(currency) ?? 0) + payments);
  }
  return [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).map(([name]) => name);
}

/** Volume of one day; minor units. */
export interface Day {
  day: string;
  amount: number;
  payments: number;
}

/** The days of the chart in one currency, the oldest first, those without a payment too. */
export function daysOf(settled: readonly SettledDay[], currency: string, now: Date): Day[] {
  const known = new Map(
    settled.filter((row) => row.currency === currency).map((row) => [row.day, row]),
  );
  return Array.from({ length: DAYS }, (_, at) => {
    const day = dayText(new Date(now.getTime() - (DAYS - 1 - at) * DAY_MS));
    const { amount = 0, payments = 0 } = known.get(day) ?? {};
    return { day, amount, payments };
  });
}

const PAID: readonly PaymentStatus[] = ['authorized', 'settled'];
const LOST: readonly PaymentStatus[] = ['failed', 'cancelled', 'expired'];

/**
 * Share of today's payments that were paid, among those whose customer has decided; null before one
 * has.
 */
export function successRate(today: Overview['today']): number | null {
  const sum = (of: readonly PaymentStatus[]) =>
    today.reduce((total, row) => total + (of.includes(row.status) ? row.payments : 0), 0);
  const [paid, lost] = [sum(PAID), sum(LOST)];
  return paid + lost === 0 ? null : paid / (paid + lost);
}

function dayText(at: Date): string {
  return at.toISOString().slice(0, 10);
}
