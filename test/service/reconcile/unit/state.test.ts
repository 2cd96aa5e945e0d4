import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { historyFromJSON } from '@temporalio/common/lib/proto-utils';
import { readResourceState, wasRefused } from '../../../../src/service/reconcile/state';

const FOLDER = join(__dirname, '../../../replay/histories');
const historyOf = (name: string) =>
  historyFromJSON(JSON.parse(readFileSync(join(FOLDER, `${name}.json`), 'utf8')));

test.each([
  ['payout-completed', { status: 'completed', version: 4 }],
  ['payout-jumped', { status: 'completed', version: 4 }],
  ['payout-returned-days-later', { status: 'returned', version: 5 }],
  ['payout-accepted-behind', { status: 'sent', version: 3 }],
  ['payment-settled', { status: 'settled', version: 4 }],
  ['refund-settled', { status: 'settled', version: 2 }],
  ['crypto-payment-topped-up', { status: 'received', version: 5 }],
  ['crypto-payment-returned', { status: 'expired', version: 4 }],
  ['crypto-settlement-sent-again', { status: 'completed', version: 3 }],
  ['crypto-settlement-refused', { status: 'failed', version: 2 }],
])('the history %s ends where its last step said', (name, standing) => {
  expect(readResourceState([historyOf(name)])).toEqual({ ...standing, bookings: [] });
});

test('what was refused stands nowhere, and so does what has not begun', () => {
  expect(readResourceState([historyOf('payout-insufficient-balance')])).toBeNull();
  expect(readResourceState([historyOf('payout-not-accepted-in-time')])).toBeNull();
  expect(readResourceState([historyOf('refund-refused')])).toBeNull();
  expect(readResourceState([{ events: [] }, {}])).toBeNull();
  expect(readResourceState([])).toBeNull();
});

test('a refusal is told apart from what has not begun, and from what was accepted after all', () => {
  const refused = (name: string) => wasRefused([historyOf(name)]);
  expect(refused('payout-insufficient-balance')).toBe(true);
  expect(refused('payout-not-accepted-in-time')).toBe(true);
  expect(refused('refund-refused')).toBe(true);
  expect(refused('payout-accepted-behind')).toBe(false);
  expect(refused('payout-completed')).toBe(false);
  expect(refused('crypto-settlement-completed')).toBe(false);
  expect(refused('crypto-settlement-insufficient-balance')).toBe(true);
  expect(refused('crypto-payment-not-available')).toBe(true);
  expect(wasRefused([{ events: [] }])).toBe(false);
});

test('a history that is cut off stands where its last known step said', () => {
  const events = historyOf('payout-completed').events ?? [];
  const first = (length: number) => readResourceState([{ events: events.slice(0, length) }]);
  const written = events.findIndex((_event, index) => first(index + 1)?.status === 'sent');
  const before = { status: 'created', version: 1, bookings: [] };
  expect(first(written)).toEqual(before);
  const after = { status: 'sent', version: 3, bookings: [] };
  expect(first(written + 1)).toEqual(after);
});

test('every recorded history of a lifecycle is read without a fault', () => {
  const names = readdirSync(FOLDER).filter((name) => /^(payment|refund|payout|crypto)-/.test(name));
  for (const name of names) {
    const standing = readResourceState([historyOf(name.replace('.json', ''))]);
    if (standing !== null) expect(standing.version).toBeGreaterThanOrEqual(1);
  }
  expect(names.length).toBeGreaterThan(65);
});

test.each([
  ['payment-disputed-clawed-back', ['recordDispute']],
  ['payment-disputed-failed', ['recordDispute']],
  ['payment-late-reversed', ['held late', 'returned late']],
])('the history %s tells of its bookings', (name, bookings) => {
  expect(readResourceState([historyOf(name)])?.bookings).toEqual(bookings);
});

test('runs are read together: the newest that tells wins, and bookings add up', () => {
  const [first, second] = [historyOf('payment-settled'), historyOf('payment-disputed-failed')];
  expect(readResourceState([first, second])).toEqual({
    ...readResourceState([second]),
    bookings: ['recordDispute'],
  });
  expect(readResourceState([second, {}])).toEqual(readResourceState([second]));
});
