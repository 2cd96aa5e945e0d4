import { Registry } from 'prom-client';
import { createClockMeter } from '../../../../src/base/clock-meter';

const GAUGE = 'payments_clock_ahead_seconds';
const START = 1_000_000;

function openMeter() {
  const registry = new Registry();
  const warn = jest.fn();
  const clock = { now: START };
  const meter = createClockMeter(registry, { warn }, () => clock.now);
  const read = async () => {
    const line = (await registry.metrics())
      .split('\n')
      .find((each) => each.startsWith(`${GAUGE} `));
    return line === undefined ? undefined : Number(line.slice(GAUGE.length));
  };
  return { clock, warn, read, observe: (late: number) => meter.observe(clock.now - late) };
}

test.each([
  ['fast: the least difference counts, since queues add to it', [9_000, 5_200, 30_000], 5.2],
  ['slow', [-2_500, 40, 60], -2.5],
  ['correct', [3, 700, 4_000], 0.003],
])('the meter shows a clock that is %s', async (_, lates, seconds) => {
  const { observe, read, clock, warn } = openMeter();
  for (const late of lates) observe(late);
  expect(await read()).toBe(seconds);
  clock.now += 60_000;
  observe(10);
  expect(warn.mock.calls.map(([fields]) => fields)).toEqual(
    Math.abs(seconds) < 1 ? [] : [{ seconds, code: 'clock_differs' }],
  );
});

test('a clock difference needs three tasks of the last three minutes', async () => {
  const { observe, read, clock } = openMeter();
  observe(8_000);
  observe(8_000);
  expect(await read()).toBeUndefined();
  observe(8_000);
  expect(await read()).toBe(8);
  clock.now += 180_000;
  expect(await read()).toBeUndefined();
});
