import { ERROR_CODES, type ErrorCode } from '../../src/domain/errors';
import type { Answer } from '../support/http';

/** Fails unless the answer is this refusal, in the one shape of docs/api.md#errors. */
export function expectRefusal(answer: Answer, code: ErrorCode, fields?: readonly string[]): void {
  const { status, type } = ERROR_CODES[code];
  expect({ status: answer.status, body: answer.body }).toMatchObject({
    status,
    body: { error: { type, code } },
  });
  expectErrorShape(answer);
  if (fields === undefined) return;
  const named: { field: string }[] = answer.body.error.details ?? [];
  expect([...new Set(named.map(({ field }) => field))].sort()).toEqual([...fields].sort());
}

/** Fails if a text quotes a value; one of few digits may also be within an id or a time. */
export function expectNotQuoted(text: string, value: string): void {
  const digit = '[0-9a-fA-F]';
  const isShort = new RegExp(`^${digit}{1,7}$`).test(value);
  if (isShort) expect(text).not.toMatch(new RegExp(`(?<!${digit})${value}(?!${digit})`));
  else expect(text).not.toContain(value);
}

/**
 * Fails unless the answer has the one shape of every error, and leaks nothing.
 * @see docs/api.md#errors
 */
export function expectErrorShape({ headers, text, body }: Answer): void {
  expect(Object.keys(body)).toEqual(['error']);
  const { type, code, message, request_id, details, ...more } = body.error;
  expect(more).toEqual({});
  expect([type, code, message].every((each) => typeof each === 'string' && each !== '')).toBe(true);
  expect(request_id).toBe(headers.get('Request-Id'));
  expect(headers.get('Content-Type')).toBe('application/json; charset=utf-8');
  for (const detail of details ?? []) {
    expect(Object.keys(detail).sort()).toEqual(['code', 'field', 'message']);
  }
  expect(text).not.toMatch(/mongo|temporal|zod|stack|at \/|node_modules|NumberLiteral|RawJson/i);
}
