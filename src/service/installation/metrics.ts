import { Gauge, type Registry } from 'prom-client';
import type { Logger } from '../../base/log';
import { describeMetric, type MetricName } from '../../base/metrics';
import type { Connectors } from '../../routing';
import { isServedBy } from '../../routing';
import type { MetricStore, ServiceMetrics } from '../../store/metrics';
import type { TaskQueueState } from '../../temporal/status';
import type { RoutingDeps } from '../banks/routing/read';

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
  for (const [name, values] of GAUGES) {
    measure(registry, name, async (gauge) => {
      const metrics = await readMetrics();
      if (metrics === undefined) return;
      for (const { value, ...labelled } of values(metrics)) gauge.set(labelled, value);
    });
  }
}

/** Without the database a gauge has no value, which is better than an old one. */
function measure(
  registry: Registry,
  name: MetricName,
  set: (gauge: Gauge) => Promise<unknown>,
): void {
  const options = describeMetric(name);
  const gauge: Gauge = new Gauge({
    ...options,
    registers: [registry],
    collect: async () => {
      gauge.reset();
      // A gauge without labels would report 0.
      if (options.labelNames.length === 0) gauge.remove();
      await set(gauge);
    },
  });
}

type LabelledValue = { value: number; [label: string]: string | number };

const toSeconds = (time: string) => Date.parse(time) / 1_000;

const GAUGES: readonly [MetricName, (metrics: ServiceMetrics) => LabelledValue[]][] = [
  ['payments_webhook_backlog', ({ backlog }) => [{ value: backlog }]],
  [
    'payments_webhook_backlog_age_seconds',
    ({ backlog_age_seconds }) => [{ value: backlog_age_seconds }],
  ],
  [
    'payments_stuck',
    ({ stuck }) => stuck.map(({ count, ...labels }) => ({ ...labels, value: count })),
  ],
  [
    'payments_callbacks_waiting',
    ({ callbacks }) => callbacks.map(({ count: value, ...labels }) => ({ ...labels, value })),
  ],
  [
    'payments_ledger_checked_timestamp_seconds',
    ({ ledger }) => (ledger === null ? [] : [{ value: toSeconds(ledger.checked_at) }]),
  ],
  [
    'payments_ledger_differences',
    ({ ledger }) => (ledger === null ? [] : [{ value: ledger.differences }]),
  ],
  [
    'payments_statement_lines_open',
    ({ statement_lines }) =>
      statement_lines.map(({ day: _, count: value, ...labels }) => ({ ...labels, value })),
  ],
  [
    'payments_statement_lines_open_since_seconds',
    ({ statement_lines }) =>
      statement_lines.map(({ day, count: _, ...labels }) => ({ ...labels, value: toSeconds(day) })),
  ],
  [
    'payments_movements_in_suspense',
    ({ suspense }) =>
      suspense.map(({ since: _, count: value, ...labels }) => ({ ...labels, value })),
  ],
  [
    'payments_movements_in_suspense_since_seconds',
    ({ suspense }) =>
      suspense.map(({ since, count: _, ...labels }) => ({ ...labels, value: toSeconds(since) })),
  ],
  [
    'payments_ledger_fully_checked_timestamp_seconds',
    ({ ledger }) => (ledger?.full_at === undefined ? [] : [{ value: toSeconds(ledger.full_at) }]),
  ],
  [
    'payments_schedule_succeeded_timestamp_seconds',
    ({ schedules }) =>
      schedules.map(({ schedule, succeeded_at }) => ({ schedule, value: toSeconds(succeeded_at) })),
  ],
  ['payments_approvals_waiting', ({ approvals }) => [{ value: approvals }]],
  ['payments_watched_acts', ({ acts }) => acts.map(({ act, count: value }) => ({ act, value }))],
  [
    'payments_mails_unsent',
    ({ mails: { waiting, given_up } }) => [
      { state: 'waiting', value: waiting },
      { state: 'given_up', value: given_up },
    ],
  ],
  [
    'payments_mails_waiting_since_seconds',
    ({ mails: { since } }) => (since === null ? [] : [{ value: since.getTime() / 1_000 }]),
  ],
];

/** Measures what refuses new resources, rules that lead nowhere and pauses, and what waits for a bank. */
export function measureRouting(
  registry: Registry,
  {
    stores,
    connectors,
    readQueue,
  }: RoutingDeps & {
    connectors: Pick<Connectors, 'names'>;
    readQueue: (connector: string) => Promise<Pick<TaskQueueState, 'oldest_seconds'>>;
  },
  log: Pick<Logger, 'warn'>,
): void {
  const count = (name: MetricName, set: (gauge: Gauge) => Promise<void>) =>
    measure(registry, name, (gauge) =>
      set(gauge).catch((err: unknown) => log.warn({ err }, 'metrics not read')),
    );
  count('payments_routing_rules_refusing', async (gauge) => {
    for (const rule of (await stores.routingRules.readCached()).values()) {
      if (isServedBy(connectors, rule)) continue;
      const { connector, method, livemode } = rule;
      gauge.inc({ connector, method, livemode: String(livemode) });
    }
  });
  count('payments_instructions_waiting_seconds', async (gauge) => {
    const read = async (connector: string) => {
      gauge.set({ connector }, (await readQueue(connector)).oldest_seconds);
    };
    await Promise.all(connectors.names.map(read));
  });
  count('payments_connectors_paused', async (gauge) => {
    for (const { connector, livemode } of (await stores.connectorPauses.readCached()).values()) {
      gauge.set({ connector, livemode: String(livemode) }, 1);
    }
  });
}
