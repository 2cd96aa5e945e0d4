import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  ATTACKS,
  MEASUREMENTS,
  OTHERS,
  ROWS,
  readOptions,
  SCENARIOS,
  USAGE,
} from '../../../bench/options';

const PAGE = readFileSync(join(__dirname, '../../../docs/benchmark.md'), 'utf8');
const readLine = (line: string) => readOptions(line.split(' ').filter((word) => word !== ''));

test.each<[string, object]>([
  ['', { scenario: 'floor', rows: Object.keys(ROWS) }],
  ['--only payouts,payments', { rows: ['payouts', 'payments'] }],
  ['--overload', { scenario: 'overload' }],
  ['--endpoints --payments 40', { scenario: 'endpoints', payments: 40 }],
  ['--isolation --waiting-events 10000', { scenario: 'isolation', waitingEvents: 10_000 }],
  ['--waiting 5', { scenario: 'waiting', payments: 5 }],
  ['--book 600', { scenario: 'book', bookWorkers: 2 }],
  ['--book 600 --book-workers 20', { payments: 600, bookWorkers: 20 }],
  ['--neighbors', { attacks: Object.keys(ATTACKS) }],
  ['--neighbors --only slow-creates', { attacks: ['slow-creates'] }],
  ['--beside outpost --only kills', { scenario: 'outpost', measurements: ['kills'] }],
  ['--beside outpost --rounds 2', { rounds: 2, measurements: Object.keys(MEASUREMENTS) }],
])('reads the options "%s"', (line, options) => {
  expect(readLine(line)).toMatchObject(options);
});

test.each([
  ['--only payments,warm', /not warm$/],
  ['--neighbors --only payments', /not payments$/],
  ['--endpoints --neighbors', /^Only one of/],
  ['--waiting 5 --isolation', /^Only one of/],
  ['--beside outpost --overload', /^Only one of --overload and --beside at once$/],
  ['--beside svix', /^--beside takes outpost; not svix$/],
  ['--book 0', /^--book takes a whole number/],
  ['--book-workers 101', /^--book-workers takes .* 1 to 100,/],
])('refuses the options "%s"', (line, message) => {
  expect(() => readLine(line)).toThrow(message);
});

const NAMES = { ...ATTACKS, ...ROWS, ...SCENARIOS, ...OTHERS, ...MEASUREMENTS };
test.each(Object.entries(NAMES))('the usage explains %s', (name, summary) => {
  expect(USAGE).toMatch(new RegExp(`^  (--|--beside )?${name}( N)? +${summary}$`, 'm'));
});

const DOCUMENTED = [...Object.keys(ROWS), ...Object.keys(SCENARIOS), ...Object.keys(OTHERS)];
test.each(DOCUMENTED)('the page about the benchmark explains %s', (name) => {
  expect(PAGE).toMatch(new RegExp(`(\`|--|--beside )${name}\\b`));
});
