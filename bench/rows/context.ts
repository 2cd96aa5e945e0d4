import type { Merchant } from '../account';
import type { Instruments } from '../measure';
import type { RowOptions } from '../options';
import type { Product } from '../product-subject';
import type { Subject } from '../subject';

/** Subjects, instruments and settings of every row. */
export interface RowContext {
  subjects: { floor: Subject; product: Product };
  instruments: Instruments;
  options: RowOptions;
  /** Opens one more merchant of the product. */
  openMerchant(): Promise<Merchant>;
  /** Makes the product as several merchants share it; `close` it when done. */
  shared(merchants: readonly Merchant[]): Product;
  restartWorkers(): Promise<void>;
  /** Tells the progress. */
  say(line: string): void;
}
