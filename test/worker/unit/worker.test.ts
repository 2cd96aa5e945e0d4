import { readFileSync } from 'node:fs';
import { Client, Connection } from '@temporalio/client';
import { noopMetricMeter } from '@temporalio/common';
import { DefaultLogger } from '@temporalio/worker';
import { compileWorkerOptions } from '@temporalio/worker/lib/worker-options';
import { SCHEDULE_NAMES } from '../../../src/temporal/schedules';
import { NODE_PARTS } from '../../../stack/parts';
import { WORKER_OPTIONS } from '../../../worker/create-worker';
import { formatRehearsal, readOptions } from '../../../worker/rehearse';
import { startScheduling } from '../../../worker/rounds';
import { readVersion, versionOptions } from '../../../worker/versioning';
import { eventually } from '../../support/eventually';

describe('a worker', () => {
  test('has time to end an attempt of ten seconds before anything kills it', () => {
    const grace = Number.parseInt(WORKER_OPTIONS.shutdownGraceTime, 10);
    const force = Number.parseInt(WORKER_OPTIONS.shutdownForceTime, 10);
    const compose = readFileSync('docker-compose.yml', 'utf8');
    expect(grace).toBeGreaterThan(10);
    expect(force).toBeGreaterThan(grace);
    expect(NODE_PARTS.worker.graceMs / 1_000).toBeGreaterThan(force);
    expect(Number(/stop_grace_period: (\d+)s/.exec(compose)?.[1])).toBeGreaterThan(force);
  });

  test.each(['docker-compose.yml', 'docs/operations.md'])(
    'starts with the same flags in %s as by npm start',
    (file) => {
      const commands = readFileSync(file, 'utf8').match(/^.*\bnode\b.*dist\/worker\/main\.js.*$/gm);
      expect(commands).not.toBeNull();
      for (const flag of NODE_PARTS.worker.flags) {
        expect(commands).toEqual(commands?.map(() => expect.stringContaining(flag)));
      }
    },
  );

  test('passes the longest time of a workflow task to the SDK, which has no type for it', () => {
    const options = { taskQueue: 'any', ...WORKER_OPTIONS };
    const log = new DefaultLogger('ERROR');
    const { isolateExecutionTimeoutMs } = compileWorkerOptions(options, log, noopMetricMeter);
    expect(isolateExecutionTimeoutMs).toBe(60_000);
  });

  test('has a version only if both its deployment and its build have a name', () => {
    const read = (TEMPORAL_DEPLOYMENT_NAME: string, TEMPORAL_WORKER_BUILD_ID: string) =>
      readVersion({ TEMPORAL_DEPLOYMENT_NAME, TEMPORAL_WORKER_BUILD_ID });
    expect(read('', '')).toBeUndefined();
    expect(read('payments', '1.4.0')).toEqual({ deploymentName: 'payments', buildId: '1.4.0' });
    expect(() => read('payments', '')).toThrow(/belong together/);
    expect(() => read('', '1.4.0')).toThrow(/belong together/);
    expect(versionOptions(undefined, 'PINNED')).toEqual({});
  });

  /** Starts scheduling at a Temporal that refuses the first calls for each schedule. */
  function schedule(failures: number) {
    const temporal = new Client({ connection: Connection.lazy() });
    const lines: string[] = [];
    const write = (_: object, line: string) => void lines.push(line);
    const calls: string[] = [];
    jest.spyOn(temporal.schedule, 'create').mockImplementation(async ({ scheduleId }) => {
      calls.push(scheduleId);
      const tries = calls.filter((id) => id === scheduleId).length;
      if (tries <= failures) throw new Error('away');
      return temporal.schedule.getHandle(scheduleId);
    });
    const log = { info: write, warn: write };
    const stop = startScheduling({ temporal, lifecycleQueue: 'lifecycle', log }, 1);
    return { stop, lines, calls };
  }
  const warnings = SCHEDULE_NAMES.map((name) => `${name} not scheduled`);

  test('tries a schedule that cannot be created again until it can', async () => {
    const { stop, lines, calls } = schedule(2);
    await eventually('all schedules', async () => lines.length === 2 * SCHEDULE_NAMES.length);
    await stop();
    expect(lines).toEqual([...warnings, ...SCHEDULE_NAMES.map((name) => `${name} scheduled`)]);
    expect(calls).toHaveLength(3 * SCHEDULE_NAMES.length);
  });

  test('that stops waits for no schedule, and has warned of each once', async () => {
    const { stop, lines, calls } = schedule(Number.POSITIVE_INFINITY);
    await eventually('a second round', async () => calls.length > SCHEDULE_NAMES.length);
    await stop();
    expect(lines).toEqual(warnings);
  });
});

describe('a rehearsal', () => {
  const FROM = ['--from', 'a.example:1'];

  test.each([
    [FROM, { from: 'a.example:1', most: 1_000, json: false }],
    [[...FROM, '--most', '5', '--json'], { from: 'a.example:1', most: 5, json: true }],
    [['--help'], null],
  ])('reads the options %j', (args, options) => {
    expect(readOptions(args)).toEqual(options);
  });

  test.each([
    [[], '--from takes the address'],
    [['--from', 'temporal.example'], '--from takes the address'],
    [[...FROM, '--most', '0'], '--most takes a whole number'],
    [[...FROM, '--most', 'all'], '--most takes a whole number'],
    [['--into', 'a:1'], 'Unknown option'],
  ])('refuses the options %j with "%s"', (args, words) => {
    expect(() => readOptions(args)).toThrow(words);
  });

  test('reports the first run that diverges', () => {
    const divergence = { type: 'payout', workflow_id: 'payout:1', run_id: 'r', message: 'differs' };
    const types = [{ type: 'payment', histories: 12 }];
    expect(formatRehearsal({ types, divergence })).toBe(
      [
        'type              histories',
        'payment                  12',
        '',
        'payout:1 (run r) would not continue under this build:',
        'differs',
        '',
      ].join('\n'),
    );
  });
});
