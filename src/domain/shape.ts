import { fits } from './characters';

/**
 * Shapes of the messages to a workflow. They do without zod, since Temporal loads a workflow's
 * modules anew for every run, and a schema library took a quarter of a payment's cost to its
 * worker.
 */

/** Faults of a value that is not of its shape, in words for people. */
export class Faults {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** Finds the fault of a value; undefined when it has none. */
export type Rule = (value: unknown) => string | undefined;

interface TextRule {
  min?: number;
  max: number;
  optional?: boolean;
  /** Whether white space around the text is left out of the count. */
  trimmed?: boolean;
}

export function text({ min = 0, max, optional = false, trimmed = false }: TextRule): Rule {
  return (value) => {
    if (value === undefined) return optional ? undefined : 'is required';
    if (typeof value !== 'string') return 'must be a string';
    const counted = trimmed ? value.trim() : value;
    if (counted.length < min) return `must have at least ${min} character${min === 1 ? '' : 's'}`;
    return fits(counted, max) ? undefined : `must have at most ${max} characters`;
  };
}

/** Accepts numbers greater than 0, up to `max`. */
export function positive(max: number): Rule {
  return (value) => {
    if (value === undefined) return 'is required';
    if (typeof value !== 'number' || !Number.isFinite(value)) return 'must be a number';
    return value > 0 && value <= max ? undefined : `must be more than 0 and at most ${max}`;
  };
}

/** Accepts whole numbers in minor units. */
export function integer({
  min,
  max,
  optional = false,
}: {
  min: number;
  max: number;
  optional?: boolean;
}): Rule {
  return (value) => {
    if (value === undefined) return optional ? undefined : 'is required';
    if (typeof value !== 'number' || !Number.isInteger(value)) return 'must be an integer';
    return value >= min && value <= max ? undefined : `must be from ${min} to ${max}`;
  };
}

/** Accepts whole numbers from 0 up to `max`, or none. */
export function wholeNumber(max: number): Rule {
  return integer({ min: 0, max, optional: true });
}

/** Accepts a text that has the form of an ISO 4217 code, or none. */
export const currencyCode: Rule = (value) => {
  if (value === undefined) return undefined;
  const formed = typeof value === 'string' && /^[A-Z]{3}$/.test(value);
  return formed ? undefined : 'must be an ISO 4217 code';
};

/** Accepts a day of the calendar as ISO 8601, or none. */
export const day: Rule = (value) => {
  if (value === undefined) return undefined;
  const formed = typeof value === 'string' && /^\d{4}-\d\d-\d\d$/.test(value);
  const at = formed ? new Date(`${value}T00:00:00Z`) : undefined;
  const exists = at !== undefined && !Number.isNaN(at.getTime());
  return exists && at.toISOString().startsWith(String(value))
    ? undefined
    : 'must be a day, as 2026-03-01';
};

/** Refuses a field that this message does not have, so that nobody is misunderstood. */
export const absent: Rule = (value) => (value === undefined ? undefined : 'is not taken here');

const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/;

/** Accepts ISO 8601 with an offset. */
export const instant: Rule = (value) => {
  if (value === undefined) return 'is required';
  const real = typeof value === 'string' && INSTANT.test(value) && !Number.isNaN(Date.parse(value));
  return real ? undefined : 'must be an ISO 8601 time with an offset';
};

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i;

/** Accepts the form of every resource's id. */
export const uuid: Rule = (value) => {
  if (value === undefined) return 'is required';
  return typeof value === 'string' && UUID.test(value) ? undefined : 'must be a UUID';
};

/** Reads the known fields of an object, each by its rule, and drops the others. */
export function object<T extends object>(
  raw: unknown,
  rules: { [Field in keyof T]-?: Rule },
): T | Faults {
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) {
    return new Faults('must be an object');
  }
  const given = new Map<string, unknown>(Object.entries(raw));
  const faults: string[] = [];
  const read: Partial<Record<string, unknown>> = {};
  for (const [field, rule] of Object.entries<Rule>(rules)) {
    const value = given.get(field);
    const fault = rule(value);
    if (fault !== undefined) faults.push(`${field}: ${fault}`);
    else if (value !== undefined) read[field] = value;
  }
  // Every field has passed its rule here.
  return faults.length > 0 ? new Faults(faults.join('; ')) : (read as T);
}
