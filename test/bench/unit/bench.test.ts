import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { countDescribes } from '../../../bench/measure/describes';
import { readCpu } from '../../../bench/measure/process';
import {
  ATTACKS,
  MEASUREMENTS,
  OTHERS,
  ROWS,
  readOptions,
  SCENARIOS,
  USAGE,
} from '../../../bench/options';
import { startReceiver } from '../../../bench/outpost/receiver';
import { buildKillRows, buildSampleRows } from '../../../bench/outpost/rows';
import {
  outpostConfig,
  rabbitmqEnvironment,
  redisArguments,
} from '../../../bench/outpost/settings';
import { joinDelays, measureDelays, tally } from '../../../bench/outpost/tally';
import { buildDetails, buildRow, formatJson, formatTable } from '../../../bench/report';
import { useFixture } from '../../support/fixture';

describe('the options', () => {
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
});

describe('the counterpart', () => {
  const receiver = useFixture(startReceiver, (opened) => opened.close());
  const { signal } = new AbortController();

  const post = async (id: string) =>
    (await fetch(receiver.url, { method: 'POST', body: JSON.stringify({ id }) })).status;

  test('the receiver answers each post with 200 and counts it, also a repeated one', async () => {
    expect([await post('a'), await post('a')]).toEqual([200, 200]);
    expect(receiver.receipts.get('a')).toHaveLength(2);
  });

  test('the receiver waits for a number of events, and no longer once nothing arrives', async () => {
    const waiting = receiver.waitFor(['b', 'c', 'd'], { count: 2, silentMs: 5_000, signal });
    await post('b');
    await post('c');
    expect(await waiting).toBe(true);
    expect(await receiver.waitFor(['never'], { count: 1, silentMs: 50, signal })).toBe(false);
  });

  test('the receiver does not count a post whose sender was killed', async () => {
    const { port, hostname } = new URL(receiver.url);
    const socket = connect(Number(port), hostname);
    await once(socket, 'connect');
    socket.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"id":"e"');
    socket.resetAndDestroy();
    await post('f');
    expect([receiver.receipts.has('e'), receiver.receipts.has('f')]).toEqual([false, true]);
  });

  test('Outpost is as durable and concurrent as the product, and has files and ports of its own', () => {
    const ports = { api: 1, redis: 2, postgres: 3, rabbitmq: 4, distribution: 5, epmd: 6 };
    const secrets = { apiKey: 'key', jwt: 'jwt', encryption: 'e'.repeat(32) };
    expect(JSON.parse(outpostConfig(ports, secrets))).toMatchObject({
      delivery_max_concurrency: 200,
      delivery_timeout_seconds: 10,
      disable_telemetry: true,
    });
    expect(redisArguments(2, '/tmp').join(' ')).toContain('--appendonly yes --appendfsync always');
    const { PATH, ...env } = rabbitmqEnvironment(ports, '/tmp/rabbitmq', '/usr/bin');
    const files = Object.values(env).filter((value) => value?.includes('/'));
    expect(files.filter((value) => !value?.startsWith('/tmp/rabbitmq'))).toEqual([]);
  });
});

describe('the processor time', () => {
  /** Elsewhere there is no /proc, and the benchmark measures no processor time. */
  const onLinux = process.platform === 'linux' ? test : test.skip;

  onLinux('the time of a named child is not counted again for its parent', async () => {
    const script =
      'while (process.cpuUsage().user < 300_000); console.log("done"); setInterval(() => {}, 1e6)';
    const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'ignore'] });
    const ended = once(child, 'exit');
    try {
      await once(child.stdout, 'data');
      const alone = readCpu({ own: process.pid })['own'] ?? 0;
      const both = readCpu({ own: process.pid, child: child.pid ?? 0 });
      expect(both['child']).toBeGreaterThanOrEqual(200);
      expect(alone - (both['own'] ?? 0)).toBeGreaterThanOrEqual(150);
    } finally {
      child.kill();
      await ended;
    }
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
});
