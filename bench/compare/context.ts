import type { Instruments } from '../measure/cost';
import type { Receiver } from '../measure/receiver';
import type { Options } from '../options';
import type { Product } from '../product/subject';
import type { Subject } from '../subject';

/** Subjects and instruments of every row. */
export interface Context {
  floor: Subject;
  product: Product;
  receiver: Receiver;
  instruments: Instruments;
  options: Options;
  /** Writes a line of progress. */
  say(line: string): void;
}
