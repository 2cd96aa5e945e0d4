import { Gauge, type Registry } from 'prom-client';
import type { Logger } from '../base/log';
import type { MetricStore, ServiceMetrics } from '../store/metrics';

/** Frequent scrapes must add little load on the database. */
const FRESH_MS = 10_000;

/** Adds gauges from the database: waiting callbacks, stuck resources, the last ledger check. */
export function measureStores(
  registry: Registry,
  store: MetricStore,
  now: () => Date,
  log: Pick<Logger, 'warn'>,
): void {
  let cache: { at: number; metrics: Promise<ServiceMetrics | undefined> } | undefined;
  const readMetrics = (): Promise<ServiceMetrics | undefined> => {
    const at = now().getTime();
    if (cache === undefined || at - cache.at > FRESH_MS) {
      const reading = store.read(new Date(at)).catch((err: unknown) => {
        log.warn({ err }, 'metrics not read');
        return undefined;
      });
      cache = { at, metrics: reading };
    }
    return cache.metrics;
  };
  for (const { name, help, labels, values } of GAUGES) {
    const gauge: Gauge = new Gauge({
      name,
      help,
      labelNames: [...labels],
      registers: [registry],
      // While the database is unavailable there is no value, which is better than an old one.
      collect: async () => {
        const metrics = await readMetrics();
        gauge.reset();
        // A gauge without labels would report 0.
        if (labels.length === 0) gauge.remove();
        if (metrics === undefined) return;
        for (const { value, ...labelled } of values(metrics)) gauge.set(labelled, value);
      },
    });
  }
}

interface StoreGauge {
  name: string;
  help: string;
  labels: readonly string[];
  values(metrics: ServiceMetrics): { value: number; [label: string]: string | number }[];
}

const GAUGES: readonly StoreGauge[] = [
  {
    name: 'payments_webhook_backlog',
    help: 'Events that have not reached their endpoint yet; 10,000 means that many or more.',
    labels: [],
    values: ({ backlog }) => [{ value: backlog }],
  },
  {
    name: 'payments_webhook_backlog_age_seconds',
    help: 'Time by which the latest attempt of a webhook is overdue.',
    labels: [],
    values: ({ backlog_age_seconds }) => [{ value: backlog_age_seconds }],
  },
  {
    name: 'payments_stuck',
    help: 'Payments, refunds and payouts with an attention reason that is not acknowledged.',
    labels: ['resource', 'livemode', 'reason'],
    values: ({ stuck }) => stuck.map(({ count, ...labels }) => ({ ...labels, value: count })),
  },
  {
    name: 'payments_callbacks_waiting',
    help: 'Callbacks of banks that no workflow has received, including parked ones.',
    labels: ['waits', 'connector'],
    values: ({ callbacks }) =>
      callbacks.map(({ count: value, ...labels }) => ({ ...labels, value })),
  },
  {
    name: 'payments_ledger_checked_timestamp_seconds',
    help: 'Unix time at which `ledger verify` last checked all books.',
    labels: [],
    values: ({ ledger }) =>
      ledger === null ? [] : [{ value: Date.parse(ledger.checked_at) / 1_000 }],
  },
  {
    name: 'payments_ledger_differences',
    help: 'Differences that this check found.',
    labels: [],
    values: ({ ledger }) => (ledger === null ? [] : [{ value: ledger.differences }]),
  },
  {
    name: 'payments_statement_lines_open',
    help: 'Lines of bank statements that match no entry.',
    labels: ['connector', 'livemode'],
    values: ({ statement_lines }) =>
      statement_lines.map(({ connector, livemode, count: value }) => ({
        connector,
        livemode,
        value,
      })),
  },
  {
    name: 'payments_statement_lines_open_since_seconds',
    help: 'Unix time of the day of the oldest of them.',
    labels: ['connector', 'livemode'],
    values: ({ statement_lines }) =>
      statement_lines.map(({ connector, livemode, day }) => ({
        connector,
        livemode,
        value: Date.parse(day) / 1_000,
      })),
  },
  {
    name: 'payments_ledger_fully_checked_timestamp_seconds',
    help: 'Unix time at which it last read all entries again, also those behind checkpoints.',
    labels: [],
    values: ({ ledger }) =>
      ledger?.full_at === undefined ? [] : [{ value: Date.parse(ledger.full_at) / 1_000 }],
  },
  {
    name: 'payments_schedule_succeeded_timestamp_seconds',
    help: 'Unix time at which a schedule last succeeded: audit, ledger, settlements, retention.',
    labels: ['schedule'],
    values: ({ schedules }) =>
      schedules.map(({ schedule, succeeded_at }) => ({
        schedule,
        value: Date.parse(succeeded_at) / 1_000,
      })),
  },
  {
    name: 'payments_approvals_waiting',
    help: 'Requests of operators on live that wait for a second operator.',
    labels: [],
    values: ({ approvals }) => [{ value: approvals }],
  },
  {
    name: 'payments_watched_acts',
    help: 'New live keys, live wallets and frozen accounts of the last hour, by their act.',
    labels: ['act'],
    values: ({ acts }) => acts.map(({ act, count: value }) => ({ act, value })),
  },
];
