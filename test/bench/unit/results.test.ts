import { countDescribes } from '../../../bench/measure/describes';
import { buildKillRows, buildSampleRows } from '../../../bench/outpost/rows';
import { joinDelays, measureDelays, tally } from '../../../bench/outpost/tally';
import { buildDetails, buildRow, formatJson, formatTable } from '../../../bench/report';

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

test('the comparison with Outpost has rates, times and costs, and kills in their own column', () => {
  const outpost = {
    bursts: [
      { perSecond: 900, cpuMs: { Outpost: 1, Redis: 0.5 } },
      { perSecond: 1_000, cpuMs: { Outpost: 2, Redis: 0.5 } },
    ],
    calm: [[40, 60], [50]],
    same: [[20], [30]],
  };
  const product = {
    bursts: [
      { perSecond: 30, cpuMs: { worker: 20 } },
      { perSecond: 40, cpuMs: { worker: 22 } },
    ],
    calm: [[25], [35]],
    same: [[25], [35]],
  };
  const redis = { events: 600, lost: 13, doubled: 2, lastAt: 5_000, seconds: 4.5 };
  const worker = { events: 30, lost: 30, doubled: 0, lastAt: null, seconds: null };
  const rows = [
    ...buildSampleRows({ outpost, product }),
    ...buildKillRows('outpost', 'Redis', redis),
    ...buildKillRows('product', 'worker', worker),
  ];
  const expected = [
    ['webhooks/s', '950', '35', '0.04'],
    ['round 2', '1000', '40', '0.04'],
    ['ms at half of its own rate', '50 / 60 / 60', '25 / 35 / 35', '0.50'],
    ["ms at half of the product's rate", '20 / 30 / 30', '25 / 35 / 35', '1.25'],
    ['processor ms a webhook', '2', '21', '10.50'],
    ['Redis killed: lost', '13'],
    ['Redis killed: s to the last event', '4.5'],
    ['worker killed: lost', '30'],
    ['worker killed: s to the last event'],
  ];
  const columns = ['outpost', 'product'] as const;
  expect(readCells({ columns, rows, notes: [] })).toEqual(expect.arrayContaining(expected));
});

test('an event that never arrives is lost, and one that arrives again is doubled once', () => {
  const receipts = new Map(Object.entries({ a: [110], b: [130, 190], c: [120, 125, 900] }));
  const result = { events: 4, lost: 1, doubled: 2, lastAt: 130 };
  expect(tally(['a', 'b', 'c', 'd'], receipts)).toEqual(result);
  expect(tally(['c', 'a'], receipts).lastAt).toBe(120);
  expect(tally(['d'], receipts)).toEqual({ events: 1, lost: 1, doubled: 0, lastAt: null });
  // A delay lasts from the start of the publish to the first arrival.
  expect(measureDelays(new Map(Object.entries({ a: 100, c: 50 })), receipts)).toEqual([10, 70]);
  expect(() => measureDelays(new Map([['d', 1]]), receipts)).toThrow('Event d did not arrive.');
  expect(joinDelays([[1, 2], [9], [3]])).toEqual({ p50: 2, p95: 9, p99: 9 });
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
