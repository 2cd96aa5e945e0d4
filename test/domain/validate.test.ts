import { parseJson } from '../../src/base/json';
import { DETAILS_MAX, Refusal } from '../../src/domain/errors';
import { CreatePayment } from '../../src/domain/wire/payments';
import { validate } from '../../src/domain/wire/validate';
import { leastCpuMs } from '../support/cpu-time';

/** Refusal of a body by the schema of a payment. */
function refusalOf(body: object): Refusal {
  try {
    validate(CreatePayment, parseJson(JSON.stringify(body)).value);
  } catch (error) {
    if (error instanceof Refusal) return error;
    throw error;
  }
  throw new Error('The body was taken.');
}

const unknown = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`f${index}`, 1]));

test('of thousands of offending fields a hundred are listed, and all are counted', () => {
  const body = { amount: 1.5, ...unknown(4_900) };
  const { code, message, details } = refusalOf(body);
  expect(leastCpuMs(() => refusalOf(body))).toBeLessThan(500);
  expect(code).toBe('invalid_request');
  expect(details).toHaveLength(DETAILS_MAX);
  expect(JSON.stringify(details).length).toBeLessThan(16 * 1_024);
  // Missing: method, currency and the two URLs.
  expect(message).toContain(`${4_900 + 1 + 4} fields`);
});

test('a fault past the hundredth still keeps the error from a code of its own', () => {
  const { code, details } = refusalOf(unknown(DETAILS_MAX - 5));
  expect([code, details?.length]).toEqual(['invalid_request', DETAILS_MAX]);
});

test('lengths are counted in characters, as the API’s document counts them', () => {
  const taken = (reference: string) => {
    const { details = [] } = refusalOf({ amount: 1.5, reference });
    return !details.some(({ field }) => field === 'reference');
  };
  expect(['😀'.repeat(255), 'é'.repeat(255), 'x'.repeat(255)].map(taken)).toEqual([
    true,
    true,
    true,
  ]);
  expect(['😀'.repeat(256), `${'😀'.repeat(255)}x`, 'x'.repeat(256)].map(taken)).toEqual([
    false,
    false,
    false,
  ]);
});
