import { type Instruments, measureRun, type Sample } from '../measure/cost';
import { type Flow, inLoops, type Run, runLoad, timeWebhook } from '../measure/load';
import type { Receiver } from '../measure/receiver';
import { percentiles } from '../measure/statistics';
import type { Options } from '../options';
import type { Merchant } from '../product/api';
import type { Product } from '../product/subject';
import { buildRow, type Row } from '../report';
import { DELIVERED, type Delivery, type Subject } from '../subject';
import { costRows, fanRows, medians, rateRows, roundsRatio, type Samples, timeRows } from './table';

export interface Context {
  floor: Subject;
  product: Product;
  /** Merchant with as many endpoints as an event can have. */
  fan: Merchant;
  receiver: Receiver;
  instruments: Instruments;
  options: Options;
  say(line: string): void;
}

/** Numbers of endpoints of an event. */
export const FANS = [1, 2, 16] as const;

/** Share of a round's payments that run one at a time. */
const CALM_SHARE = 1 / 3;
const CALM_MIN = 10;

/**
 * Measures payments of both subjects in turns, so that other work of the machine slows both.
 * @returns rows, and the samples under load
 */
export async function measurePayments(
  context: Context,
): Promise<{ rows: Row[]; samples: Samples }> {
  const { payments, concurrency, rounds } = context.options;
  const calmCount = Math.max(CALM_MIN, Math.ceil(payments * CALM_SHARE));
  const samples: Samples = { floor: [], product: [] };
  const calm: Samples = { floor: [], product: [] };
  for (let round = 1; round <= rounds; round += 1) {
    for (const subject of [context.floor, context.product]) {
      const sample = await measureLoad(context, subject, subject.payments, payments, concurrency);
      samples[subject.name].push(sample);
      const rate = sample.perSecond.toFixed(1);
      context.say(`round ${round}  ${subject.name}: ${rate} payments a second`);
    }
    for (const subject of [context.floor, context.product]) {
      const sample = await measureLoad(context, subject, subject.payments, calmCount, 1);
      calm[subject.name].push(sample);
    }
  }
  const p99 = ({ createMs }: Sample) => percentiles(createMs).p99;
  const rows = [
    ...rateRows('payments/s', samples),
    ...timeRows('one at a time', calm),
    buildRow('create, one at a time, p99', ...medians(calm, p99), roundsRatio(calm, p99)),
    ...timeRows(`${concurrency} at a time`, samples),
    ...costRows('payment', samples),
  ];
  return { rows, samples };
}

/** Measures refunds or payouts of the product; the floor's column has its payments. */
export async function measureFlow(
  context: Context,
  name: 'refunds' | 'payouts',
  payments: Samples,
): Promise<Row[]> {
  const { product, options, say } = context;
  const flow = name === 'payouts' ? await product.payouts() : await buildRefunds(context, payments);
  const samples: Samples = { floor: payments.floor, product: [] };
  for (let round = 1; round <= options.rounds; round += 1) {
    const { payments: count, concurrency } = options;
    const sample = await measureLoad(context, product, flow, count, concurrency);
    samples.product.push(sample);
    say(`round ${round}  product: ${sample.perSecond.toFixed(1)} ${name} a second`);
  }
  const resource = name === 'payouts' ? 'payout' : 'refund';
  return [
    ...rateRows(`${name}/s`, samples),
    ...timeRows(name, samples),
    ...costRows(resource, samples),
  ];
}

/** Refunds the payments of the samples, or as many new ones as they lack. */
async function buildRefunds(
  { product, receiver, instruments, options }: Context,
  payments: Samples,
): Promise<Flow> {
  const ids = payments.product.flatMap((sample) => sample.ids);
  const { rounds, concurrency } = options;
  const count = Math.max(0, options.payments * rounds - ids.length);
  const load = { count, concurrency, signal: instruments.signal };
  const missing = await runLoad(product.payments, receiver, load);
  return product.refunds([...ids, ...missing.ids]);
}

export async function measureDeliveries(context: Context): Promise<Row[]> {
  const samples: Samples = { floor: [], product: [] };
  for (let round = 1; round <= context.options.rounds; round += 1) {
    for (const subject of [context.floor, context.product]) {
      const sample = await measureOwnDeliveries(context, subject);
      samples[subject.name].push(sample);
      const rate = sample.perSecond.toFixed(1);
      context.say(`round ${round}  ${subject.name}: ${rate} webhooks a second`);
    }
  }
  const times = (of: readonly Sample[]) => percentiles(of.flatMap(({ webhookMs }) => webhookMs));
  return [
    ...rateRows('webhooks/s', samples),
    buildRow('start to webhook, ms', times(samples.floor), times(samples.product)),
    ...costRows('webhook', samples),
  ];
}

async function measureOwnDeliveries(context: Context, subject: Subject): Promise<Sample> {
  const deliveries = await subject.prepareDeliveries(context.options.payments);
  return await measureStarts(context, subject, deliveries, 1);
}

/** Compares events for several endpoints with events for one, all of the product. */
export async function measureEvents(context: Context): Promise<Row[]> {
  const { product, options, fan, say } = context;
  const samples = new Map<number, Sample[]>();
  for (let round = 1; round <= options.rounds; round += 1) {
    for (const endpoints of FANS) {
      const events = await product.prepareEvents(fan.account_id, options.payments, endpoints);
      const sample = await measureStarts(context, product, events, endpoints);
      samples.set(endpoints, [...(samples.get(endpoints) ?? []), sample]);
      say(`round ${round}  ${endpoints} endpoints: ${sample.perSecond.toFixed(1)} events a second`);
    }
  }
  const one = samples.get(1) ?? [];
  return [...samples].flatMap(([endpoints, each]) =>
    fanRows(endpoints, { floor: one, product: each }),
  );
}

async function measureStarts(
  { receiver, instruments, options }: Context,
  { taskQueues }: Subject,
  deliveries: readonly Delivery[],
  endpoints: number,
): Promise<Sample> {
  const { payments: count, concurrency } = options;
  const result: Run = { createMs: [], webhookMs: [], workflowIds: [], ids: [] };
  const deliver = async (n: number): Promise<void> => {
    const delivery = deliveries[n];
    if (delivery === undefined) return;
    const webhook = { id: delivery.id, transition: DELIVERED, endpoints };
    result.webhookMs.push(await timeWebhook(receiver, webhook, delivery.start));
    result.workflowIds.push([delivery.workflowId]);
    receiver.take(delivery.id);
  };
  const run = async () => {
    await inLoops({ count, concurrency, signal: instruments.signal }, deliver);
    return result;
  };
  return await measureRun(instruments, { count, taskQueues, run });
}

function measureLoad(
  { receiver, instruments }: Context,
  { taskQueues }: Subject,
  flow: Flow,
  count: number,
  concurrency: number,
): Promise<Sample> {
  const load = { count, concurrency, signal: instruments.signal };
  return measureRun(instruments, { count, taskQueues, run: () => runLoad(flow, receiver, load) });
}
