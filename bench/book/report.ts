import { z } from 'zod';

/** Figures of one worker, as it prints them. */
export const WorkerFigures = z.object({
  settlements: z.number(),
  /** Transactions of settlements that met another and began again. */
  conflicts: z.number(),
  payouts: z.number(),
  /** Payouts that were not accepted within their five seconds, though they fit. */
  refused: z.number(),
  seconds: z.number(),
});
export type WorkerFigures = z.infer<typeof WorkerFigures>;

/** Figures of two workers over the same payments. */
export interface BookRun {
  name: string;
  settlements: number;
  payouts: number;
  seconds: number;
  settlements_per_second: number;
  conflicts: number;
  refused: number;
  /** Verifications while they worked, and the differences that they found. */
  verifications: number;
  differences: number;
}

export interface BookFigures {
  runs: BookRun[];
  /** Settlements a second of one merchant to those of many. */
  ratio: number;
}

/** Adds the figures of workers up; they began at once. */
export function runOf(
  name: string,
  workers: readonly WorkerFigures[],
  verified: Pick<BookRun, 'verifications' | 'differences'>,
): BookRun {
  const sum = (of: (worker: WorkerFigures) => number) =>
    workers.reduce((total, worker) => total + of(worker), 0);
  const settlements = sum((worker) => worker.settlements);
  const seconds = Math.max(...workers.map((worker) => worker.seconds));
  return {
    name,
    settlements,
    payouts: sum((worker) => worker.payouts),
    seconds,
    settlements_per_second: settlements / seconds,
    conflicts: sum((worker) => worker.conflicts),
    refused: sum((worker) => worker.refused),
    ...verified,
  };
}

const WIDTHS = { name: 16, cell: 15 } as const;
const COLUMNS = ['settlements/s', 'settlements', 'conflicts', 'payouts', 'refused', 'verified'];

/** Writes the figures for people. */
export function reportBook({ runs, ratio }: BookFigures): string {
  const line = (name: string, cells: readonly string[]) =>
    name.padEnd(WIDTHS.name) + cells.map((cell) => cell.padStart(WIDTHS.cell)).join('');
  const rows = runs.map((run) => {
    const { name, settlements, conflicts, payouts, refused, verifications, differences } = run;
    const verified = differences === 0 ? `${verifications} clean` : `${differences} differ`;
    const rate = run.settlements_per_second.toFixed(0);
    return line(name, [rate, ...[settlements, conflicts, payouts, refused].map(String), verified]);
  });
  return ['', line('', COLUMNS), ...rows, '', `One to many: ${ratio.toFixed(2)}`, ''].join('\n');
}
