import { readFileSync } from 'node:fs';
import { noopMetricMeter } from '@temporalio/common';
import { DefaultLogger } from '@temporalio/worker';
import { compileWorkerOptions } from '@temporalio/worker/lib/worker-options';
import { NODE_PARTS } from '../../../stack/parts';
import { readTuning, tunedOptions } from '../../../worker/tuning';

test('every variable at fault is named', () => {
  const env = { WORKFLOW_SLOTS: '1', DELIVERY_SLOTS: 'many', POLLERS_MAX: '2.5' };
  expect(() => readTuning(env)).toThrow(/WORKFLOW_SLOTS: .*DELIVERY_SLOTS: .*POLLERS_MAX: /s);
});

test('pollers are as usual, and follow the backlog where more are allowed', () => {
  const usual = tunedOptions(readTuning({}));
  expect(usual).not.toHaveProperty('workflowTaskPollerBehavior');
  expect(usual).not.toHaveProperty('activityTaskPollerBehavior');
  const more = { type: 'autoscaling', minimum: 2, initial: 10, maximum: 30 };
  expect(tunedOptions(readTuning({ POLLERS_MAX: '30' }))).toMatchObject({
    workflowTaskPollerBehavior: more,
    activityTaskPollerBehavior: more,
  });
});

test('an attempt of ten seconds ends within the grace, and nothing kills a worker before it ends', () => {
  const options = tunedOptions(readTuning({}));
  const grace = Number.parseInt(options.shutdownGraceTime, 10);
  const force = Number.parseInt(options.shutdownForceTime, 10);
  const compose = /stop_grace_period: (\d+)s/.exec(readFileSync('docker-compose.yml', 'utf8'))?.[1];
  expect(grace).toBeGreaterThan(10);
  expect(force).toBeGreaterThan(grace);
  expect(NODE_PARTS.worker.graceMs / 1_000).toBeGreaterThan(force);
  expect(Number(compose)).toBeGreaterThan(force);
});

test('the SDK takes the time that a workflow may work at a stretch, which it has no type for', () => {
  const options = { taskQueue: 'any', ...tunedOptions(readTuning({})) };
  const { isolateExecutionTimeoutMs } = compileWorkerOptions(
    options,
    new DefaultLogger('ERROR'),
    noopMetricMeter,
  );
  expect(isolateExecutionTimeoutMs).toBe(60_000);
});
