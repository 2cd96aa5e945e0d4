import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ATTACKS, ROWS, readOptions, SCENARIOS, USAGE } from '../../../bench/options';

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
