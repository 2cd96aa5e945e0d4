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
  waiting: 'processes at rest while N payments wait, and `orphan list`',
  book: "N settlements of one merchant's book, compared with 100 merchants'",
  statements: 'imports of N statement lines that match entries, and of N that match none',
  sepa: 'N payouts by one SEPA file, and a tenth of them',
  storage: 'bytes that each of N settled payments leaves in MongoDB and Temporal',
  audit: 'the audit of N payments in progress, its worker killed once, and `reconcile`',
  'audit-rows': 'what is overdue among N payments in progress, as each audit looks for it',
} as const;

/** Option that names another system, which is run and measured, too. */
const OTHER_FLAG = 'beside';

export const OTHERS = {
  outpost: "webhooks by hookdeck/outpost and by the product, and kills of each one's processes",
} as const;

/** Measurements of another system and of the product. */
export const MEASUREMENTS = {
  rates: 'webhooks a second, times and processor time',
  kills: 'kills of each process amid a burst',
} as const;

/** Kinds of abuse that `--neighbors` measures. */
export const ATTACKS = {
  'slow-creates': 'creates at a bank that is slow',
  'sign-in-flood': 'sign-ins with wrong passwords, from many networks',
  'dashboard-exports': 'exports and overviews of the dashboard',
  'simulation-flood': 'simulations of one payment',
  'callback-flood': 'callbacks for unknown payments',
  'hanging-endpoint': 'webhooks to an endpoint that does not answer',
} as const;

type RowName = keyof typeof ROWS;
export type AttackName = keyof typeof ATTACKS;
type MeasurementName = keyof typeof MEASUREMENTS;
type OtherName = keyof typeof OTHERS;
export type ScenarioName = keyof typeof SCENARIOS | OtherName | 'floor';

export interface Options {
  scenario: ScenarioName;
  /** Number of payments: of each round, that wait or settle; or of events, statement lines or payouts. */
  payments: number;
  /** Number of events for the endpoint that hangs, of `--isolation`. */
  waitingEvents: number;
  /** Number of workers of `--book`. */
  bookWorkers: number;
  concurrency: number;
  rounds: number;
  rows: readonly RowName[];
  attacks: readonly AttackName[];
  measurements: readonly MeasurementName[];
  json: boolean;
  help: boolean;
}

const DEFAULTS = { payments: 150, concurrency: 16, rounds: 3 } as const;
const WAITING_EVENTS = 300;
const BOOK_WORKERS = 2;
const LIMITS = {
  payments: 100_000,
  'waiting-events': 1_000_000,
  'book-workers': 100,
  concurrency: 500,
  rounds: 50,
  waiting: 10_000_000,
  book: 1_000_000,
  statements: 10_000_000,
  sepa: 10_000,
  storage: 100_000,
  audit: 1_000_000,
  'audit-rows': 10_000_000,
} as const;
const AUDITS = ['audit', 'audit-rows'] as const;
const SIZED = ['waiting', 'book', 'statements', 'sepa', 'storage', ...AUDITS] as const;
const FLAGS = ['overload', 'isolation', 'neighbors', 'endpoints'] as const;

const ROW_NAMES = Object.keys(ROWS).filter(createNameCheck(ROWS));
const ATTACK_NAMES = Object.keys(ATTACKS).filter(createNameCheck(ATTACKS));
const rowLines = ROW_NAMES.map((name) => `  ${name.padEnd(15)}  ${ROWS[name]}`);
const MEASUREMENT_NAMES = Object.keys(MEASUREMENTS).filter(createNameCheck(MEASUREMENTS));
const OTHER_NAMES = Object.keys(OTHERS).filter(createNameCheck(OTHERS));
const attackLines = ATTACK_NAMES.map((name) => `  ${name.padEnd(17)}  ${ATTACKS[name]}`);
const measurementLines = MEASUREMENT_NAMES.map(
  (name) => `  ${name.padEnd(15)}  ${MEASUREMENTS[name]}`,
);
const scenarioLines = [
  ...FLAGS.map((name) => `  ${`--${name}`.padEnd(15)}  ${SCENARIOS[name]}`),
  ...SIZED.map((name) => `  ${`--${name} N`.padEnd(15)}  ${SCENARIOS[name]}`),
  ...OTHER_NAMES.map((name) => `  ${`--${OTHER_FLAG} ${name}`.padEnd(15)}  ${OTHERS[name]}`),
];

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
  --waiting-events N  events for the endpoint that hangs in --isolation (default ${WAITING_EVENTS})
  --book-workers N  workers of --book (default ${BOOK_WORKERS})
  --only NAME,...  only these rows, kinds of abuse, or measurements
  --json           the result as JSON
  --help           this text

Rows:
${rowLines.join('\n')}

Kinds of abuse of --neighbors, of which --only selects some:
${attackLines.join('\n')}

Measurements of --${OTHER_FLAG}, of which --only selects one:
${measurementLines.join('\n')}

Scenarios instead of the rows:
${scenarioLines.join('\n')}

Environment:
  TEMPORAL_ADDRESS    use this Temporal server and start none
  TEMPORAL_NAMESPACE  its namespace (default: default), in which no other stack may run
  MONGODB_URI         use this replica set and start none; databases bench_* are created and dropped
  XDG_CACHE_HOME      where downloaded servers are
`;

/** @throws OperationalError on an unknown option or row, or an invalid number. */
export function readOptions(args: readonly string[]): Options {
  const values = parse(args);
  const chosen = [...SIZED, ...FLAGS].filter((name) => values[name] !== undefined);
  const other = selectOther(values[OTHER_FLAG]);
  const flags = [...chosen, ...(other === undefined ? [] : [OTHER_FLAG])];
  if (flags.length > 1) {
    throw new OperationalError(
      `Only one of ${flags.map((name) => `--${name}`).join(' and ')} at once`,
    );
  }
  const number = (name: keyof typeof DEFAULTS) =>
    toWholeNumber(name, values[name] ?? `${DEFAULTS[name]}`);
  const sized = SIZED.find((name) => values[name] !== undefined);
  return {
    scenario: chosen[0] ?? other ?? 'floor',
    payments: sized ? toWholeNumber(sized, values[sized] ?? '') : number('payments'),
    waitingEvents: toWholeNumber('waiting-events', values['waiting-events'] ?? `${WAITING_EVENTS}`),
    bookWorkers: toWholeNumber('book-workers', values['book-workers'] ?? `${BOOK_WORKERS}`),
    concurrency: number('concurrency'),
    rounds: number('rounds'),
    ...selectParts(chosen[0] ?? other, values.only),
    json: values.json === true,
    help: values.help === true,
  };
}

function parse(args: readonly string[]) {
  const text = { type: 'string' } as const;
  const flag = { type: 'boolean' } as const;
  const banks = { statements: text, sepa: text } as const;
  const audits = { audit: text, 'audit-rows': text } as const;
  const sized = { waiting: text, book: text, storage: text, ...banks, ...audits };
  const parts = { 'waiting-events': text, 'book-workers': text } as const;
  const numbers = { payments: text, concurrency: text, rounds: text, ...parts, ...sized };
  const help = { ...flag, short: 'h' };
  const others = { [OTHER_FLAG]: text };
  const scenarios = {
    overload: flag,
    isolation: flag,
    neighbors: flag,
    endpoints: flag,
    ...others,
  };
  const flags = { ...scenarios, json: flag };
  try {
    return parseArgs({ args: [...args], options: { ...numbers, ...flags, help, only: text } })
      .values;
  } catch (error) {
    throw new OperationalError(`${error instanceof Error ? error.message : error}\n\n${USAGE}`);
  }
}

function selectOther(name: string | undefined): OtherName | undefined {
  const known = OTHER_NAMES.find((other) => other === name);
  if (name === undefined || known !== undefined) return known;
  throw new OperationalError(`--${OTHER_FLAG} takes ${OTHER_NAMES.join(', ')}; not ${name}`);
}

/** `--only` names rows, the kinds of abuse of `--neighbors`, or measurements of another system. */
function selectParts(
  scenario: ScenarioName | undefined,
  only: string | undefined,
): Pick<Options, 'rows' | 'attacks' | 'measurements'> {
  const all = { rows: ROW_NAMES, attacks: ATTACK_NAMES, measurements: MEASUREMENT_NAMES };
  if (only === undefined) return all;
  if (scenario === 'neighbors') return { ...all, attacks: pickNames(ATTACKS, only) };
  if (scenario === 'outpost') return { ...all, measurements: pickNames(MEASUREMENTS, only) };
  return { ...all, rows: pickNames(ROWS, only) };
}

function pickNames<Name extends string>(known: Record<Name, string>, text: string): Name[] {
  const names = text.split(',').map((name) => name.trim());
  const isKnown = createNameCheck(known);
  const unknown = names.filter((name) => !isKnown(name));
  if (unknown.length > 0) {
    const takes = Object.keys(known).join(', ');
    throw new OperationalError(`--only takes ${takes}; not ${unknown.join(', ')}`);
  }
  return names.filter(isKnown);
}

function createNameCheck<Name extends string>(known: Record<Name, string>) {
  return (name: string): name is Name => Object.hasOwn(known, name);
}

function toWholeNumber(name: keyof typeof LIMITS, text: string): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= 1 && value <= LIMITS[name]) return value;
  throw new OperationalError(
    `--${name} takes a whole number from 1 to ${LIMITS[name]}, not ${text}`,
  );
}
