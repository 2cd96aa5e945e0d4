import fc from 'fast-check';
import { readCallback } from '../../src/domain/callback';
import { readOperatorAct, readSnoozeAct } from '../../src/domain/lifecycle';
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

test('an operator has to say who acts and why', () => {
  const fault = (read: unknown) => (read instanceof Faults ? read.text : 'accepted');
  expect(fault(readOperatorAct({ operator: 'ada', reason: 'asked the bank' }))).toBe('accepted');
  expect(fault(readOperatorAct({ operator: ' ' }))).toBe(
    'operator: must have at least 1 character; reason: is required',
  );
  expect(fault(readOperatorAct(null))).toBe('must be an object');
  const act = { operator: 'ada', reason: 'later' };
  expect(fault(readSnoozeAct({ ...act, hours: 24 }))).toBe('accepted');
  for (const hours of [0, -1, 721, Number.NaN, '24', undefined]) {
    expect(fault(readSnoozeAct({ ...act, hours }))).toMatch(/^hours/);
  }
});
