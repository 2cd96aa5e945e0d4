import { z } from 'zod';

export type Shown = string | number | boolean | null | readonly Shown[] | { [name: string]: Shown };

export interface Knowledge {
  /** Values that may be shown: IDs, amounts and codes of the contract. */
  known: ReadonlySet<string>;
  /** Recipient's data, which may never be shown. */
  personal: readonly string[];
}

export const HIDDEN = '•••';
const DEPTH_MAX = 8;
const ITEMS_MAX = 20;
const TEXT_LENGTH_MAX = 200;
/** Names of fields, and no values that are used as names. */
const FIELD = /^[A-Za-z_$][A-Za-z_$-]{0,40}\d{0,2}$/;
const PATH_PART = /^(?:v\d{1,2}|[a-z][a-z_-]{0,30})?$/;
/** Excludes `date`, which may be that of a birth. */
const FORMATS = new Set(['uuid', 'date-time']);
/** Shorter words are compared whole, so that a name does not hide a currency. */
const PART_LENGTH_MIN = 4;

interface Schema {
  enum?: readonly unknown[];
  const?: unknown;
  format?: string;
  properties?: Record<string, Schema>;
  items?: Schema;
  anyOf?: readonly Schema[];
  oneOf?: readonly Schema[];
  allOf?: readonly Schema[];
}

/**
 * Shows only values of the contract, values that the bank's schema lists, and what is true, false
 * or null.
 * @param schema schema with which the connector read it
 */
export function hide(value: unknown, knowledge: Knowledge, schema?: z.ZodType): Shown {
  if (schema === undefined) return hideIn(value, knowledge, [], 0);
  const fresh = () => z.toJSONSchema(schema, { unrepresentable: 'any', io: 'output' }) as Schema;
  const known = described.get(schema) ?? fresh();
  described.set(schema, known);
  return hideIn(value, knowledge, [known], 0);
}

const described = new WeakMap<z.ZodType, Schema>();

/** Hides values in the path, and omits the query, which may have a secret. */
export function hidePath(url: string | URL, knowledge: Knowledge): string {
  const parts = new URL(url, 'http://connector').pathname.split('/').map((part) => decode(part));
  const isShown = (part: string) =>
    isKnown(part, knowledge) || (PATH_PART.test(part) && !isPersonal(part, knowledge));
  return parts.map((part) => (isShown(part) ? part : HIDDEN)).join('/');
}

function hideIn(
  value: unknown,
  knowledge: Knowledge,
  schemas: readonly Schema[],
  depth: number,
): Shown {
  if (value === null || value === undefined || typeof value === 'boolean') return value ?? null;
  const candidates = schemas.flatMap(flatten);
  if (typeof value !== 'object') return hideScalar(value, knowledge, candidates);
  if (depth >= DEPTH_MAX) return HIDDEN;
  if (Array.isArray(value)) {
    const items = candidates.flatMap((schema) => schema.items ?? []);
    return value.slice(0, ITEMS_MAX).map((item) => hideIn(item, knowledge, items, depth + 1));
  }
  const fields = Object.entries(value).map(([name, child]): [string, Shown] => {
    const of = candidates.flatMap(({ properties }) => properties?.[name] ?? []);
    const isField = FIELD.test(name) && !isPersonal(name, knowledge);
    return [isField ? name : HIDDEN, hideIn(child, knowledge, of, depth + 1)];
  });
  return Object.fromEntries(fields);
}

function hideScalar(value: unknown, knowledge: Knowledge, schemas: readonly Schema[]): Shown {
  if (typeof value !== 'string' && typeof value !== 'number') return HIDDEN;
  const text = String(value);
  if (text.length > TEXT_LENGTH_MAX || isPersonal(text, knowledge)) return HIDDEN;
  const isListed = schemas.some(
    (schema) =>
      schema.const === value ||
      schema.enum?.includes(value) === true ||
      FORMATS.has(schema.format ?? ''),
  );
  return isListed || isKnown(text, knowledge) ? value : HIDDEN;
}

function isKnown(text: string, knowledge: Knowledge): boolean {
  return knowledge.known.has(text) && !isPersonal(text, knowledge);
}

function isPersonal(text: string, { personal }: Knowledge): boolean {
  const own = text.toLowerCase();
  return personal.some((word) =>
    word.length < PART_LENGTH_MIN ? own === word : own.includes(word),
  );
}

function flatten(schema: Schema): Schema[] {
  const { anyOf = [], oneOf = [], allOf = [] } = schema;
  return [schema, ...[...anyOf, ...oneOf, ...allOf].flatMap(flatten)];
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return HIDDEN;
  }
}
