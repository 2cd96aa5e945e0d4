import { Gauge, type Registry } from 'prom-client';
import type { Logger } from '../../base/log';
import { describeMetric, type MetricName } from '../../base/metrics';
import type { MetricStore, ServiceMetrics } from '../../store/metrics';

/** Frequent scrapes must add little load on the database. */
const FRESH_MS = 10_000;

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
  for (const { values, ...gaugeOptions } of GAUGES) {
    const gauge: Gauge = new Gauge({
      ...gaugeOptions,
      registers: [registry],
      // Without the database no value, which is better than an old one.
      collect: async () => {
        const metrics = await readMetrics();
        gauge.reset();
        // A gauge without labels would report 0.
        if (gaugeOptions.labelNames.length === 0) gauge.remove();
        if (metrics === undefined) return;
        for (const { value, ...labelled } of values(metrics)) gauge.set(labelled, value);
      },
    });
  }
}

interface StoreGauge {
  name: MetricName;
  help: string;
  labelNames: string[];
  values(metrics: ServiceMetrics): { value: number; [label: string]: string | number }[];
}

const GAUGES: readonly StoreGauge[] = [
  {
    ...describeMetric('payments_webhook_backlog'),
    values: ({ backlog }) => [{ value: backlog }],
  },
  {
    ...describeMetric('payments_webhook_backlog_age_seconds'),
    values: ({ backlog_age_seconds }) => [{ value: backlog_age_seconds }],
  },
  {
    ...describeMetric('payments_stuck'),
    values: ({ stuck }) => stuck.map(({ count, ...labels }) => ({ ...labels, value: count })),
  },
  {
    ...describeMetric('payments_callbacks_waiting'),
    values: ({ callbacks }) =>
      callbacks.map(({ count: value, ...labels }) => ({ ...labels, value })),
  },
  {
    ...describeMetric('payments_ledger_checked_timestamp_seconds'),
    values: ({ ledger }) =>
      ledger === null ? [] : [{ value: Date.parse(ledger.checked_at) / 1_000 }],
  },
  {
    ...describeMetric('payments_ledger_differences'),
    values: ({ ledger }) => (ledger === null ? [] : [{ value: ledger.differences }]),
  },
  {
    ...describeMetric('payments_statement_lines_open'),
    values: ({ statement_lines }) =>
      statement_lines.map(({ connector, livemode, count: value }) => ({
        connector,
        livemode,
        value,
      })),
  },
  {
    ...describeMetric('payments_statement_lines_open_since_seconds'),
    values: ({ statement_lines }) =>
      statement_lines.map(({ connector, livemode, day }) => ({
        connector,
        livemode,
        value: Date.parse(day) / 1_000,
      })),
  },
  {
    ...describeMetric('payments_movements_in_suspense'),
    values: ({ suspense }) =>
      suspense.map(({ connector, livemode, count: value }) => ({ connector, livemode, value })),
  },
  {
    ...describeMetric('payments_movements_in_suspense_since_seconds'),
    values: ({ suspense }) =>
      suspense.map(({ connector, livemode, since }) => ({
        ...{ connector, livemode },
        value: Date.parse(since) / 1_000,
      })),
  },
  {
    ...describeMetric('payments_ledger_fully_checked_timestamp_seconds'),
    values: ({ ledger }) =>
      ledger?.full_at === undefined ? [] : [{ value: Date.parse(ledger.full_at) / 1_000 }],
  },
  {
    ...describeMetric('payments_schedule_succeeded_timestamp_seconds'),
    values: ({ schedules }) =>
      schedules.map(({ schedule, succeeded_at }) => ({
        schedule,
        value: Date.parse(succeeded_at) / 1_000,
      })),
  },
  {
    ...describeMetric('payments_approvals_waiting'),
    values: ({ approvals }) => [{ value: approvals }],
  },
  {
    ...describeMetric('payments_watched_acts'),
    values: ({ acts }) => acts.map(({ act, count: value }) => ({ act, value })),
  },
  {
    ...describeMetric('payments_mails_unsent'),
    values: ({ mails: { waiting, given_up } }) => [
      { state: 'waiting', value: waiting },
      { state: 'given_up', value: given_up },
    ],
  },
  {
    ...describeMetric('payments_mails_waiting_since_seconds'),
    values: ({ mails: { since } }) => (since === null ? [] : [{ value: since.getTime() / 1_000 }]),
  },
];
