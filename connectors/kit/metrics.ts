import { Counter, Gauge, type Registry } from 'prom-client';
import { describeMetric } from '../../src/base/metrics';

export type KitMeter = ReturnType<typeof createKitMeter>;

export function createKitMeter(registry: Registry, connector: string) {
  const registers = [registry];
  const requests = new Counter({ ...describeMetric('payments_bank_requests_total'), registers });
  const setAside = new Counter({
    ...describeMetric('payments_bank_reports_set_aside_total'),
    registers,
  });
  const polled = new Gauge({
    ...describeMetric('payments_bank_polled_timestamp_seconds'),
    registers,
  });
  return {
    called: (outcome: 'answered' | 'failed') => requests.inc({ connector, outcome }),
    setAside: () => setAside.inc({ connector }),
    polled: () => polled.set({ connector }, Date.now() / 1_000),
  };
}
