import { Counter, type Registry } from 'prom-client';
import type { CallbackMeter } from './deliver';

export function createCallbackMeter(registry: Registry): CallbackMeter {
  const callbacks = new Counter({
    name: 'payments_callbacks_total',
    help: 'Callbacks received from banks, by receipt.',
    labelNames: ['connector', 'resource', 'name', 'receipt'] as const,
    registers: [registry],
  });
  return { received: (about) => callbacks.inc({ ...about }) };
}

export function createRefusalMeter(registry: Registry) {
  const refusals = new Counter({
    name: 'payments_callbacks_refused_total',
    help: 'Callbacks ignored because their signature is not verified, by reason.',
    labelNames: ['connector', 'resource', 'reason'] as const,
    registers: [registry],
  });
  return {
    refused: (about: { connector: string; resource: string; reason: string }): void => {
      refusals.inc(about);
    },
  };
}
