import { Gauge, type Registry } from 'prom-client';
import type { Logger } from '../../base/log';
import { describeMetric } from '../../base/metrics';
import { isServedBy } from '../../routing';
import type { RoutingDeps } from './read';

/** Measures rules that refuse what they are about. */
export function measureRouting(
  registry: Registry,
  { stores, connectors }: RoutingDeps,
  log: Pick<Logger, 'warn'>,
): void {
  const gauge: Gauge = new Gauge({
    ...describeMetric('payments_routing_rules_refusing'),
    registers: [registry],
    // Without the database no value, which is better than an old one.
    collect: async () => {
      gauge.reset();
      try {
        for (const rule of (await stores.routingRules.readCached()).values()) {
          if (isServedBy(connectors, rule)) continue;
          const { connector, method, livemode } = rule;
          gauge.inc({ connector, method, livemode: String(livemode) });
        }
      } catch (err) {
        log.warn({ err }, 'metrics not read');
      }
    },
  });
}
