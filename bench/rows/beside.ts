import { type LifecycleName, type LifecycleRun, runLifecycle } from '../lifecycles';
import { runLoad } from '../load';
import { median, type Percentiles, percentiles } from '../statistics';
import type { RowContext } from './context';

/** Figures of one of the product's other lifecycles; times in ms. */
export interface BesideFigures {
  /** Median of the rounds. */
  per_second: number;
  /**
   * Ratio to the floor's payments a second; each has its state written and told as often, or less.
   * Null where these were not measured.
   */
  over_floor: number | null;
  create: Percentiles;
  callback_to_webhook: Percentiles;
}

/**
 * Measures refunds of payments that were made, or payouts, under load, one run for each round.
 * @param settled payments of the product; those that refunds lack are made first
 */
export async function measureBeside(
  context: RowContext,
  name: LifecycleName,
  { settled, floor }: { settled: readonly string[]; floor: number | undefined },
): Promise<BesideFigures> {
  const { subjects, instruments, options, say } = context;
  const { receiver, signal } = instruments;
  const { payments: count, concurrency, rounds } = options;
  const refundable = name === 'refunds' ? await settledOf(context, settled) : [];
  const lifecycle = (await subjects.product.lifecycles(refundable))[name];
  const runs: LifecycleRun[] = [];
  for (let round = 1; round <= rounds; round += 1) {
    const run = await runLifecycle(lifecycle, receiver, { count, concurrency, signal });
    runs.push(run);
    say(`round ${round}  product: ${run.perSecond.toFixed(1)} ${name} a second`);
  }
  const per_second = median(runs.map(({ perSecond }) => perSecond));
  return {
    per_second,
    over_floor: floor === undefined ? null : per_second / floor,
    create: percentiles(runs.flatMap(({ createMs }) => createMs)),
    callback_to_webhook: percentiles(runs.flatMap(({ callbackMs }) => callbackMs)),
  };
}

/** A payment to each refund. */
async function settledOf(
  { subjects: { product }, instruments: { receiver, signal }, options, say }: RowContext,
  settled: readonly string[],
): Promise<string[]> {
  const { payments, rounds, concurrency } = options;
  const missing = payments * rounds - settled.length;
  if (missing <= 0) return [...settled];
  say(`before the refunds  product: ${missing} payments`);
  const { made } = await runLoad(product, receiver, { payments: missing, concurrency, signal });
  return [...settled, ...made.map(({ paymentId }) => paymentId)];
}
