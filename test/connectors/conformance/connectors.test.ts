import { passOn, startProxy } from '../../../connectors/conformance/proxy';
import { fullExample } from './full-example';
import { quickExample } from './mutants';
import { checkOnKit, listBroken, PATIENT_WAIT_MS, SECRET } from './setting';

const settings = { EXAMPLE_KEY_FILE: SECRET };
const PATIENT = { waitMs: PATIENT_WAIT_MS };

test('the example keeps every promise', async () => {
  const report = await checkOnKit(quickExample(), settings, PATIENT);
  expect(listBroken(report)).toEqual([]);
  expect(report.promises.find(({ id }) => id === 'callbacks.once')?.seen).toBe(
    '2 callbacks of 2 webhooks, each three times and the list of changes',
  );
  const missing = report.promises.filter(({ result }) => result === 'not_applicable');
  expect(new Set(missing.map(({ id }) => id.split('.')[0]))).toEqual(
    new Set(['refund', 'session', 'reversal', 'payment']),
  );
  expect(report.promises.find(({ id }) => id === 'poll.repeated')).toMatchObject({
    ...{ result: 'passed', seen: 'sent once, of a page that was read twice' },
  });
});

test('a bank that has no event `sent` is checked by another one, and the table says so', async () => {
  const notFound = { status: 404, headers: {}, body: Buffer.from('{}') };
  const report = await checkOnKit(quickExample(), settings, {
    ...PATIENT,
    desk: (url) =>
      startProxy(0, async (request) =>
        request.body.includes('"sent"') ? notFound : await passOn(url, request),
      ),
  });
  expect(listBroken(report)).toEqual([]);
  const seen = new Map(report.promises.map((promise) => [promise.id, promise.seen]));
  expect(seen.get('payout.callbacks')).toBe('completed; the bank has no event sent');
  expect(seen.get('payout.any_order')).toMatch(/; the bank has no event sent$/);
  expect(seen.get('webhooks.lost')).toBe('completed arrived, 1 webhooks were lost');
  expect(seen.get('poll.repeated')).toBe('completed once, of a page that was read twice');
});

test('a connector with payments, refunds and payouts keeps every promise', async () => {
  const report = await checkOnKit(fullExample, settings, PATIENT);
  expect(listBroken(report)).toEqual([]);
  expect(report.not_applicable).toBe(0);
});
