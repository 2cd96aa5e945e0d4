import { LIFECYCLES } from './lifecycles';
import { total } from './mongo-commands';
import { reportBeside, reportCold, reportDeliveries, reportMerchants } from './report-rows';
import type { Machine, Result } from './result';
import type { Figures, Latencies, PaymentFigures } from './rows/payments';
import type { Percentiles } from './statistics';
import { details, line, row, three } from './table';

/** Writes the result for people: floor, product, and product over floor. */
export function report(result: Result): string {
  const { rows, options, servers, webhooks, slow_creates } = result;
  const beside = LIFECYCLES.flatMap((name) => {
    const figures = rows[name];
    return figures === undefined ? [] : reportBeside(name, figures);
  });
  return [
    '',
    machineLine(result.machine),
    `Temporal: ${servers.temporal}; MongoDB: ${servers.mongodb}`,
    `${options.rounds} rounds of ${options.payments} payments, ${options.concurrency} at a time; ` +
      `${result.took_seconds.toFixed(0)} s in all`,
    '',
    ...(rows.payments === undefined ? [] : reportPayments(rows.payments, options.concurrency)),
    ...(beside.length === 0 ? [] : [line('beside', '', 'product', 'product / floor'), ...beside]),
    ...(rows.deliveries === undefined ? [] : reportDeliveries(rows.deliveries)),
    ...(rows.merchants === undefined ? [] : reportMerchants(rows.merchants)),
    ...(rows.cold === undefined ? [] : reportCold(rows.cold)),
    `webhooks: ${webhooks.received} received, ${webhooks.verified} signatures verified, ` +
      `${webhooks.refused} refused, ${webhooks.repeated} repeated`,
    `slow creates: ${slow_creates.asked_again} asked for again, ` +
      `${slow_creates.answered_created} answered before the bank had`,
    '',
  ].join('\n');
}

export function machineLine({ cpus, cpu, memory_gb, node }: Machine): string {
  return `${cpus} x ${cpu}, ${memory_gb} GB, Node ${node}`;
}

function reportPayments(
  { floor, product, ratio, rounds }: PaymentFigures,
  concurrency: number,
): string[] {
  const both = (name: string, of: (figures: Figures) => number, over?: number) =>
    row(name, of(floor).toFixed(1), of(product).toFixed(1), over ?? of(product) / of(floor));
  return [
    line('', 'floor', 'product', 'product / floor'),
    both('payments/s', (of) => of.payments_per_second, ratio.payments_per_second),
    ...rounds.map((round, index) => {
      const rates = [round.floor, round.product].map((of) => of.payments_per_second.toFixed(1));
      return row(`  round ${index + 1}`, rates[0] ?? '', rates[1] ?? '', round.ratio);
    }),
    '',
    line('one at a time, ms', 'p50 / p95 / p99', 'p50 / p95 / p99', 'of p50'),
    ...latencyRows(floor.calm, product.calm, ratio),
    line(`  create, of p99`, '', '', ratio.create_p99.toFixed(2)),
    line(`${concurrency} at a time, ms`),
    ...latencyRows(floor.under_load, product.under_load),
    '',
    line('per payment'),
    both('history events', (of) => of.temporal.history_events),
    both('workflow tasks', (of) => of.temporal.workflow_tasks),
    both('Temporal actions', (of) => of.temporal.actions),
    both('MongoDB commands', (of) => of.mongodb_commands),
    both('processor ms, all processes', (of) => total(of.cpu_ms)),
    '',
    ...details(
      'Temporal actions',
      floor.temporal.actions_by_kind,
      product.temporal.actions_by_kind,
    ),
    ...details(
      'MongoDB commands',
      floor.mongodb_commands_by_name,
      product.mongodb_commands_by_name,
    ),
    ...details('processor ms under load', floor.cpu_ms, product.cpu_ms),
  ];
}

function latencyRows(
  floor: Latencies,
  product: Latencies,
  ratio?: PaymentFigures['ratio'],
): string[] {
  const of = (name: string, pick: (latencies: Latencies) => Percentiles, over?: number) => {
    const [theirs, ours] = [pick(floor), pick(product)];
    return row(name, three(theirs), three(ours), over ?? ours.p50 / theirs.p50);
  };
  return [
    of('  create', ({ create }) => create, ratio?.create_p50),
    of(
      '  callback to webhook',
      ({ callback_to_webhook }) => callback_to_webhook,
      ratio?.callback_to_webhook_p50,
    ),
  ];
}
