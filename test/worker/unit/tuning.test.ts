import { readFileSync } from 'node:fs';
import { noopMetricMeter } from '@temporalio/common';
import { DefaultLogger } from '@temporalio/worker';
import { compileWorkerOptions } from '@temporalio/worker/lib/worker-options';
import { NODE_PARTS } from '../../../stack/parts';
import { WORKER_OPTIONS } from '../../../worker/tuning';

test('an attempt of ten seconds ends within the grace, and nothing kills a worker before it ends', () => {
  const options = WORKER_OPTIONS;
  const grace = Number.parseInt(options.shutdownGraceTime, 10);
  const force = Number.parseInt(options.shutdownForceTime, 10);
  const compose = /stop_grace_period: (\d+)s/.exec(readFileSync('docker-compose.yml', 'utf8'))?.[1];
  expect(grace).toBeGreaterThan(10);
  expect(force).toBeGreaterThan(grace);
  expect(NODE_PARTS.worker.graceMs / 1_000).toBeGreaterThan(force);
  expect(Number(compose)).toBeGreaterThan(force);
});

test.each(['docker-compose.yml', 'docs/operations.md'])(
  '%s starts a worker with the flags of npm start',
  (file) => {
    const commands = readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => /\bnode\b.*dist\/worker\/main\.js/.test(line));
    expect(commands).not.toEqual([]);
    for (const flag of NODE_PARTS.worker.flags) {
      expect(commands).toEqual(commands.map(() => expect.stringContaining(flag)));
    }
  },
);

test('the SDK takes the time that a workflow may work at a stretch, which it has no type for', () => {
  const options = { taskQueue: 'any', ...WORKER_OPTIONS };
  const { isolateExecutionTimeoutMs } = compileWorkerOptions(
    options,
    new DefaultLogger('ERROR'),
    noopMetricMeter,
  );
  expect(isolateExecutionTimeoutMs).toBe(60_000);
});
