import { parseArgs } from 'node:util';
import { OperationalError } from '../src/base/errors';

export const ROWS = {
  payments: 'payments of the product and of the floor',
  refunds: "refunds of the product, compared with the floor's payments",
  payouts: "payouts of the product, compared with the floor's payments",
  deliveries: "webhooks without a payment, compared with the floor's posts",
  events: "the product's events at 1, 2 and 16 endpoints, compared with those at one",
} as const;

export const SCENARIOS = {
  overload: 'creates at capacity, and at three times that rate',
  isolation: 'deliveries alone, and next to merchants that do not answer',
  neighbors: "a merchant's creates alone, and next to another one's abuse",
  endpoints: 'webhooks at 16 endpoints of an account, of which none hangs, then one',
} as const;

/** Kinds of abuse that `--neighbors` measures. */
export const ATTACKS = {
  'slow-creates': 'creates at a bank that is slow',
  'sign-in-flood': 'sign-ins with wrong passwords, from many networks',
  'dashboard-exports': 'exports and overviews of the dashboard',
  'simulation-flood': 'simulations of one payment',
  writes: 'changes of endpoints, tests, redeliveries and deletions',
  'callback-flood': 'callbacks for unknown payments',
  'hanging-endpoint': 'webhooks to an endpoint that does not answer',
} as const;

type RowName = keyof typeof ROWS;
export type AttackName = keyof typeof ATTACKS;
export type ScenarioName = keyof typeof SCENARIOS | 'floor';

export interface Options {
  scenario: ScenarioName;
  /** Number of payments of each round. */
  payments: number;
  /** Number of events for the endpoint that hangs, of `--isolation`. */
  waitingEvents: number;
  concurrency: number;
  rounds: number;
  rows: readonly RowName[];
  attacks: readonly AttackName[];
  json: boolean;
  help: boolean;
}

const DEFAULTS = {
  payments: '150',
  concurrency: '16',
  rounds: '3',
  'waiting-events': '300',
} as const;
const LIMITS = {
  payments: 100_000,
  'waiting-events': 1_000_000,
  concurrency: 500,
  rounds: 50,
} as const;
const FLAGS = ['overload', 'isolation', 'neighbors', 'endpoints'] as const;

const toLines = (names: Readonly<Record<string, string>>, width: number) =>
  Object.entries(names)
    .map(([name, summary]) => `  ${name.padEnd(width)}  ${summary}`)
    .join('\n');
const scenarios = Object.entries(SCENARIOS).map(([name, summary]) => [`--${name}`, summary]);

export const USAGE = `Usage: npm run bench -- [options]
       npm run -s bench -- --json
       npm run bench -- --only deliveries --rounds 1

Measures the product and a floor, the least durable work that a payment needs, on the same Temporal
and MongoDB in alternating rounds. Progress goes to stderr, the table to stdout. docs/benchmark.md
explains the rows.

Options:
  --payments N     payments of each subject in each round (default ${DEFAULTS.payments})
  --concurrency N  payments in flight at once (default ${DEFAULTS.concurrency})
  --rounds N       rounds, of which the median counts (default ${DEFAULTS.rounds})
  --waiting-events N  events for the endpoint that hangs in --isolation (default ${DEFAULTS['waiting-events']})
  --only NAME,...  only these rows or kinds of abuse
  --json           the result as JSON
  --help           this text

Rows:
${toLines(ROWS, 15)}

Kinds of abuse of --neighbors, of which --only selects some:
${toLines(ATTACKS, 17)}

Scenarios instead of the rows:
${toLines(Object.fromEntries(scenarios), 15)}

Environment:
  TEMPORAL_ADDRESS    use this Temporal server and start none
  TEMPORAL_NAMESPACE  its namespace (default: default), in which no other stack may run
  MONGODB_URI         use this replica set and start none; databases bench_* are created and dropped
  XDG_CACHE_HOME      where downloaded servers are
`;

/** @throws OperationalError on an unknown option or row, or an invalid number. */
export function readOptions(args: readonly string[]): Options {
  const values = parse(args);
  const [scenario = 'floor', ...others] = FLAGS.filter((name) => values[name] !== undefined);
  if (others.length > 0) {
    const all = [scenario, ...others].map((name) => `--${name}`);
    throw new OperationalError(`Only one of ${all.join(' and ')} at once`);
  }
  const number = (name: keyof typeof DEFAULTS) =>
    toWholeNumber(name, values[name] ?? DEFAULTS[name]);
  const { only } = values;
  const isAbuse = scenario === 'neighbors';
  return {
    scenario,
    payments: number('payments'),
    waitingEvents: number('waiting-events'),
    concurrency: number('concurrency'),
    rounds: number('rounds'),
    rows: pickNames(ROWS, isAbuse ? undefined : only),
    attacks: pickNames(ATTACKS, isAbuse ? only : undefined),
    json: values.json === true,
    help: values.help === true,
  };
}

function parse(args: readonly string[]) {
  const text = { type: 'string' } as const;
  const flag = { type: 'boolean' } as const;
  const numbers = { payments: text, concurrency: text, rounds: text, 'waiting-events': text };
  const scenarios = { overload: flag, isolation: flag, neighbors: flag, endpoints: flag };
  const options = { ...numbers, ...scenarios, only: text, json: flag };
  try {
    return parseArgs({ args: [...args], options: { ...options, help: { ...flag, short: 'h' } } })
      .values;
  } catch (error) {
    throw new OperationalError(`${error instanceof Error ? error.message : error}\n\n${USAGE}`);
  }
}

/** Picks the names that `--only` lists; all of them without it. */
function pickNames<Name extends string>(
  known: Record<Name, string>,
  only: string = Object.keys(known).join(','),
): Name[] {
  const isKnown = (name: string): name is Name => Object.hasOwn(known, name);
  const names = only.split(',').map((name) => name.trim());
  const unknown = names.filter((name) => !isKnown(name));
  if (unknown.length > 0) {
    const takes = Object.keys(known).join(', ');
    throw new OperationalError(`--only takes ${takes}; not ${unknown.join(', ')}`);
  }
  return names.filter(isKnown);
}

function toWholeNumber(name: keyof typeof LIMITS, text: string): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= 1 && value <= LIMITS[name]) return value;
  throw new OperationalError(
    `--${name} takes a whole number from 1 to ${LIMITS[name]}, not ${text}`,
  );
}
