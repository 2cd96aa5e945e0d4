import type { PaymentStatus } from '../../domain/payment/payment';
import { KINDS } from '../../lifecycles';
import type { OverviewCounts, SettledDay } from '../../store/payments';
import { hasSecondFactor } from '../../store/users';
import type { Owner, ServiceDeps } from '../access';
import { toFirstRows } from '../paging';
import { readProvedBalances } from './read';
import { getRows, type Kind } from './resources/read';

const DAY_MS = 86_400_000;
/** Today included. */
export const DAYS = 30;
const NEEDS_ATTENTION_MAX = 5;

type ReadDeps = Pick<ServiceDeps, 'stores'>;

export type Overview = Awaited<ReturnType<typeof readOverview>>;

/** Reads only indexes; days are UTC. */
export async function readOverview(
  deps: ReadDeps,
  owner: Owner,
  { now, crypto }: { now: Date; crypto: boolean },
) {
  const { account_id, livemode } = owner;
  const { overviewCounts, endpoints } = deps.stores;
  const kinds = crypto ? KINDS : KINDS.filter((kind) => !kind.startsWith('crypto_'));
  const [balances, counts, disputesDue, needsAttention, endpoint] = await Promise.all([
    readProvedBalances(deps, owner),
    overviewCounts.get(`${account_id}:${livemode}`, () => readCounts(deps, owner, now)),
    deps.stores.disputes.listDue(account_id, livemode, {
      now: now.toISOString(),
      limit: NEEDS_ATTENTION_MAX + 1,
    }),
    Promise.all(kinds.map((kind) => listNeedingAttention(deps, kind, owner))),
    endpoints.get(account_id, livemode),
  ]);
  const { settledDays, today, ...webhooks } = counts;
  return {
    ...balances,
    ...{ settledDays, today, needsAttention: needsAttention.flat() },
    disputesDue: toFirstRows(disputesDue, NEEDS_ATTENTION_MAX),
    webhooks: { isRegistered: endpoint !== null, ...webhooks },
  };
}

async function listNeedingAttention(deps: ReadDeps, kind: Kind, { account_id, livemode }: Owner) {
  const rows = getRows(deps, kind);
  const resources = await rows.listNeedingAttention(account_id, livemode, NEEDS_ATTENTION_MAX);
  return resources.map(({ _id: id, attention }) => ({ kind, id, attention: attention ?? '' }));
}

async function readCounts(
  { stores: { payments, events, deliveries } }: ReadDeps,
  owner: Owner,
  now: Date,
): Promise<OverviewCounts> {
  const { account_id, livemode } = owner;
  const firstDay = toDay(new Date(now.getTime() - (DAYS - 1) * DAY_MS));
  const since = new Date(now.getTime() - DAY_MS).toISOString();
  const baseFilter = { ...owner, since, until: now.toISOString() };
  const [settledDays, today, count, exhausted, waiting] = await Promise.all([
    payments.settledByDay(account_id, livemode, firstDay),
    payments.countByStatus(account_id, livemode, toDay(now)),
    events.countSince(account_id, livemode, since),
    deliveries.countResendable({ ...baseFilter, statuses: ['exhausted'] }),
    deliveries.countResendable({ ...baseFilter, statuses: ['pending'] }),
  ]);
  return { settledDays, today, events: count, exhausted, waiting };
}

/** The most frequent first. */
export function listCurrencies(settledDays: readonly SettledDay[]): string[] {
  const counts = new Map<string, number>();
  for (const { currency, payments } of settledDays) {
    counts.set(currency, (counts.get(currency) ?? 0) + payments);
  }
  return [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).map(([name]) => name);
}

/** Minor units. */
export interface Day {
  day: string;
  amount: number;
  payments: number;
}

/** Oldest first, including days without payments. */
export function buildDays(settledDays: readonly SettledDay[], currency: string, now: Date): Day[] {
  const rowByDay = new Map(
    settledDays.filter((row) => row.currency === currency).map((row) => [row.day, row]),
  );
  return Array.from({ length: DAYS }, (_, at) => {
    const day = toDay(new Date(now.getTime() - (DAYS - 1 - at) * DAY_MS));
    const { amount = 0, payments = 0 } = rowByDay.get(day) ?? {};
    return { day, amount, payments };
  });
}

const PAID: readonly PaymentStatus[] = ['authorized', 'settled'];
const LOST: readonly PaymentStatus[] = ['failed', 'cancelled', 'expired'];

/** Share of paid among today's decided payments; null without any. */
export function successRate(today: Overview['today']): number | null {
  const sum = (statuses: readonly PaymentStatus[]) =>
    today.reduce((total, row) => total + (statuses.includes(row.status) ? row.payments : 0), 0);
  const [paid, lost] = [sum(PAID), sum(LOST)];
  return paid + lost === 0 ? null : paid / (paid + lost);
}

function toDay(at: Date): string {
  return at.toISOString().slice(0, 10);
}

const LATEST_EVENTS = 100;

export async function readSetupProgress(
  { stores }: Pick<ServiceDeps, 'stores'>,
  owner: Owner,
  user_id: string,
) {
  const { account_id, livemode } = owner;
  const [keys, payments, endpoint, events, members] = await Promise.all([
    stores.keys.forAccount(account_id, livemode),
    stores.payments.list({ ...owner, limit: 1 }),
    stores.endpoints.get(account_id, livemode),
    stores.events.list({ ...owner, limit: LATEST_EVENTS }),
    stores.users.forAccount(account_id),
  ]);
  const deliveries = await stores.deliveries.forEvents(events.map(({ _id }) => _id));
  const ownKeys = keys.filter(({ revoked_at }) => revoked_at === null);
  return {
    hasKey: ownKeys.length > 0,
    isKeyUsed: ownKeys.some(({ last_used_at }) => last_used_at !== null),
    hasPayment: payments.length > 0,
    endpointUrl: endpoint?.url,
    hasDelivery: deliveries.some(({ status }) => status === 'delivered'),
    hasSecondFactor: members.some((user) => user._id === user_id && hasSecondFactor(user)),
    hasTeam: members.length > 1,
  };
}
