import fc from 'fast-check';
import { describeDifference, readCallback } from '../../src/domain/banks/callback';
import { readAct } from '../../src/domain/operators/operator-act';
import { Faults } from '../../src/domain/shape';
import { BankCallback, HttpCallback, ResourceCallback } from '../../src/domain/wire/callback';

const good = { callback_id: 'cb-1', occurred_at: '2026-03-01T12:00:00.000Z' };

test('a callback is read without unknown fields', () => {
  const read = readCallback({ ...good, code: 'declined', extra: 1 });
  expect(read).toEqual({ ...good, code: 'declined' });
});

test('the workflow and the connector kit accept and refuse the same payloads', () => {
  const some = fc.constantFrom<unknown[]>;
  const field = fc.oneof(
    fc.string({ maxLength: 510 }),
    some("aZ09._:/@+-(),'?% ", 'A#2.1', 'A#2', 'A\n', 'é', 'A&B'),
    some('', 'x'.repeat(101), 'x'.repeat(201), 'x'.repeat(501)),
    some(good.occurred_at, '2026-03-01T12:00:00+02:00', '2026-03-01', 'yesterday'),
    some(null, 7, true, [], {}),
  );
  const LATEST = ['2026-05-30', '2026-05-31', '2036-03-01'];
  const date = fc.date({ noInvalidDate: true }).map((each) => each.toISOString().slice(0, 10));
  const day = fc.oneof(some('2026-13-01', '26-01-01'), date);
  const payload = fc.oneof(
    fc.record(
      { callback_id: field, occurred_at: field, bank_reference: field, code: field, reason: field },
      { requiredKeys: [] },
    ),
    fc.record({ callback_id: fc.constant('cb'), occurred_at: field, code: field }),
    fc.record(
      {
        ...{ callback_id: fc.constant('cb'), occurred_at: fc.constant(good.occurred_at) },
        amount: fc.oneof(field, some(0, 1, 1.5, -1, 99_999_999_999, 1e11, Number.NaN, 2 ** 60)),
        currency: fc.oneof(field, some('EUR', 'eur', 'EURO', 'XXX')),
        available_on: fc.oneof(field, some('2026-02-28', '2026-02-30'), some(...LATEST)),
        value_date: fc.oneof(field, some('2026-02-28', '2026-02-29', '2024-02-29'), day),
      },
      { requiredKeys: ['callback_id', 'occurred_at'] },
    ),
    fc.anything(),
  );
  fc.assert(
    fc.property(payload, (raw) => {
      const accepted = !(readCallback(raw) instanceof Faults);
      return accepted === BankCallback.safeParse(raw).success;
    }),
    { numRuns: 2_000 },
  );
});

const callback = { ...good, amount: 1_000 };

const resource_id = '0b7d6d52-4a3f-4a5d-9b53-0f0f6d1a3c11';

function findRefusedFields(currency: string): string[] {
  const body = { ...callback, resource: 'payout', resource_id, event: 'completed', currency };
  const { error } = HttpCallback.safeParse(body);
  return (error?.issues ?? []).map(({ path }) => path.join('.'));
}

test('a callback may name a currency by its ISO code', () => {
  for (const currency of ['EUR', 'JPY', 'KWD']) {
    expect(readCallback({ ...callback, currency })).toEqual({ ...callback, currency });
    expect(findRefusedFields(currency)).toEqual([]);
  }
  for (const currency of ['XYZ', 'XXX', 'XAU', 'eur', 'EURO', '']) {
    const read = readCallback({ ...callback, currency });
    expect(read instanceof Faults ? read.text : read).toBe('currency: must be an ISO 4217 code');
    expect(findRefusedFields(currency)).toEqual(['currency']);
  }
});

const REPORT = {
  ...{ callback_id: 'cb_1', resource: 'refund', event: 'settled' },
  ...{ resource_id, occurred_at: '2026-03-01T12:00:00.5+01:00' },
};

test('settled money can be used at most 90 days after the report', () => {
  const last = { ...good, available_on: '2026-05-30' };
  expect(readCallback(last)).toEqual(last);
  const later = readCallback({ ...good, available_on: '2026-05-31' });
  expect(Object(later).text).toBe('available_on: must be at most 90 days after occurred_at');
});

test('a callback over HTTP is accepted with all that it may have, or without', () => {
  const bank_reference = "aZ09._:/@+-(),'?% #2.1";
  const more = { bank_reference, code: 'c', reason: 'r', amount: 1, currency: 'EUR' };
  const whole = { ...REPORT, ...more, value_date: '2026-03-01', available_on: '2026-05-30' };
  for (const body of [REPORT, whole]) expect(HttpCallback.parse(body)).toEqual(body);
});

test.each([
  ['a resource that is none', { resource: 'invoice' }, 'resource'],
  ['an event of another resource', { event: 'authorized' }, 'event'],
  ['an id that is none', { resource_id: '7' }, 'resource_id'],
  ['no callback_id', { callback_id: undefined }, 'callback_id'],
  ['an empty callback_id', { callback_id: '' }, 'callback_id'],
  ['a long callback_id', { callback_id: 'x'.repeat(201) }, 'callback_id'],
  ['Markdown in its callback_id', { callback_id: '1)\n\n**settled**' }, 'callback_id'],
  ['another alphabet in its callback_id', { callback_id: 'é' }, 'callback_id'],
  ['another alphabet in its bank_reference', { bank_reference: 'A&B' }, 'bank_reference'],
  ['a time without an offset', { occurred_at: '2026-03-01T12:00:00' }, 'occurred_at'],
  ['a part of a cent', { amount: 0.5 }, 'amount'],
  ['an amount of nothing', { amount: 0 }, 'amount'],
  ['a text for an amount', { amount: '1050' }, 'amount'],
  ['a day that is none', { value_date: '2026-02-30' }, 'value_date'],
  ['another day that is none', { available_on: '2026-13-01' }, 'available_on'],
  ['a day after more than 90 days', { available_on: '2026-05-31' }, 'available_on'],
  ['a null', { code: null }, 'code'],
  ['an unknown field', { status: 'x' }, 'status'],
  ['a fee above what settled', { amount: 1_000, fee: 1_001 }, 'fee'],
])('a callback over HTTP with %s is refused', (_, change, field) => {
  const { error } = HttpCallback.safeParse({ ...REPORT, ...change });
  const [issue] = error?.issues ?? [];
  const unknown = issue?.code === 'unrecognized_keys' ? issue.keys : issue?.path;
  expect(unknown?.join('.')).toBe(field);
});

test.each([
  ['settled', 1_000, true],
  ['settled', 1_001, false],
  ['dispute_opened', 1_001, true],
] as const)('a report %s of 1000 with a fee of %i is delivered: %s', (name, fee, success) => {
  const { event, resource_id, ...facts } = REPORT;
  const about = { connector: 'acme', resource: 'payment', resource_id, name };
  const report = { ...about, callback: { ...facts, amount: 1_000, fee } };
  expect(ResourceCallback.safeParse(report)).toMatchObject({ success });
});

test.each([
  [{}, undefined],
  [{ amount: 1_050, currency: 'EUR' }, undefined],
  [{ amount: 1_049 }, expect.stringContaining('1049 EUR')],
  [{ currency: 'USD' }, expect.stringContaining('1050 USD')],
])('a callback with %j about 1050 EUR names a difference only where there is one', (...all) => {
  const [reported, difference] = all;
  const expected = { amount: 1_050, currency: 'EUR' };
  expect(describeDifference(reported, expected)).toEqual(difference);
});

const UNSIGNED = 'operator: must have at least 1 character; reason: is required';

test.each([
  ['mark_failed', {}, 'accepted'],
  ['snooze', { hours: 24 }, 'accepted'],
  ['mark_settled', { amount: 1_049 }, 'accepted'],
  ['mark_settled', { amount: 0.5 }, /^amount/],
  ['mark_failed', { amount: 1_049 }, /^amount/],
  ['mark_failed', null, 'must be an object'],
  ['mark_failed', { operator: ' ', reason: undefined }, UNSIGNED],
  ...[0, -1, 721, Number.NaN, '24', undefined].map((hours) => ['snooze', { hours }, /^hours/]),
] as [Parameters<typeof readAct>[0], object | null, string | RegExp][])(
  'the act %s with %j of an operator who gives a reason is %s',
  (name, changes, expected) => {
    const act = changes && { operator: 'ada', reason: 'later', ...changes };
    const read = readAct(name, act);
    const text = read instanceof Faults ? read.text : 'accepted';
    if (typeof expected === 'string') expect(text).toBe(expected);
    else expect(text).toMatch(expected);
  },
);
