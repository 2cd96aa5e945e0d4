import { buildKillRows, buildSampleRows } from '../../../bench/outpost/rows';
import { formatTable } from '../../../bench/report';

const samples = {
  outpost: {
    bursts: [
      { perSecond: 900, cpuMs: { Outpost: 1, Redis: 0.5 } },
      { perSecond: 1_000, cpuMs: { Outpost: 2, Redis: 0.5 } },
    ],
    calm: [[40, 60], [50]],
    same: [[20], [30]],
  },
  product: {
    bursts: [
      { perSecond: 30, cpuMs: { worker: 20 } },
      { perSecond: 40, cpuMs: { worker: 22 } },
    ],
    calm: [[25], [35]],
    same: [[25], [35]],
  },
};

const report = {
  columns: ['outpost', 'product'] as const,
  rows: [
    ...buildSampleRows(samples),
    ...buildKillRows('outpost', 'Redis', {
      ...{ events: 600, lost: 13, doubled: 2, lastAt: 5_000, seconds: 4.5 },
    }),
    ...buildKillRows('product', 'worker', {
      ...{ events: 30, lost: 30, doubled: 0, lastAt: null, seconds: null },
    }),
  ],
  notes: [],
};

test('the table has rates, times and costs of both, and kills in the column of the one killed', () => {
  const cells = formatTable(report)
    .split('\n')
    .map((line) => line.trim().split(/ {2,}/));
  expect(cells).toEqual(
    expect.arrayContaining([
      ['webhooks/s', '950', '35', '0.04'],
      ['round 2', '1000', '40', '0.04'],
      ['ms at half of its own rate', '50 / 60 / 60', '25 / 35 / 35', '0.50'],
      ["ms at half of the product's rate", '20 / 30 / 30', '25 / 35 / 35', '1.25'],
      ['processor ms a webhook', '2', '21', '10.50'],
      ['Redis killed: lost', '13'],
      ['Redis killed: s to the last event', '4.5'],
      ['worker killed: lost', '30'],
      ['worker killed: s to the last event'],
    ]),
  );
});
