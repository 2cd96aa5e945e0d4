import fc from 'fast-check';
import { describeDifference, readCallback } from '../../src/domain/callback/callback';
import { readAct } from '../../src/domain/operator-act';
import { Faults } from '../../src/domain/shape';
import { BankCallback } from '../../src/domain/wire/callback';

const good = { callback_id: 'cb-1', occurred_at: '2026-03-01T12:00:00.000Z' };

test('a callback is read with its known fields only', () => {
  expect(readCallback({ ...good, code: 'declined', extra: 1 })).toEqual({
    ...good,
    code: 'declined',
  });
});

test('the workflow and the connector kit accept and refuse the same payloads', () => {
  const field = fc.oneof(
    fc.string({ maxLength: 510 }),
    fc.constantFrom('', 'x'.repeat(101), 'x'.repeat(201), 'x'.repeat(501)),
    fc.constantFrom(good.occurred_at, '2026-03-01T12:00:00+02:00', '2026-03-01', 'yesterday'),
    fc.constantFrom(null, 7, true, [], {}),
  );
  const payload = fc.oneof(
    fc.record(
      { callback_id: field, occurred_at: field, bank_reference: field, code: field, reason: field },
      { requiredKeys: [] },
    ),
    fc.record({ callback_id: fc.constant('cb'), occurred_at: field, code: field }),
    fc.record(
      {
        callback_id: fc.constant('cb'),
        occurred_at: fc.constant(good.occurred_at),
        amount: fc.oneof(
          field,
          fc.constantFrom(0, 1, 1.5, -1, 99_999_999_999, 100_000_000_000, Number.NaN, 2 ** 60),
        ),
        currency: fc.oneof(field, fc.constantFrom('EUR', 'eur', 'EURO', 'XXX')),
        value_date: fc.oneof(
          field,
          fc.constantFrom('2026-02-28', '2026-02-29', '2024-02-29', '2026-13-01', '26-01-01'),
          fc.date({ noInvalidDate: true }).map((date) => date.toISOString().slice(0, 10)),
        ),
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

test('a bank speaks of other money only where it names another amount or currency', () => {
  const asked = { amount: 1_050, currency: 'EUR' };
  expect(describeDifference({}, asked)).toBeUndefined();
  expect(describeDifference({ amount: 1_050, currency: 'EUR' }, asked)).toBeUndefined();
  expect(describeDifference({ amount: 1_049 }, asked)).toContain('1049 EUR');
  expect(describeDifference({ currency: 'USD' }, asked)).toContain('1050 USD');
});

test('an operator has to say who acts and why', () => {
  const fault = (read: unknown) => (read instanceof Faults ? read.text : 'accepted');
  const asked = { operator: 'ada', reason: 'asked the bank' };
  expect(fault(readAct('mark_failed', asked))).toBe('accepted');
  expect(fault(readAct('mark_failed', { operator: ' ' }))).toBe(
    'operator: must have at least 1 character; reason: is required',
  );
  expect(fault(readAct('mark_failed', null))).toBe('must be an object');
  const act = { operator: 'ada', reason: 'later' };
  expect(fault(readAct('snooze', { ...act, hours: 24 }))).toBe('accepted');
  for (const hours of [0, -1, 721, Number.NaN, '24', undefined]) {
    expect(fault(readAct('snooze', { ...act, hours }))).toMatch(/^hours/);
  }
  expect(fault(readAct('mark_settled', { ...act, amount: 1_049 }))).toBe('accepted');
  expect(fault(readAct('mark_settled', { ...act, amount: 0.5 }))).toMatch(/^amount/);
  expect(fault(readAct('mark_failed', { ...act, amount: 1_049 }))).toMatch(/^amount/);
});
