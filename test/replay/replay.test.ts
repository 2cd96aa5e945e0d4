import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from '@temporalio/worker';
import { DeterminismViolationError } from '@temporalio/workflow';
import { workflowBundle } from '../support/bundle';
import { quietTemporal } from '../support/quiet';

/**
 * Saved histories of every path: workflows that run now must go on under the code of tomorrow. A
 * change that breaks one goes behind `patched()`; a history is never recorded again.
 */
const FOLDER = join(__dirname, 'histories');
const names = readdirSync(FOLDER).filter((name) => name.endsWith('.json'));
const read = (name: string) => JSON.parse(readFileSync(join(FOLDER, name), 'utf8'));

beforeAll(quietTemporal);

test('every path has a saved history', () => {
  expect(names.length).toBeGreaterThanOrEqual(10);
});

test.each(names)('%s replays', async (name) => {
  const options = { workflowBundle: await workflowBundle() };
  await Worker.runReplayHistory(options, read(name), name);
});

test('a history of other code is told apart', async () => {
  const history = read('payment-settled.json');
  const scheduled = history.events.find(
    (event: { activityTaskScheduledEventAttributes?: object }) =>
      event.activityTaskScheduledEventAttributes !== undefined,
  );
  scheduled.activityTaskScheduledEventAttributes.activityType.name = 'anotherActivity';
  const options = { workflowBundle: await workflowBundle() };
  await expect(Worker.runReplayHistory(options, history, 'changed')).rejects.toThrow(
    DeterminismViolationError,
  );
});
