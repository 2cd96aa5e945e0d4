import { Counter, type Registry } from 'prom-client';
import { describeMetric } from '../base/metrics';
import type { CallbackMeter } from './deliver';

export function createCallbackMeter(registry: Registry): CallbackMeter {
  const callbacks = new Counter({
    ...describeMetric('payments_callbacks_total'),
    registers: [registry],
  });
  return { received: (about) => callbacks.inc({ ...about }) };
}

export function createRefusalMeter(registry: Registry) {
  const refusals = new Counter({
    ...describeMetric('payments_callbacks_refused_total'),
    registers: [registry],
  });
  return {
    refused: (about: { connector: string; resource: string; reason: string }): void => {
      refusals.inc(about);
    },
  };
}
