import { readFileSync } from 'node:fs';
import { NODE_PARTS } from '../../../stack/parts';
import { readTuning, tunedOptions } from '../../../worker/tuning';

test('every variable at fault is named', () => {
  const env = { WORKFLOW_SLOTS: '1', DELIVERY_SLOTS: 'many', POLLERS_MAX: '2.5' };
  expect(() => readTuning(env)).toThrow(/WORKFLOW_SLOTS: .*DELIVERY_SLOTS: .*POLLERS_MAX: /s);
});

test.each([2, 3, 5, 100])('pollers begin and grow within at most %i', (maximum) => {
  const options = tunedOptions(readTuning({ POLLERS_MAX: String(maximum) }));
  for (const pollers of [options.workflowTaskPollerBehavior, options.activityTaskPollerBehavior]) {
    expect(pollers).toMatchObject({ type: 'autoscaling', minimum: 2, maximum });
    expect(pollers.initial).toBeGreaterThanOrEqual(2);
    expect(pollers.initial).toBeLessThanOrEqual(maximum);
  }
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
