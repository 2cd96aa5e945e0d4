import { isCurrency } from './money/money';

/**
 * Parsers without zod: Temporal loads a workflow's modules for every run, and a schema library was
 * a quarter of a payment's cost for the worker.
 */

/** Text for operators. */
export class Faults {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** @returns undefined for a valid value */
export type Rule = (value: unknown) => string | undefined;

interface Range {
  min: number;
  max: number;
  optional?: boolean;
}

function matching(pattern: RegExp, fault: string, { optional = false } = {}): Rule {
  return (value) => {
    if (value === undefined) return optional ? undefined : 'is required';
    return typeof value === 'string' && pattern.test(value) ? undefined : fault;
  };
}

/** @param trimmed whether surrounding white space does not count */

export function text(range: Partial<Range> & { max: number; trimmed?: boolean }): Rule {
  const { min = 0, max, optional = false, trimmed = false } = range;
  return (value) => {
    if (value === undefined) return optional ? undefined : 'is required';
    if (typeof value !== 'string') return 'must be a string';
    const measured = trimmed ? value.trim() : value;
    if (measured.length < min) return `must have at least ${min} character${min === 1 ? '' : 's'}`;
    return fits(measured, max) ? undefined : `must have at most ${max} characters`;
  };
}

/** Counts code points: an emoji is one character. */
export function fits(text: string, max: number): boolean {
  if (text.length <= max) return true;
  return text.length <= 2 * max && [...text].length <= max;
}

export function positive(max: number): Rule {
  return (value) => {
    if (value === undefined) return 'is required';
    if (typeof value !== 'number' || !Number.isFinite(value)) return 'must be a number';
    return value > 0 && value <= max ? undefined : `must be more than 0 and at most ${max}`;
  };
}

export function integer({ min, max, optional = false }: Range): Rule {
  return (value) => {
    if (value === undefined) return optional ? undefined : 'is required';
    if (typeof value !== 'number' || !Number.isInteger(value)) return 'must be an integer';
    return value >= min && value <= max ? undefined : `must be from ${min} to ${max}`;
  };
}

export function choice(values: readonly string[], { optional = false } = {}): Rule {
  return (value) => {
    const isKnown = (optional && value === undefined) || values.some((each) => each === value);
    return isKnown ? undefined : `must be ${values.join(', ')}`;
  };
}

export const flag: Rule = (value) =>
  value === undefined || typeof value === 'boolean' ? undefined : 'must be true or false';

export function wholeNumber(max: number): Rule {
  return integer({ min: 0, max, optional: true });
}

export const currencyCode: Rule = (value) => {
  if (value === undefined) return undefined;
  const isValid = typeof value === 'string' && isCurrency(value);
  return isValid ? undefined : 'must be an ISO 4217 code';
};

export const day: Rule = (value) =>
  value === undefined || (typeof value === 'string' && isDay(value))
    ? undefined
    : 'must be a day, as 2026-03-01';

export function isDay(text: string): boolean {
  const date = new Date(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00Z` : Number.NaN);
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text);
}

/** Refuses a field that the message does not have, instead of ignoring it. */
export const absent: Rule = (value) => (value === undefined ? undefined : 'is not accepted here');

const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/;

export const instant: Rule = (value) => {
  if (value === undefined) return 'is required';
  const isValid =
    typeof value === 'string' && INSTANT.test(value) && !Number.isNaN(Date.parse(value));
  return isValid ? undefined : 'must be an ISO 8601 time with an offset';
};

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i;

export const uuid: Rule = (value) => {
  if (value === undefined) return 'is required';
  return typeof value === 'string' && UUID.test(value) ? undefined : 'must be a UUID';
};

const ID = /^(?:[a-z]{1,10}_)?[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}(?::\d+)?$/i;

/** Lowers a UUID, also with a prefix or a number after it, as it is stored; other text stays. */
export function toLowerId(text: string): string {
  return ID.test(text) ? text.toLowerCase() : text;
}

/** Drops unknown fields. */
export function object<T extends object>(
  raw: unknown,
  rules: { [Field in keyof T]-?: Rule },
): T | Faults {
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) {
    return new Faults('must be an object');
  }
  const fields = new Map<string, unknown>(Object.entries(raw));
  const faults: string[] = [];
  const result: Partial<Record<string, unknown>> = {};
  for (const [field, rule] of Object.entries<Rule>(rules)) {
    const value = fields.get(field);
    const fault = rule(value);
    if (fault !== undefined) faults.push(`${field}: ${fault}`);
    else if (value !== undefined) result[field] = value;
  }
  // Every field has passed its rule.
  return faults.length > 0 ? new Faults(faults.join('; ')) : (result as T);
}

/**
 * Identifier from outside: operators read it, so it cannot imitate what the service writes.
 * @see docs/connectors.md#callbacks
 */
export const IDENTIFIER = /^[A-Za-z0-9 ._:/@+(),'?%-]{1,200}$/;

/** Perhaps none, or with the place of a part: `REF#2.1`. */
export const BANK_REFERENCE = /^(?=.{0,200}$)[A-Za-z0-9 ._:/@+(),'?%-]*(?:#\d+\.\d+)?$/;

const CHARACTERS = "the characters A-Z a-z 0-9 . _ : / @ + - ( ) , ' ? % and space";
export const IDENTIFIER_FAULT = `must have 1 to 200 of ${CHARACTERS}`;
export const BANK_REFERENCE_FAULT = `must have at most 200 of ${CHARACTERS}`;

export const identifier = matching(IDENTIFIER, IDENTIFIER_FAULT);

export const bankReference = matching(BANK_REFERENCE, BANK_REFERENCE_FAULT, { optional: true });

/** Writes every other character, and `%`, as `%XX` of its UTF-8 bytes: no two texts become one. */
export function encodeIdentifier(text: string): string {
  return text.toWellFormed().replace(/[^A-Za-z0-9 ._:/@+(),'?-]/gu, (character) => {
    const encoded = encodeURIComponent(character);
    return encoded === character ? `%${toHex(character)}` : encoded;
  });
}

const toHex = (character: string) => character.charCodeAt(0).toString(16).toUpperCase();

/**
 * Reads the reference of a bank's answer: money that moved must not wait for a well-formed name.
 * One that stays too long is none: its instruction names the movement.
 */
export function readBankReference(answered: string): string {
  if (BANK_REFERENCE.test(answered)) return answered;
  const encoded = encodeIdentifier(answered);
  return BANK_REFERENCE.test(encoded) ? encoded : '';
}
