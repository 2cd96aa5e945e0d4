import type { z } from 'zod';
import { parseJson } from '../../src/base/json';
import { DETAILS_MAX, Refusal } from '../../src/domain/errors';
import { SubmitEvidence } from '../../src/domain/wire/disputes';
import { isEmail } from '../../src/domain/wire/fields';
import { CreatePayment } from '../../src/domain/wire/payments';
import { validate } from '../../src/domain/wire/validate';
import { leastCpuMs } from '../support/cpu-time';

function readRefusal(body: object, schema: z.ZodType = CreatePayment): Refusal {
  try {
    validate(schema, parseJson(JSON.stringify(body)).value);
  } catch (error) {
    if (error instanceof Refusal) return error;
    throw error;
  }
  throw new Error('The body was accepted.');
}

const unknown = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`f${index}`, 1]));

const EMAILS = [
  ...['o&m@example.com', 'sales!eu@example.com', 'x=y@example.com', 'a/b@example.com', 'A@B.NL'],
  ...["o'neil@example.com", 'plus+tag@example.com', "!#$%&'*+-/=?^_`{|}~@example.com"],
  ...['a.b.c@b.nl', 'info@räucher.example', 'info@例え.テスト', 'a@xn--rucher-bua.example'],
  ...['1@1-2.co', `${'a'.repeat(64)}@b.nl`, `a@${'b'.repeat(63)}.nl`, 'a@हिन्दी.भारत'],
];

test.each([
  ...[...EMAILS.map((email) => [email, true])],
  ...[
    ...['', 'a', '@b.nl', 'a@', 'a@b', 'a@@b.nl', 'a@b@c.nl', 'a b@c.nl', 'a@b .nl', 'a@b.nl\n'],
    ...['a@b.nl ', '.a@b.nl', 'a.@b.nl', 'a..b@c.nl', 'a@.nl', 'a@b..nl', 'a@b.nl.', 'a@-b.nl'],
    ...['a@b-.nl', 'a@b_c.nl', 'müller@example.de', '"quoted"@example.com', 'a@[192.0.2.1]'],
    ...['a@192.0.2.1', 'a,b@c.nl', 'a<b>@c.nl', `${'a'.repeat(65)}@b.nl`],
    ...[`a@${'b'.repeat(64)}.nl`, `a@${'ä'.repeat(60)}.nl`, `a@${'b.'.repeat(130)}nl`],
  ].map((email) => [email, false]),
] as [string, boolean][])('%j is an e-mail address: %s', (email, isValid) => {
  expect(isEmail(email)).toBe(isValid);
});

test('a refusal names each of a hundred offending fields', () => {
  const { details = [] } = readRefusal(unknown(95));
  const missing = ['amount', 'method', 'currency', 'success_url', 'error_url'];
  const names = [...missing, ...Object.keys(unknown(95))];
  expect(details.map(({ field }) => field).sort()).toEqual(names.sort());
});

test('a refusal lists a hundred of thousands of offending fields, and counts all', () => {
  const body = { amount: 1.5, ...unknown(4_900) };
  const { code, message, details } = readRefusal(body);
  expect(leastCpuMs(() => readRefusal(body))).toBeLessThan(500);
  expect(code).toBe('invalid_request');
  expect(details).toHaveLength(DETAILS_MAX);
  expect(JSON.stringify(details).length).toBeLessThan(16 * 1_024);
  // Missing: method, currency and the two URLs.
  expect(message).toContain(`${4_900 + 1 + 4} fields`);
});

test('a refusal has no code of its own because of a fault past the last that it lists', () => {
  const { code, details } = readRefusal(unknown(DETAILS_MAX - 5));
  expect([code, details?.length]).toEqual(['invalid_request', DETAILS_MAX]);
});

test.each([
  ['😀'.repeat(255), true],
  ['é'.repeat(255), true],
  ['x'.repeat(255), true],
  ['😀'.repeat(256), false],
  [`${'😀'.repeat(255)}x`, false],
  ['x'.repeat(256), false],
])('lengths are counted in characters, as in the API document: %#', (reference, isAccepted) => {
  const { details = [] } = readRefusal({ amount: 1.5, reference });
  expect(details.every(({ field }) => field !== 'reference')).toBe(isAccepted);
});

test('evidence of a dispute is counted in characters over all fields, and too much of it names `explanation`', () => {
  const carrier = '😀'.repeat(200);
  const evidence = { carrier, shipped_at: null, explanation: '😀'.repeat(19_800) };
  expect(validate(SubmitEvidence, evidence)).toEqual(evidence);
  const { details } = readRefusal({ ...evidence, tracking_number: 'x' }, SubmitEvidence);
  const message = 'must have at most 20000 characters in all';
  expect(details).toEqual([{ code: 'invalid', field: 'explanation', message }]);
});
