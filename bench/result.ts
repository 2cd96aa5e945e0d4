import { cpus, totalmem } from 'node:os';
import type { RowOptions } from './options';
import type { Receiver } from './receiver';
import type { BesideFigures } from './rows/beside';
import type { ColdFigures } from './rows/cold';
import type { DeliveryFigures } from './rows/deliveries';
import type { MerchantFigures } from './rows/merchants';
import type { PaymentFigures } from './rows/payments';
import type { SlowCreates } from './subject';

/** Figures by row; a row that was not asked for is absent. */
export interface RowFigures {
  payments?: PaymentFigures;
  refunds?: BesideFigures;
  payouts?: BesideFigures;
  deliveries?: DeliveryFigures;
  merchants?: MerchantFigures;
  cold?: ColdFigures;
}

/** Machine that a run was made on. */
export interface Machine {
  cpus: number;
  cpu: string;
  memory_gb: number;
  platform: string;
  node: string;
}

export interface Result {
  machine: Machine;
  servers: { temporal: string; mongodb: string };
  options: RowOptions;
  took_seconds: number;
  rows: RowFigures;
  webhooks: ReturnType<Receiver['counts']>;
  /** Slow creates of the product; none unless the machine is overloaded. */
  slow_creates: SlowCreates;
}

/** Writes the result as `--json` gives it: the figures of payments stand beside the other rows. */
export function jsonOf({ rows, ...result }: Result): string {
  const { payments, refunds, payouts, ...others } = rows;
  return writeJson({ ...result, ...payments, beside: { refunds, payouts }, ...others });
}

/** Writes figures with three decimals, which are more than is known. */
export function writeJson(figures: object): string {
  const round = (_name: string, value: unknown) =>
    typeof value === 'number' ? Math.round(value * 1_000) / 1_000 : value;
  return `${JSON.stringify(figures, round, 2)}\n`;
}

export function machine(): Machine {
  return {
    cpus: cpus().length,
    cpu: cpus()[0]?.model ?? 'unknown',
    memory_gb: Math.round(totalmem() / 1e9),
    platform: `${process.platform} ${process.arch}`,
    node: process.version,
  };
}
