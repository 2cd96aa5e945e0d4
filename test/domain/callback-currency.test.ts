import { readCallback } from '../../src/domain/callback/callback';
import { Refusal } from '../../src/domain/errors';
import { Faults } from '../../src/domain/shape';
import { HttpCallback } from '../../src/domain/wire/callback';
import { validate } from '../../src/domain/wire/validate';

const callback = { callback_id: 'cb-1', occurred_at: '2026-03-01T12:00:00Z', amount: 1_000 };
const resource_id = '0b7d6d52-4a3f-4a5d-9b53-0f0f6d1a3c11';

function refusedFields(currency: string): string[] {
  try {
    const body = { ...callback, resource: 'payout', resource_id, event: 'completed', currency };
    validate(HttpCallback, body);
    return [];
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return (error.details ?? []).map(({ field }) => field);
  }
}

test.each(['EUR', 'JPY', 'KWD'])('a callback may name the currency %s', (currency) => {
  expect(readCallback({ ...callback, currency })).toEqual({ ...callback, currency });
  expect(refusedFields(currency)).toEqual([]);
});

test.each(['XYZ', 'XXX', 'XAU', 'eur', 'EURO', ''])('no currency has the code `%s`', (currency) => {
  const read = readCallback({ ...callback, currency });
  expect(read instanceof Faults ? read.text : read).toBe('currency: must be an ISO 4217 code');
  expect(refusedFields(currency)).toEqual(['currency']);
});
