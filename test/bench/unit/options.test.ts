import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readOptions, USAGE } from '../../../bench/options';
import { ROW_NAMES, ROWS } from '../../../bench/rows/names';

const PAGE = readFileSync(join(__dirname, '../../../docs/benchmark.md'), 'utf8');

test('every row is measured unless some are named', () => {
  expect(readOptions([]).rows).toEqual(ROW_NAMES);
  expect(readOptions(['--only', 'cold,payments']).rows).toEqual(['cold', 'payments']);
  expect(() => readOptions(['--only', 'payments,warm'])).toThrow(/not warm$/);
});

test('a measure of a size takes the place of the rows, one at a time', () => {
  expect(readOptions([]).instead).toEqual({});
  expect(readOptions(['--lists', '1000000']).instead).toEqual({ lists: 1_000_000 });
  expect(() => readOptions(['--waiting', '5', '--lists', '5'])).toThrow(/^Only one of/);
  expect(() => readOptions(['--waiting', '0'])).toThrow(/^--waiting takes a whole number/);
});

test.each(ROW_NAMES)('the usage and docs/benchmark.md tell of the row %s', (name) => {
  expect(USAGE).toContain(`  ${name.padEnd(15)}  ${ROWS[name]}`);
  expect(PAGE).toContain(`\`${name}\``);
});

test.each([
  'payments',
  'concurrency',
  'rounds',
  'only',
  'json',
  'help',
  'ledger',
  'lists',
  'waiting',
  'dashboard',
  'isolation',
  'overload',
])('the usage tells of --%s', (name) =>
  expect(USAGE).toMatch(new RegExp(`^  --${name} .* {2}\\S`, 'm')),
);
