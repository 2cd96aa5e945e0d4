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

test('every row is measured unless some are named', () => {
  expect(readOptions([])).toMatchObject({ scenario: 'floor', rows: Object.keys(ROWS) });
  expect(readOptions(['--only', 'payouts,payments']).rows).toEqual(['payouts', 'payments']);
  expect(() => readOptions(['--only', 'payments,warm'])).toThrow(/not warm$/);
});

test('a scenario takes the place of the rows, one at a time', () => {
  expect(readOptions(['--overload'])).toMatchObject({ scenario: 'overload' });
  const few = { scenario: 'endpoints', payments: 40 };
  expect(readOptions(['--endpoints', '--payments', '40'])).toMatchObject(few);
  const many = { scenario: 'isolation', waitingEvents: 10_000 };
  expect(readOptions(['--isolation', '--waiting-events', '10000'])).toMatchObject(many);
  expect(() => readOptions(['--endpoints', '--neighbors'])).toThrow(/^Only one of/);
  expect(readOptions(['--waiting', '5'])).toMatchObject({ scenario: 'waiting', payments: 5 });
  expect(() => readOptions(['--waiting', '5', '--isolation'])).toThrow(/^Only one of/);
  expect(() => readOptions(['--book', '0'])).toThrow(/^--book takes a whole number/);
});

test('two workers share a book, or as many as an option says', () => {
  expect(readOptions(['--book', '600'])).toMatchObject({ scenario: 'book', bookWorkers: 2 });
  const twenty = readOptions(['--book', '600', '--book-workers', '20']);
  expect(twenty).toMatchObject({ payments: 600, bookWorkers: 20 });
  expect(() => readOptions(['--book-workers', '101'])).toThrow(
    /^--book-workers takes .* 1 to 100,/,
  );
});

test('another system is compared with the product, and must be known', () => {
  const options = readOptions(['--beside', 'outpost', '--payments', '20', '--rounds', '2']);
  expect(options).toMatchObject({ scenario: 'outpost', payments: 20, rounds: 2 });
  expect(() => readOptions(['--beside', 'svix'])).toThrow(/^--beside takes outpost; not svix$/);
  expect(options.measurements).toEqual(Object.keys(MEASUREMENTS));
  const only = readOptions(['--beside', 'outpost', '--only', 'kills']);
  expect(only.measurements).toEqual(['kills']);
  const both = ['--beside', 'outpost', '--overload'];
  expect(() => readOptions(both)).toThrow(/^Only one of --overload and --beside at once$/);
});

test('every kind of abuse of neighbors is measured unless some are named', () => {
  expect(readOptions(['--neighbors']).attacks).toEqual(Object.keys(ATTACKS));
  const only = readOptions(['--neighbors', '--only', 'callback-flood,slow-creates']);
  expect(only.attacks).toEqual(['callback-flood', 'slow-creates']);
  expect(() => readOptions(['--neighbors', '--only', 'payments'])).toThrow(/not payments$/);
});

test.each(Object.entries(ATTACKS))('the usage explains the abuse %s', (name, summary) => {
  expect(USAGE).toContain(`  ${name.padEnd(17)}  ${summary}`);
});

test.each(Object.entries(ROWS))('the usage and the docs explain the row %s', (name, summary) => {
  expect(USAGE).toContain(`  ${name.padEnd(15)}  ${summary}`);
  expect(PAGE).toContain(`\`${name}\``);
});

test.each(Object.entries(SCENARIOS))('the usage and the docs explain --%s', (name, summary) => {
  expect(USAGE).toMatch(new RegExp(`^  --${name}( N)? +${summary}$`, 'm'));
  expect(PAGE).toContain(`--${name}`);
});

test.each(Object.entries(OTHERS))('the usage and the docs explain --beside %s', (name, summary) => {
  expect(USAGE).toContain(`  --beside ${name}  ${summary}\n`);
  expect(PAGE).toContain(`--beside ${name}`);
});

test.each(Object.entries(MEASUREMENTS))(
  'the usage explains the measurement %s',
  (name, summary) => {
    expect(USAGE).toContain(`  ${name.padEnd(15)}  ${summary}`);
  },
);
