import { parseArgs } from 'node:util';
import { StackFailure } from '../src/os/failure';
import { isRowName, ROW_NAMES, ROWS, type RowName } from './rows/names';

export interface RowOptions {
  /** Number of payments of each subject in each round, under load. */
  payments: number;
  /** Number of payments under way at once, under load. */
  concurrency: number;
  rounds: number;
  /** Rows to measure. */
  rows: readonly RowName[];
}

export interface BenchOptions extends RowOptions {
  /** Size of a measure in the place of the rows; at most one is given. */
  instead: Partial<Record<Instead, number>>;
  /** Whether to measure what merchants that don't answer cost the others, in the place of the rows. */
  isolation: boolean;
  /** Whether to measure three times the creates that the service can do, in the place of the rows. */
  overload: boolean;
  json: boolean;
  help: boolean;
}

/** Measures of a size, each in the place of the rows. */
const INSTEAD = ['ledger', 'book', 'lists', 'waiting', 'dashboard'] as const;
type Instead = (typeof INSTEAD)[number];

const DEFAULTS = { payments: 150, concurrency: 16, rounds: 3 } as const;
const LIMITS = {
  payments: 100_000,
  concurrency: 500,
  rounds: 50,
  ledger: 100_000_000,
  book: 1_000_000,
  lists: 100_000_000,
  waiting: 10_000_000,
  dashboard: 10_000_000,
} as const;

const rowLines = ROW_NAMES.map((name) => `  ${name.padEnd(15)}  ${ROWS[name]}`).join('\n');

export const USAGE = `Usage: npm run bench -- [options]
       npm run -s bench -- --json
       npm run bench -- --only deliveries --rounds 1

Measures the product against a floor: the least durable work that the same facts need, on the
same Temporal and MongoDB, in alternating rounds. Progress goes to stderr, the result to stdout.
docs/benchmark.md says what is measured and how to read it.

Options:
  --payments N     payments of each subject in each round, under load (default ${DEFAULTS.payments})
  --concurrency N  payments under way at once, under load (default ${DEFAULTS.concurrency})
  --rounds N       rounds; their median counts (default ${DEFAULTS.rounds})
  --only ROW,...   these rows instead of all
  --json           the result as JSON
  --help           this

Rows:
${rowLines}

Instead of the rows:
  --ledger N       fill a ledger with N postings, and measure \`ledger verify\` on it
  --book N         settle N payments of one merchant by two workers, beside payouts, and as many
                   of 100 merchants
  --lists N        fill a store with N payments, and measure every list in it beside one of 10,000
  --waiting N      let N payments wait, and measure the processes at rest and \`orphan list\`
  --dashboard N    give a merchant N payments, and measure the dashboard's pages beside their
                   bare queries, and an export of all of them
  --overload       measure creates at capacity, and three times as many
  --isolation      measure deliveries alone, and beside merchants that don't answer

Environment:
  TEMPORAL_ADDRESS    use this Temporal server and start none
  TEMPORAL_NAMESPACE  its namespace (default: default); nothing else may work on the queues of a
                      payments service there while the benchmark runs
  MONGODB_URI         use this replica set and start none; databases bench_* are made and dropped
  CACHE_DIR           where fetched servers are kept
`;

/** @throws StackFailure on an unknown option or row, or a number that is none. */
export function readOptions(args: readonly string[]): BenchOptions {
  const { values } = parse(args);
  const sizes = INSTEAD.filter((name) => values[name] !== undefined);
  const { isolation = false, overload = false } = values;
  const flags = Object.entries({ isolation, overload }).filter(([, isGiven]) => isGiven);
  const given = [...sizes, ...flags.map(([name]) => name)];
  if (given.length > 1) {
    throw new StackFailure(`Only one of ${given.map((name) => `--${name}`).join(' and ')} at once`);
  }
  return {
    payments: count('payments', values.payments),
    concurrency: count('concurrency', values.concurrency),
    rounds: count('rounds', values.rounds),
    rows: values.only === undefined ? ROW_NAMES : rowsIn(values.only),
    instead: Object.fromEntries(sizes.map((name) => [name, wholeNumber(name, values[name] ?? '')])),
    isolation,
    overload,
    json: values.json === true,
    help: values.help === true,
  };
}

function parse(args: readonly string[]) {
  const text = { type: 'string' } as const;
  const flag = { type: 'boolean' } as const;
  try {
    return parseArgs({
      args: [...args],
      options: {
        ...{ payments: text, concurrency: text, rounds: text, only: text },
        ...{ ledger: text, book: text, lists: text, waiting: text, dashboard: text },
        isolation: flag,
        overload: flag,
        json: flag,
        help: { ...flag, short: 'h' },
      },
    });
  } catch (error) {
    throw new StackFailure(`${error instanceof Error ? error.message : error}\n\n${USAGE}`);
  }
}

function rowsIn(text: string): RowName[] {
  const names = text.split(',').map((name) => name.trim());
  const unknown = names.filter((name) => !isRowName(name));
  if (unknown.length > 0) {
    throw new StackFailure(`--only takes ${ROW_NAMES.join(', ')}; not ${unknown.join(', ')}`);
  }
  return names.filter(isRowName);
}

function count(name: keyof typeof DEFAULTS, text: string | undefined): number {
  return text === undefined ? DEFAULTS[name] : wholeNumber(name, text);
}

function wholeNumber(name: keyof typeof LIMITS, text: string): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= 1 && value <= LIMITS[name]) return value;
  throw new StackFailure(`--${name} takes a whole number from 1 to ${LIMITS[name]}, not ${text}`);
}
