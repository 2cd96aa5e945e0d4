import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { countDescribes } from '../../../bench/measure/describes';
import { ATTACKS, ROWS, readOptions, SCENARIOS, USAGE } from '../../../bench/options';
import { buildDetails, buildRow, formatJson, formatTable } from '../../../bench/report';

describe('the options', () => {
  const PAGE = readFileSync(join(__dirname, '../../../docs/benchmark.md'), 'utf8');
  const readLine = (line: string) => readOptions(line.split(' ').filter((word) => word !== ''));

  test.each<[string, object]>([
    ['', { scenario: 'floor', rows: Object.keys(ROWS) }],
    ['--only payouts,payments', { rows: ['payouts', 'payments'] }],
    ['--overload', { scenario: 'overload' }],
    ['--endpoints --payments 40', { scenario: 'endpoints', payments: 40 }],
    ['--isolation --waiting-events 10000', { scenario: 'isolation', waitingEvents: 10_000 }],
    ['--neighbors', { attacks: Object.keys(ATTACKS) }],
    ['--neighbors --only slow-creates', { attacks: ['slow-creates'] }],
  ])('reads the options "%s"', (line, options) => {
    expect(readLine(line)).toMatchObject(options);
  });

  test.each([
    ['--only payments,warm', /not warm$/],
    ['--neighbors --only payments', /not payments$/],
    ['--neighbors --isolation', /^Only one of --isolation and --neighbors at once$/],
    ['--payments 0', /^--payments takes a whole number/],
    ['--rounds 51', /^--rounds takes .* 1 to 50,/],
  ])('refuses the options "%s"', (line, message) => {
    expect(() => readLine(line)).toThrow(message);
  });

  const NAMES = { ...ATTACKS, ...ROWS, ...SCENARIOS };
  test.each(Object.entries(NAMES))('the usage and the page explain %s', (name, summary) => {
    expect(USAGE).toMatch(new RegExp(`^  (--)?${name} +${summary}$`, 'm'));
    if (!Object.hasOwn(ATTACKS, name)) expect(PAGE).toMatch(new RegExp(`(\`|--)${name}\\b`));
  });
});

describe('the results', () => {
  const readCells = (report: Parameters<typeof formatTable>[0]) =>
    formatTable(report)
      .split('\n')
      .map((line) => line.trim().split(/ {2,}/));

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

  test('the table shows both values and their ratio, which for percentiles is of the medians', () => {
    const cells = readCells(report);
    expect(cells.slice(2)).toEqual([
      ['floor', 'product', 'ratio'],
      ['payments/s', '10', '6.5', '0.65'],
      ['create, ms', '80 / 120 / 160', '100 / 150 / 200', '1.25'],
      ['refunds/s', '12'],
      ['worker', '75', '114'],
      ['api', '0', '14'],
      [''],
      ['3 rounds'],
      [''],
    ]);
  });

  test('the JSON names the same values by their columns', () => {
    expect(JSON.parse(formatJson(report)).rows.slice(0, 2)).toMatchObject([
      { name: 'payments/s', floor: 10, product: 6.54, ratio: 0.654 },
      { name: 'create, ms', floor: { p50: 80 }, product: { p50: 100 }, ratio: 1.25 },
    ]);
  });

  test('the descriptions of workflows are counted over all namespaces and clients', () => {
    const page = `# TYPE temporal_request_total counter
temporal_request_total{namespace="default",operation="DescribeWorkflowExecution",service_name="a"} 1200
temporal_request_total{namespace="default",operation="PollWorkflowTaskQueue",service_name="a"} 7
temporal_request_total{operation="DescribeWorkflowExecution",namespace="other"} 34
temporal_request_failure_total{operation="DescribeWorkflowExecution"} 5
`;
    expect(countDescribes(page)).toBe(1_234);
    expect(countDescribes('')).toBe(0);
  });
});
