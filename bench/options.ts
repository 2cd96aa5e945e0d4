import { parseArgs } from 'node:util';
import { StackFailure } from '../src/os/failure';

export interface BenchOptions {
  /** Number of payments of each subject in each round, under load. */
  payments: number;
  /** Number of payments under way at once, under load. */
  concurrency: number;
  rounds: number;
  /** Number of postings of the ledger to verify instead; undefined for the benchmark itself. */
  ledger: number | undefined;
  json: boolean;
  help: boolean;
}

const DEFAULTS = { payments: 150, concurrency: 16, rounds: 3 } as const;
const LIMITS = { payments: 100_000, concurrency: 500, rounds: 50, ledger: 100_000_000 } as const;

export const USAGE = `Usage: npm run bench -- [options]
       npm run -s bench -- --json

Measures the product against a floor: the least durable work that the same facts need, on the
same Temporal and MongoDB, in alternating rounds. Progress goes to stderr, the result to stdout.
docs/benchmark.md says what is measured and how to read it.

Options:
  --payments N     payments of each subject in each round, under load (default ${DEFAULTS.payments})
  --concurrency N  payments under way at once, under load (default ${DEFAULTS.concurrency})
  --rounds N       rounds; their median counts (default ${DEFAULTS.rounds})
  --ledger N       fill a ledger with N postings instead, and measure \`ledger verify\` on it
  --json           the result as JSON
  --help           this

Environment:
  TEMPORAL_ADDRESS    use this Temporal server and start none
  TEMPORAL_NAMESPACE  its namespace (default: default); nothing else may work on the queues of a
                      payments service there while the benchmark runs
  MONGODB_URI         use this replica set and start none; databases bench_* are made and dropped
  CACHE_DIR           where fetched servers are kept
`;

/** @throws StackFailure on an unknown option or a number that is none. */
export function readOptions(args: readonly string[]): BenchOptions {
  const { values } = parse(args);
  return {
    payments: count('payments', values.payments),
    concurrency: count('concurrency', values.concurrency),
    rounds: count('rounds', values.rounds),
    ledger: values.ledger === undefined ? undefined : wholeNumber('ledger', values.ledger),
    json: values.json === true,
    help: values.help === true,
  };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        payments: { type: 'string' },
        concurrency: { type: 'string' },
        rounds: { type: 'string' },
        ledger: { type: 'string' },
        json: { type: 'boolean' },
        help: { type: 'boolean', short: 'h' },
      },
    });
  } catch (error) {
    throw new StackFailure(`${error instanceof Error ? error.message : error}\n\n${USAGE}`);
  }
}

function count(name: keyof typeof DEFAULTS, text: string | undefined): number {
  return text === undefined ? DEFAULTS[name] : wholeNumber(name, text);
}

function wholeNumber(name: keyof typeof LIMITS, text: string): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= 1 && value <= LIMITS[name]) return value;
  throw new StackFailure(`--${name} takes a whole number from 1 to ${LIMITS[name]}, not ${text}`);
}
