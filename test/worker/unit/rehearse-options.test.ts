import { formatRehearsal, readOptions } from '../../../worker/rehearse/main';

test.each([
  [
    ['--from', 'temporal.example:7233'],
    { from: 'temporal.example:7233', most: 1_000, json: false },
  ],
  [
    ['--from', '127.0.0.1:1', '--most', '5', '--json'],
    { from: '127.0.0.1:1', most: 5, json: true },
  ],
  [['--help'], null],
])('the options %j are read', (args, options) => {
  expect(readOptions(args)).toEqual(options);
});

test.each([
  [[], '--from takes the address'],
  [['--from', 'temporal.example'], '--from takes the address'],
  [['--from', 'a:1', '--most', '0'], '--most takes a whole number'],
  [['--from', 'a:1', '--most', 'all'], '--most takes a whole number'],
  [['--into', 'a:1'], 'Unknown option'],
])('the options %j are refused with "%s"', (args, words) => {
  expect(() => readOptions(args)).toThrow(words);
});

test('the report of a rehearsal names the first run that diverges', () => {
  const divergence = { type: 'payout', workflow_id: 'payout:1', run_id: 'r', message: 'differs' };
  const text = formatRehearsal({
    types: [{ type: 'payment', histories: 12, paths: 3 }],
    divergence,
  });
  expect(text).toBe(
    [
      'type              histories    paths',
      'payment                  12        3',
      '',
      'payout:1 (run r) would not continue under this build:',
      'differs',
      '',
    ].join('\n'),
  );
});
