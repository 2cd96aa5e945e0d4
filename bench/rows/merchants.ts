import type { Merchant } from '../account';
import { type Run, runLoad } from '../load';
import { type Cost, measure } from '../measure';
import type { Product } from '../product-subject';
import { median, type Percentiles, percentiles } from '../statistics';
import type { RowContext } from './context';

const MERCHANTS = 10;

type MeasuredRun = Run & Cost;

/** Figures of the payments of some merchants; times in ms. */
interface Figures {
  merchants: number;
  payments_per_second: number;
  create: Percentiles;
  callback_to_webhook: Percentiles;
}

export interface MerchantFigures {
  alone: Figures;
  many: Figures;
  /** Ratio of one merchant's payments a second to those of many, the median of the rounds' own. */
  ratio: number;
}

/** Measures the same load as one merchant's, and shared by many, in turns. */
export async function measureMerchants(context: RowContext): Promise<MerchantFigures> {
  const { instruments, options, openMerchant, shared, say } = context;
  const merchants: Merchant[] = [];
  while (merchants.length < MERCHANTS) merchants.push(await openMerchant());
  say(`opened ${MERCHANTS} merchants`);
  const alone = shared(merchants.slice(0, 1));
  const many = shared(merchants);
  const runs: Record<'alone' | 'many', MeasuredRun[]> = { alone: [], many: [] };
  const one = async (product: Product): Promise<MeasuredRun> => {
    const { receiver, signal } = instruments;
    const { payments: count, concurrency } = options;
    const load = { payments: count, concurrency, signal };
    const run = () => runLoad(product, receiver, load);
    return await measure(instruments, { count, taskQueues: product.taskQueues, run });
  };
  try {
    for (let round = 1; round <= options.rounds; round += 1) {
      runs.alone.push(await one(alone));
      runs.many.push(await one(many));
      const rates = [runs.alone, runs.many].map((done) => done.at(-1)?.perSecond.toFixed(1));
      say(`round ${round}  product: ${rates.join(' and ')} payments a second, of one and of many`);
    }
  } finally {
    await Promise.all([alone.close(), many.close()]);
  }
  const ratios = runs.alone.map(({ perSecond }, n) => perSecond / (runs.many[n]?.perSecond ?? 1));
  return {
    alone: figuresOf(runs.alone, 1),
    many: figuresOf(runs.many, MERCHANTS),
    ratio: median(ratios),
  };
}

function figuresOf(runs: readonly MeasuredRun[], merchants: number): Figures {
  return {
    merchants,
    payments_per_second: median(runs.map(({ perSecond }) => perSecond)),
    create: percentiles(runs.flatMap(({ createMs }) => createMs)),
    callback_to_webhook: percentiles(runs.flatMap(({ callbackMs }) => callbackMs)),
  };
}
