import { z } from 'zod';
import { isJsonObject, type JsonValue, NumberLiteral, RawJson } from '../../base/json';
import { DETAILS_MAX, type ErrorCode, type ErrorDetail, Refusal } from '../errors';
import { LOGGED, OWN_ID } from '../logged';
import { toLowerId } from '../shape';

const FIELD_CODES: Record<string, ErrorCode> = {
  amount: 'invalid_amount',
  created_before: 'invalid_cursor',
};

const NAMED_MAX = 8;
const NAME_LENGTH_MAX = 64;

/**
 * Makes bodies with the same meaning equal: an empty list is an empty object where the schema wants
 * an object, since PHP writes that as a list, and an ID has lower case.
 * @see docs/api.md#money-json-text
 */
export function normalizeBody(schema: z.core.$ZodType | undefined, value: JsonValue): JsonValue {
  let type = schema;
  while (type instanceof z.ZodOptional || type instanceof z.ZodNullable) type = type.unwrap();
  if (value instanceof RawJson) return /^\[\s*\]$/.test(value.text) ? new RawJson('{}') : value;
  if (typeof value === 'string') {
    // The registry returns a copy.
    const isId = type !== undefined && LOGGED.get(type)?.shows === OWN_ID.shows;
    return isId ? toLowerId(value) : value;
  }
  if (!(type instanceof z.ZodObject)) return value;
  if (Array.isArray(value) && value.length === 0) return {};
  if (!isJsonObject(value)) return value;
  const { shape } = type;
  const fields = Object.entries(value).map(([name, item]) => [
    name,
    normalizeBody(Object.hasOwn(shape, name) ? shape[name] : undefined, item),
  ]);
  return Object.fromEntries(fields);
}

/** @throws Refusal 400 with the first invalid fields */
export function validate<T extends z.ZodType>(schema: T, value: unknown): z.output<T> {
  const parsed = schema.safeParse(replaceLiterals(value), { error: describeIssue });
  if (parsed.success) return parsed.data;
  const faults = parsed.error.issues.flatMap((issue) => toDetails(issue, value));
  const first = faults[0];
  const sharedCode = faults.every(({ code }) => code === first?.code) ? first?.code : undefined;
  const fieldCode = Object.values(FIELD_CODES).find((code) => code === sharedCode);
  const details = faults.slice(0, DETAILS_MAX);
  throw new Refusal(fieldCode ?? 'invalid_request', summarize(faults), { details });
}

/** For what decides only later whether a refusal matters. */
export function tryValidate<T extends z.ZodType>(schema: T, value: unknown): z.output<T> | Refusal {
  try {
    return validate(schema, value);
  } catch (error) {
    if (error instanceof Refusal) return error;
    throw error;
  }
}

function summarize(details: readonly ErrorDetail[]): string {
  const fields = [...new Set(details.map(({ field }) => field))];
  const [only = ''] = fields;
  if (fields.length === 1) {
    return `${only || 'The body'}: ${details.map(({ message }) => message).join('; ')}`;
  }
  const names = fields.slice(0, NAMED_MAX).map((field) => field.slice(0, NAME_LENGTH_MAX));
  const more = fields.length > NAMED_MAX ? ', …' : '';
  return `${fields.length} fields of the request are not valid: ${names.join(', ')}${more}.`;
}

/** Makes them NaN: a schema sees a number, but no field accepts it. */
function replaceLiterals(value: unknown): unknown {
  if (value instanceof NumberLiteral) return Number.NaN;
  if (Array.isArray(value)) return value.map(replaceLiterals);
  if (typeof value !== 'object' || value === null || value instanceof RawJson) return value;
  const plain: { [key: string]: unknown } = Object.create(null);
  for (const [key, item] of Object.entries(value)) plain[key] = replaceLiterals(item);
  return plain;
}

const KINDS: Readonly<Record<string, string>> = { string: 'a string', object: 'an object' };

/** The library's messages would expose class names. */
function describeIssue(issue: z.core.$ZodRawIssue): string | undefined {
  switch (issue.code) {
    case 'invalid_type': {
      const kind = KINDS[issue.expected] ?? issue.expected;
      return `must be ${kind}${Array.isArray(issue.input) ? ', not a list' : ''}`;
    }
    case 'too_small':
      return `must be at least ${issue.minimum}${getUnit(issue.origin)}`;
    case 'too_big':
      return `must be at most ${issue.maximum}${getUnit(issue.origin)}`;
    case 'invalid_value':
      return `must be one of ${issue.values.join(', ')}`;
    default:
      return undefined;
  }
}

function getUnit(origin: string): string {
  return origin === 'string' ? ' characters long' : '';
}

function toDetails(issue: z.core.$ZodIssue, value: unknown): ErrorDetail[] {
  const path = issue.path.map(String);
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({
      code: 'unknown_field',
      field: [...path, key].join('.'),
      message: 'is not a field of this request',
    }));
  }
  const field = path.join('.');
  if (isMissing(value, issue.path)) return [{ code: 'required', field, message: 'is required' }];
  return [{ code: FIELD_CODES[field] ?? 'invalid', field, message: issue.message }];
}

function isMissing(value: unknown, path: readonly PropertyKey[]): boolean {
  let at: unknown = value;
  for (const step of path) {
    if (typeof at !== 'object' || at === null) return false;
    at = Object.getOwnPropertyDescriptor(at, step)?.value;
  }
  return path.length > 0 && at === undefined;
}
