import { Gauge, type Registry } from 'prom-client';
import type { Logger } from '../../../base/log';
import { describeMetric, type MetricName } from '../../../base/metrics';
import { isServedBy } from '../../../routing';
import type { RoutingDeps } from './read';

/** Measures what refuses new resources: rules that lead nowhere, and pauses. */
export function measureRouting(
  registry: Registry,
  { stores, connectors }: RoutingDeps,
  log: Pick<Logger, 'warn'>,
): void {
  const measure = (name: MetricName, count: (gauge: Gauge) => Promise<void>) => {
    const gauge: Gauge = new Gauge({
      ...describeMetric(name),
      registers: [registry],
      // Without the database no value, which is better than an old one.
      collect: async () => {
        gauge.reset();
        await count(gauge).catch((err: unknown) => log.warn({ err }, 'metrics not read'));
      },
    });
  };
  measure('payments_routing_rules_refusing', async (gauge) => {
    for (const rule of (await stores.routingRules.readCached()).values()) {
      if (isServedBy(connectors, rule)) continue;
      const { connector, method, livemode } = rule;
      gauge.inc({ connector, method, livemode: String(livemode) });
    }
  });
  measure('payments_connectors_paused', async (gauge) => {
    for (const { connector, livemode } of (await stores.connectorPauses.readCached()).values()) {
      gauge.set({ connector, livemode: String(livemode) }, 1);
    }
  });
}
