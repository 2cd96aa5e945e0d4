import { applyEdits, format, type Node, type ParseError, parseTree } from 'jsonc-parser';

export const JSON_DEPTH_MAX = 200;

const KEY_SHOWN_LENGTH_MAX = 64;

/** Source text of a number that a JS number would change: `10.0`, `1e3`, `-0`, 2^53. */
export class NumberLiteral {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

type JsonKind = 'object' | 'array' | 'string' | 'number' | 'boolean' | 'null';

export type JsonValue =
  | null
  | boolean
  | number
  | string
  | NumberLiteral
  | RawJson
  | JsonValue[]
  | { [key: string]: JsonValue };

/**
 * JSON value with its source text: `metadata` keeps key order, white space and numbers of any size.
 * The text is not checked again. @see docs/decisions.md#requests
 */
export class RawJson {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  get kind(): JsonKind {
    return KINDS[this.text.trimStart().charAt(0)] ?? 'number';
  }

  get keyCount(): number {
    return this.kind === 'object' ? Object.keys(Object(this.value())).length : 0;
  }

  get byteLength(): number {
    return new TextEncoder().encode(this.text).length;
  }

  value(): JsonValue {
    return parseJson(this.text).value;
  }
}

const KINDS: Readonly<Record<string, JsonKind>> = {
  '{': 'object',
  '[': 'array',
  '"': 'string',
  t: 'boolean',
  f: 'boolean',
  n: 'null',
};

export function isJsonObject(value: JsonValue | undefined): value is { [key: string]: JsonValue } {
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    !(value instanceof NumberLiteral) &&
    !(value instanceof RawJson)
  );
}

/** Invalid or ambiguous JSON; the message is for the caller. */
export class JsonSyntaxError extends Error {
  override readonly name = 'JsonSyntaxError';
}

interface ParseJsonOptions {
  /** Outermost fields that become `RawJson`. */
  raw?: readonly string[];
  depthMax?: number;
  valuesMax?: number;
  /** Values outside of raw fields. */
  ownValuesMax?: number;
}

export interface ParsedJson {
  /** Has objects without a prototype; numbers are safe integers or `NumberLiteral`. */
  value: JsonValue;
  /**
   * Sorted keys, no white space, one way of escaping. Numbers keep their source text: `1.0` is not
   * `1`.
   */
  canonical: string;
}

/**
 * Parses strict JSON without loss.
 * @throws JsonSyntaxError for invalid text, nesting beyond `depthMax`, more values than
 *   `valuesMax`, or two different values for one key
 */
export function parseJson(text: string, options: ParseJsonOptions = {}): ParsedJson {
  const depthMax = Math.min(options.depthMax ?? JSON_DEPTH_MAX, JSON_DEPTH_MAX);
  // The parsers are recursive and slow.
  const raw = new Set(options.raw);
  checkShape(text, { ...options, depthMax }, raw);
  const root = readStrictly(text);
  const value = readNode(root, { text, raw, outermost: root });
  return {
    value,
    get canonical() {
      return canonicalize(value);
    },
  };
}

/** Equal for equal values, whatever their order of keys, white space and escapes. */
export function canonicalize(value: JsonValue): string {
  if (value instanceof RawJson) return canonicalize(value.value());
  if (value instanceof NumberLiteral) return value.text;
  if (Array.isArray(value)) return `[${value.map(canonicalize).join()}]`;
  if (!isJsonObject(value)) return JSON.stringify(value);
  const members = Object.entries(value).map(([key, item]) => [key, canonicalize(item)] as const);
  const sorted = members.sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${sorted.map(([key, item]) => `${JSON.stringify(key)}:${item}`).join()}}`;
}

const OPENING = new Set(['[', '{']);
const CLOSING = new Set([']', '}']);
const BETWEEN = new Set([' ', '\t', '\n', '\r', ':']);

function checkShape(
  text: string,
  {
    depthMax,
    valuesMax = Number.POSITIVE_INFINITY,
    ownValuesMax = Number.POSITIVE_INFINITY,
  }: ParseJsonOptions & { depthMax: number },
  raw: ReadonlySet<string>,
): void {
  let depth = 0;
  let values = 0;
  let ownValues = 0;
  let isDue = true;
  let isRaw = false;
  for (let index = 0; index < text.length; index += 1) {
    const char = text.charAt(index);
    if (BETWEEN.has(char)) continue;
    if (char === ',') isDue = true;
    else if (CLOSING.has(char)) {
      depth -= 1;
      isDue = false;
    } else {
      const isMember = isDue;
      if (isMember) values += 1;
      isDue = OPENING.has(char);
      if (isDue) depth += 1;
      else if (char === '"') {
        const start = index + 1;
        index = start;
        while (index < text.length && text.charAt(index) !== '"') {
          index += text.charAt(index) === '\\' ? 2 : 1;
        }
        if (isMember && depth === 1) isRaw = raw.has(text.slice(start, index));
      }
      if (isMember && !isRaw) ownValues += 1;
    }
    if (depth > depthMax) throw new JsonSyntaxError(`Nested deeper than ${depthMax} levels.`);
    if (values > valuesMax) throw new JsonSyntaxError(`More than ${valuesMax} values.`);
    if (ownValues > ownValuesMax) throw new JsonSyntaxError(`More than ${ownValuesMax} values.`);
  }
}

/** `JSON.parse` checks the syntax; the tolerant parser returns offsets and duplicates. */
function readStrictly(text: string): Node {
  if (text.trim() === '') throw new JsonSyntaxError('Empty: a JSON value is expected.');
  let valid = true;
  try {
    JSON.parse(text);
  } catch {
    // The error would quote the text, which may contain a card number.
    valid = false;
  }
  const errors: ParseError[] = [];
  const root = parseTree(text, errors, { disallowComments: true });
  if (valid && root !== undefined) return root;
  const position = errors[0]?.offset;
  throw new JsonSyntaxError(
    position === undefined ? 'Not valid JSON.' : `Not valid JSON at position ${position}.`,
  );
}

interface ReadContext {
  text: string;
  raw: ReadonlySet<string>;
  outermost: Node;
}

function readNode(node: Node, context: ReadContext): JsonValue {
  if (node.type === 'object') return readObject(node, context);
  if (node.type === 'array') return (node.children ?? []).map((child) => readNode(child, context));
  const source = getSource(node, context.text);
  if (node.type !== 'number') return JSON.parse(source);
  const number = Number(source);
  // JS reads `-0`, `1e3` and `10.0` as integers, too.
  const isExact = Number.isSafeInteger(number) && String(number) === source;
  return isExact ? number : new NumberLiteral(source);
}

function readObject(node: Node, context: ReadContext): JsonValue {
  const value: { [key: string]: JsonValue } = Object.create(null);
  for (const property of node.children ?? []) {
    const [keyNode, valueNode] = property.children ?? [];
    if (keyNode === undefined || valueNode === undefined) throw new JsonSyntaxError('Not valid.');
    const key: string = JSON.parse(getSource(keyNode, context.text));
    const member = readNode(valueNode, context);
    const earlier = value[key];
    if (earlier !== undefined && canonicalize(earlier) !== canonicalize(member)) {
      const shownKey = JSON.stringify(key.slice(0, KEY_SHOWN_LENGTH_MAX));
      throw new JsonSyntaxError(`The key ${shownKey} appears twice, with different values.`);
    }
    if (earlier !== undefined) continue;
    const isRaw = node === context.outermost && context.raw.has(key);
    value[key] = isRaw ? new RawJson(getSource(valueNode, context.text)) : member;
  }
  return value;
}

function getSource(node: Node, text: string): string {
  return text.slice(node.offset, node.offset + node.length);
}

/** Indents valid JSON for a reader; its values keep their source text. */
export function indentJson(text: string): string {
  return applyEdits(text, format(text, undefined, { insertSpaces: true, tabSize: 2 }));
}

/**
 * Writes JSON with the source text of each `RawJson` and `NumberLiteral`.
 * @throws TypeError for undefined, a function or a bigint
 */
export function stringifyJson(value: unknown): string {
  const text = write(value, '');
  if (text === undefined) throw new TypeError('This value has no JSON form');
  return text;
}

function write(input: unknown, key: string): string | undefined {
  if (input instanceof RawJson || input instanceof NumberLiteral) return input.text;
  if (typeof input !== 'object' || input === null) return JSON.stringify(input);
  if ('toJSON' in input && typeof input.toJSON === 'function') {
    const replaced: unknown = input.toJSON(key);
    return replaced === input ? writeContainer(input) : write(replaced, key);
  }
  return writeContainer(input);
}

function writeContainer(input: object): string {
  if (Array.isArray(input)) {
    return `[${input.map((item, index) => write(item, String(index)) ?? 'null').join()}]`;
  }
  const members: string[] = [];
  for (const [key, item] of Object.entries(input)) {
    const text = write(item, key);
    if (text !== undefined) members.push(`${JSON.stringify(key)}:${text}`);
  }
  return `{${members.join()}}`;
}
