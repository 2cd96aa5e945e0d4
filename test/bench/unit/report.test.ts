import { buildDetails, buildRow, formatJson, formatTable } from '../../../bench/report';

const report = {
  columns: ['floor', 'product'] as const,
  rows: [
    buildRow('payments/s', 10, 6.54),
    buildRow('create, ms', { p50: 80, p95: 120, p99: 160 }, { p50: 100, p95: 150, p99: 200 }),
    buildRow('refunds/s', null, 12),
    ...buildDetails({ worker: 75 }, { worker: 114, api: 14, bank: 0.01 }),
  ],
  notes: ['3 rounds'],
};

test('the table has both columns and their ratio, of the medians for percentiles', () => {
  const cells = formatTable(report)
    .split('\n')
    .map((line) => line.trim().split(/ {2,}/));
  expect(cells).toEqual(
    expect.arrayContaining([
      ['floor', 'product', 'ratio'],
      ['payments/s', '10', '6.5', '0.65'],
      ['create, ms', '80 / 120 / 160', '100 / 150 / 200', '1.25'],
      ['refunds/s', '12'],
      ['worker', '75', '114'],
      ['3 rounds'],
    ]),
  );
  expect(cells.flat()).not.toContain('bank');
});

test('the JSON has the same values by the names of the columns', () => {
  expect(JSON.parse(formatJson(report))).toMatchObject({
    rows: [
      { name: 'payments/s', floor: 10, product: 6.54, ratio: 0.654 },
      { name: 'create, ms', floor: { p50: 80 }, product: { p50: 100 }, ratio: 1.25 },
      { name: 'refunds/s', floor: null, product: 12, ratio: null },
      { name: 'worker' },
      { name: 'api', floor: 0, product: 14, ratio: null },
    ],
    notes: ['3 rounds'],
  });
});
