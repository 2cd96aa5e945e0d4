import { total } from './mongo-commands';
import type { BesideFigures } from './rows/beside';
import type { ColdFigures } from './rows/cold';
import type { DeliveryFigures } from './rows/deliveries';
import type { MerchantFigures } from './rows/merchants';
import { line, row, three } from './table';

/** Sets a lifecycle beside the floor's payments, which are written and told as often as a payout. */
export function reportBeside(name: string, figures: BesideFigures): string[] {
  const { per_second, over_floor, create, callback_to_webhook } = figures;
  return [
    row(`${name}/s`, '', per_second.toFixed(1), over_floor ?? undefined),
    row('  create, p50 / p95 / p99 ms', '', three(create)),
    row('  callback to webhook', '', three(callback_to_webhook)),
    '',
  ];
}

export function reportDeliveries({ floor, product, ratio }: DeliveryFigures): string[] {
  type Of = (figures: DeliveryFigures['floor']) => number;
  const both = (name: string, of: Of, over?: number) =>
    row(name, of(floor).toFixed(1), of(product).toFixed(1), over ?? of(product) / of(floor));
  const times = [floor, product].map(({ start_to_webhook }) => three(start_to_webhook));
  return [
    line('deliveries alone', 'floor', 'product', 'product / floor'),
    both('webhooks/s', (of) => of.per_second, ratio),
    line('  start to webhook, p50 / p95 / p99 ms', ...times),
    both('  history events', (of) => of.temporal.history_events),
    both('  workflow tasks', (of) => of.temporal.workflow_tasks),
    both('  Temporal actions', (of) => of.temporal.actions),
    both('  MongoDB commands', (of) => of.mongodb_commands),
    both('  processor ms, all processes', (of) => total(of.cpu_ms)),
    '',
  ];
}

export function reportMerchants({ alone, many, ratio }: MerchantFigures): string[] {
  const both = [alone, many];
  const cells = (of: (figures: MerchantFigures['alone']) => string) => both.map(of);
  return [
    line('merchants', 'one', String(many.merchants), 'one / many'),
    line('payments/s', ...cells((of) => of.payments_per_second.toFixed(1)), ratio.toFixed(2)),
    line('  create, p50 / p95 / p99 ms', ...cells(({ create }) => three(create))),
    line('  callback to webhook', ...cells((of) => three(of.callback_to_webhook))),
    '',
  ];
}

export function reportCold(figures: ColdFigures): string[] {
  return (['floor', 'product'] as const).flatMap((name) => {
    const { warm, cold, ratio } = figures[name];
    const both = [warm, cold];
    return [
      line(`callbacks, ${name}`, 'remembered', 'forgotten', 'forgotten / rem.'),
      line(
        '  callback to webhook, p50/p95/p99 ms',
        ...both.map((of) => three(of.callback_to_webhook)),
        ratio.toFixed(2),
      ),
      line(
        '  callbacks/s',
        ...both.map((of) => of.callbacks_per_second.toFixed(1)),
        (cold.callbacks_per_second / warm.callbacks_per_second).toFixed(2),
      ),
      line(
        '  processor ms a callback',
        ...both.map((of) => of.cpu_ms.toFixed(1)),
        (cold.cpu_ms / warm.cpu_ms).toFixed(2),
      ),
      '',
    ];
  });
}
