import { Counter, type Registry } from 'prom-client';
import type { CallbackMeter } from '../temporal/bank-callbacks';

/** Counts callbacks of banks by what became of them. */
export function createCallbackMeter(registry: Registry): CallbackMeter {
  const callbacks = new Counter({
    name: 'payments_callbacks_total',
    help: 'Callbacks of banks that were handed over, by what became of them.',
    labelNames: ['connector', 'resource', 'name', 'receipt'] as const,
    registers: [registry],
  });
  return { received: (about) => callbacks.inc({ ...about }) };
}

/** Counts callbacks whose sender is not known, by why. */
export function createRefusalMeter(registry: Registry) {
  const refused = new Counter({
    name: 'payments_callbacks_refused_total',
    help: 'Callbacks that moved nothing because their sender is not known, by why.',
    labelNames: ['connector', 'resource', 'reason'] as const,
    registers: [registry],
  });
  return {
    refused: (about: { connector: string; resource: string; reason: string }): void => {
      refused.inc(about);
    },
  };
}
