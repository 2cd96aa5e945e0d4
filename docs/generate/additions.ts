/** JSON Schema, as far as the contract over HTTP uses it. */
export interface JsonSchema {
  description?: string;
  type?: string | string[];
  const?: unknown;
  enum?: unknown[];
  anyOf?: JsonSchema[];
  oneOf?: JsonSchema[];
  properties?: Record<string, JsonSchema>;
  required?: string[];
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  pattern?: string;
  format?: string;
}

export interface ContractSchema {
  $schema: string;
  title: string;
  version: number;
  /** Instructions by their activity, and answers by `{activity}.answer` and `{activity}.refusal`. */
  $defs: Record<string, JsonSchema>;
}

const KNOWN: Record<keyof JsonSchema, true> = {
  ...{ description: true, type: true, const: true, enum: true, anyOf: true, oneOf: true },
  ...{ properties: true, required: true, minimum: true, maximum: true },
  ...{ minLength: true, maxLength: true, pattern: true, format: true },
};

/** Bodies go to the bank, or come from it. */
type Direction = 'instruction' | 'answer';

interface Pair {
  published: JsonSchema;
  current: JsonSchema;
  direction: Direction;
  path: string;
}

/**
 * Lists what a contract does not promise anymore: each new instruction must fit what was published,
 * and each answer that was published must still fit.
 * @throws Error for a keyword that it cannot compare
 */
export function listBreaks(published: ContractSchema, current: ContractSchema): string[] {
  if (published.version !== current.version) return [];
  return Object.entries(published.$defs).flatMap(([path, schema]) => {
    const other = current.$defs[path];
    if (other === undefined) return [`${path} was removed`];
    const direction = path.includes('.') ? 'answer' : 'instruction';
    return compare({ published: schema, current: other, direction, path });
  });
}

function compare(pair: Pair): string[] {
  const { published, current, direction, path } = pair;
  for (const schema of [published, current]) assertKnown(schema, path);
  // A value that fits the first must fit the second.
  const [from, to] = direction === 'instruction' ? [current, published] : [published, current];
  const [every, some] = [listAlternatives(from), listAlternatives(to)];
  if (every.length === 1 && some.length === 1) return compareOne(pair);
  return every.flatMap((one) => {
    const faults = some.map((other) => {
      const [old, now] = direction === 'instruction' ? [other, one] : [one, other];
      return compareOne({ ...pair, published: old, current: now });
    });
    const fewest = Math.min(...faults.map(({ length }) => length));
    return faults.find(({ length }) => length === fewest) ?? [];
  });
}

function compareOne(pair: Pair): string[] {
  const { published, current, direction, path } = pair;
  for (const schema of [published, current]) assertKnown(schema, path);
  const [from, to] = direction === 'instruction' ? [current, published] : [published, current];
  const say = (name: keyof JsonSchema) =>
    `${path}: ${name} was ${show(published[name])}, and is ${show(current[name])}`;
  const isWider = (name: 'pattern' | 'format') => to[name] !== undefined && from[name] !== to[name];
  return [
    ...(hasOnlyTypes(from, to) ? [] : [say('type')]),
    ...(['pattern', 'format'] as const).filter(isWider).map(say),
    ...(['minimum', 'minLength'] as const)
      .filter((name) => (to[name] ?? -Infinity) > (from[name] ?? -Infinity))
      .map(say),
    ...(['maximum', 'maxLength'] as const)
      .filter((name) => (to[name] ?? Infinity) < (from[name] ?? Infinity))
      .map(say),
    ...compareValues(from, to).map(
      (value) => `${path}: ${value} is ${direction === 'instruction' ? 'new' : 'not allowed'}`,
    ),
    ...compareFields(pair, from, to),
  ];
}

function hasOnlyTypes(from: JsonSchema, to: JsonSchema): boolean {
  if (to.type === undefined) return true;
  const allowed = new Set([to.type].flat());
  const types = [from.type ?? 'any'].flat();
  return types.every((type) => allowed.has(type) || (type === 'integer' && allowed.has('number')));
}

/** Lists the values that fit one schema and not the other. */
function compareValues(from: JsonSchema, to: JsonSchema): string[] {
  const [may, must] = [listValues(from), listValues(to)];
  if (must === undefined) return [];
  if (may === undefined) return ['any value'];
  return may.filter((value) => !must.includes(value)).map(show);
}

function compareFields(pair: Pair, from: JsonSchema, to: JsonSchema): string[] {
  const { published, current, direction, path } = pair;
  const fields = Object.entries(published.properties ?? {}).flatMap(([name, field]) => {
    const other = current.properties?.[name];
    if (other === undefined) return [`${path}.${name} was removed`];
    return compare({ published: field, current: other, direction, path: `${path}.${name}` });
  });
  const words = direction === 'instruction' ? 'may be missing' : 'is required';
  const always = new Set(from.required);
  const missing = (to.required ?? []).filter(
    (name) => !always.has(name) && current.properties?.[name] !== undefined,
  );
  return [...fields, ...missing.map((name) => `${path}.${name} ${words} now`)];
}

function listAlternatives(schema: JsonSchema): JsonSchema[] {
  return schema.anyOf ?? schema.oneOf ?? [schema];
}

function listValues(schema: JsonSchema): unknown[] | undefined {
  return 'const' in schema ? [schema.const] : schema.enum;
}

function assertKnown(schema: JsonSchema, path: string): void {
  const unknown = Object.keys(schema).filter((name) => !(name in KNOWN));
  if (unknown.length > 0) throw new Error(`${path}: nothing compares ${unknown.join(', ')}`);
}

function show(value: unknown): string {
  return value === undefined ? 'none' : JSON.stringify(value);
}
