import { Client, Connection } from '@temporalio/client';
import { SCHEDULE_NAMES } from '../../../src/temporal/schedules';
import { startScheduling } from '../../../worker/schedule';
import { eventually } from '../../support/http';

const PAUSE_MS = 1;

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
  const stop = startScheduling({ temporal, lifecycleQueue: 'lifecycle', log }, PAUSE_MS);
  return { stop, lines, calls };
}

test('a schedule that cannot be created is tried again until it can', async () => {
  const { stop, lines, calls } = schedule(2);
  await eventually('all schedules', async () => lines.length === 2 * SCHEDULE_NAMES.length);
  await stop();
  expect(lines).toEqual([
    ...SCHEDULE_NAMES.map((name) => `${name} not scheduled`),
    ...SCHEDULE_NAMES.map((name) => `${name} scheduled`),
  ]);
  expect(calls).toHaveLength(3 * SCHEDULE_NAMES.length);
});

test('a worker that stops waits for no schedule, and has warned of each once', async () => {
  const { stop, lines, calls } = schedule(Number.POSITIVE_INFINITY);
  await eventually('a second round', async () => calls.length > SCHEDULE_NAMES.length);
  await stop();
  expect(lines).toEqual(SCHEDULE_NAMES.map((name) => `${name} not scheduled`));
});
