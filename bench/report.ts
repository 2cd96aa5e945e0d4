import { LIFECYCLES, type LifecycleName } from './lifecycles';
import { total } from './mongo-commands';
import type { BesideFigures, Figures, Latencies, Result } from './result';
import type { Percentiles } from './statistics';

const LABEL_WIDTH = 34;
const COLUMN_WIDTH = 20;

/** Writes the result for people: floor, product, and product over floor. */
export function report(result: Result): string {
  const { floor, product, ratio, options, machine, servers, webhooks, slow_creates } = result;
  const both = (name: string, of: (figures: Figures) => number, digits = 1, over?: number) =>
    row(
      name,
      of(floor).toFixed(digits),
      of(product).toFixed(digits),
      over ?? of(product) / of(floor),
    );
  return [
    '',
    `${machine.cpus} x ${machine.cpu}, ${machine.memory_gb} GB, Node ${machine.node}`,
    `Temporal: ${servers.temporal}; MongoDB: ${servers.mongodb}`,
    `${options.rounds} rounds of ${options.payments} payments, ${options.concurrency} at a time; ` +
      `${result.took_seconds.toFixed(0)} s in all`,
    '',
    heading('', 'floor', 'product', 'product / floor'),
    both('payments/s', (of) => of.payments_per_second, 1, ratio.payments_per_second),
    ...result.rounds.map((round, index) =>
      row(
        `  round ${index + 1}`,
        round.floor.payments_per_second.toFixed(1),
        round.product.payments_per_second.toFixed(1),
        round.ratio,
      ),
    ),
    ...LIFECYCLES.map((name) => besideRow(name, result)),
    '',
    heading('one at a time, ms', 'p50 / p95 / p99', 'p50 / p95 / p99', 'of p50'),
    ...latencyRows(floor.calm, product.calm, ratio),
    heading(`${options.concurrency} at a time, ms`, '', '', ''),
    ...latencyRows(floor.under_load, product.under_load),
    ...LIFECYCLES.flatMap((name) => besideLatencies(name, result.beside[name])),
    '',
    heading('per payment', '', '', ''),
    both('history events', (of) => of.temporal.history_events),
    both('workflow tasks', (of) => of.temporal.workflow_tasks),
    both('Temporal actions', (of) => of.temporal.actions),
    both('MongoDB commands', (of) => of.mongodb_commands),
    both('processor ms, all processes', (of) => total(of.cpu_ms)),
    '',
    ...details('Temporal actions', floor, product, (of) => of.temporal.actions_by_kind),
    ...details('MongoDB commands', floor, product, (of) => of.mongodb_commands_by_name),
    ...details('processor ms under load', floor, product, (of) => of.cpu_ms),
    `webhooks: ${webhooks.received} received, ${webhooks.verified} signatures verified, ` +
      `${webhooks.refused} refused, ${webhooks.repeated} repeated`,
    `slow creates: ${slow_creates.asked_again} asked for again, ` +
      `${slow_creates.answered_created} answered before the bank had`,
    '',
  ].join('\n');
}

/**
 * Sets a lifecycle beside the floor's payments, which are written and told as often as a payout.
 */
function besideRow(name: LifecycleName, { floor, beside }: Result): string {
  const { per_second, over_floor } = beside[name];
  return row(
    `${name}/s (floor: payments)`,
    floor.payments_per_second.toFixed(1),
    per_second.toFixed(1),
    over_floor,
  );
}

function latencyRows(floor: Latencies, product: Latencies, ratio?: Result['ratio']): string[] {
  const line = (name: string, of: (latencies: Latencies) => Percentiles, over?: number) =>
    row(name, three(of(floor)), three(of(product)), over ?? of(product).p50 / of(floor).p50);
  return [
    line('  create', ({ create }) => create, ratio?.create_p50),
    line(
      '  callback to webhook',
      ({ callback_to_webhook }) => callback_to_webhook,
      ratio?.callback_to_webhook_p50,
    ),
  ];
}

function besideLatencies(name: LifecycleName, figures: BesideFigures): string[] {
  const { create, callback_to_webhook } = figures;
  return [
    row(`  create, ${name}`, '', three(create)),
    row(`  callback to webhook, ${name}`, '', three(callback_to_webhook)),
  ];
}

function details(
  title: string,
  floor: Figures,
  product: Figures,
  of: (figures: Figures) => Record<string, number>,
): string[] {
  const names = [...new Set([...Object.keys(of(product)), ...Object.keys(of(floor))])];
  const rows = names
    .map((name) => ({ name, ours: of(product)[name] ?? 0, theirs: of(floor)[name] ?? 0 }))
    .filter(({ ours, theirs }) => ours + theirs >= 0.05);
  return [
    heading(title, '', '', ''),
    ...rows.map(({ name, ours, theirs }) => row(`  ${name}`, theirs.toFixed(1), ours.toFixed(1))),
    '',
  ];
}

function three({ p50, p95, p99 }: Percentiles): string {
  return [p50, p95, p99].map((ms) => ms.toFixed(0)).join(' / ');
}

function row(name: string, floor: string, product: string, ratio?: number): string {
  return heading(name, floor, product, ratio === undefined ? '' : ratio.toFixed(2));
}

function heading(name: string, ...columns: string[]): string {
  const cells = columns.map((text) => text.padStart(COLUMN_WIDTH)).join('');
  return (name.padEnd(LABEL_WIDTH) + cells).trimEnd();
}
