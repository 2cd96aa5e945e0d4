import { fullExample } from './full-example';
import { quickExample } from './mutants';
import { checkOnKit, listBroken, SECRET } from './setting';

const settings = { EXAMPLE_KEY_FILE: SECRET };

test('the example keeps every promise', async () => {
  const report = await checkOnKit(quickExample(), settings);
  expect(listBroken(report)).toEqual([]);
  expect(report.promises.find(({ id }) => id === 'callbacks.once')?.seen).toBe(
    '2 callbacks of 2 webhooks, each three times and the list of changes',
  );
  const missing = report.promises.filter(({ result }) => result === 'not_applicable');
  expect(new Set(missing.map(({ id }) => id.split('.')[0]))).toEqual(
    new Set(['refund', 'session', 'reversal', 'payment']),
  );
});

test('a connector with payments, refunds and payouts keeps every promise', async () => {
  const report = await checkOnKit(fullExample, settings);
  expect(listBroken(report)).toEqual([]);
  expect(report.not_applicable).toBe(0);
});
