import { type Node, type ParseError, parseTree } from 'jsonc-parser';

/** Largest number of containers inside each other that a body may have. */
export const JSON_DEPTH_MAX = 200;

/** Largest number of characters of a caller's key that a message repeats. */
const KEY_SHOWN_LENGTH_MAX = 64;

/** A number as it was written, where a JS number would lose it: `10.0`, `1e3`, `-0`, 2^53. */
export class NumberLiteral {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

export type JsonKind = 'object' | 'array' | 'string' | 'number' | 'boolean' | 'null';

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
 * A JSON value kept as its exact source text, to be written as is: key order, white space and
 * numbers of any size come back as they were sent. The text is trusted to be valid JSON, since it
 * comes from `parseJson` or from where it was stored.
 * `metadata` is returned unchanged. @see docs/decisions.md#requests
 */
export class RawJson {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  get kind(): JsonKind {
    return KINDS[this.text.trimStart().charAt(0)] ?? 'number';
  }

  /** Number of distinct keys of an object; 0 for any other kind. Parses the text. */
  get keyCount(): number {
    return this.kind === 'object' ? Object.keys(Object(this.value())).length : 0;
  }

  /** Number of bytes in UTF-8. */
  get byteLength(): number {
    return new TextEncoder().encode(this.text).length;
  }

  /**
   * The parsed value, as `parseJson` gives it.
   * @throws JsonSyntaxError only when the text was not made by `parseJson`
   */
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

/**
 * Error for a text that is not JSON, or is JSON that can be read in two ways; its message is made
 * for the caller.
 */
export class JsonSyntaxError extends Error {
  override readonly name = 'JsonSyntaxError';
}

export interface ParseJsonOptions {
  /** Fields of the outermost object to keep as `RawJson`. */
  raw?: readonly string[];
  /** Most containers inside each other: 1 to `JSON_DEPTH_MAX`, which is the default. */
  depthMax?: number;
  /** Most values, containers included; any number when not given. */
  valuesMax?: number;
}

export interface ParsedJson {
  /**
   * The parsed value. Objects have no prototype, so that `__proto__` is a key like any other.
   * Number literals that are safe integers are numbers, all others `NumberLiteral`.
   */
  value: JsonValue;
  /**
   * A text that is equal for every way of writing the same body: keys sorted, no white space,
   * strings escaped in one way. Numbers stay as written: `1.0` is not `1`.
   */
  canonical: string;
}

/**
 * Reads strict JSON without loss.
 * @throws JsonSyntaxError for text that is empty or not JSON, nesting past `depthMax`, more values
 *   than `valuesMax`, or an object with two different values for one key. Equal values for one key
 *   count once.
 */
export function parseJson(text: string, options: ParseJsonOptions = {}): ParsedJson {
  const depthMax = Math.min(options.depthMax ?? JSON_DEPTH_MAX, JSON_DEPTH_MAX);
  // Depth and number are checked before any parser, since they are recursive and slow.
  checkShape(text, { depthMax, valuesMax: options.valuesMax ?? Number.POSITIVE_INFINITY });
  const root = readStrictly(text);
  return readNode(root, { text, raw: new Set(options.raw), outermost: root });
}

interface Shape {
  depthMax: number;
  valuesMax: number;
}

const OPENING = new Set(['[', '{']);
const CLOSING = new Set([']', '}']);
const BETWEEN = new Set([' ', '\t', '\n', '\r', ':']);

/** Walks over the text once; a value is counted where it begins. */
function checkShape(text: string, { depthMax, valuesMax }: Shape): void {
  let depth = 0;
  let values = 0;
  // A container's first value comes behind its opening, each other one behind a comma.
  let isDue = true;
  for (let index = 0; index < text.length; index += 1) {
    const char = text.charAt(index);
    if (BETWEEN.has(char)) continue;
    if (char === ',') isDue = true;
    else if (CLOSING.has(char)) {
      depth -= 1;
      isDue = false;
    } else {
      if (isDue) values += 1;
      isDue = OPENING.has(char);
      if (isDue) depth += 1;
      else if (char === '"') index = endOfString(text, index);
    }
    if (depth > depthMax) throw new JsonSyntaxError(`Nested deeper than ${depthMax} levels.`);
    if (values > valuesMax) throw new JsonSyntaxError(`More than ${valuesMax} values.`);
  }
}

/** Index of the quote that ends the string which begins at `start`; past the text without one. */
function endOfString(text: string, start: number): number {
  for (let index = start + 1; index < text.length; index += 1) {
    const char = text[index];
    if (char === '\\') index += 1;
    else if (char === '"') return index;
  }
  return text.length;
}

/**
 * Reads twice: JSON.parse says whether it is JSON, the tolerant parser gives the offsets and the
 * duplicates.
 */
function readStrictly(text: string): Node {
  if (text.trim() === '') throw new JsonSyntaxError('Empty: a JSON value is expected.');
  let valid = true;
  try {
    JSON.parse(text);
  } catch {
    // The error is dropped, since its message quotes the text, which may hold a card number.
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

function readNode(node: Node, context: ReadContext): ParsedJson {
  if (node.type === 'object') return readObject(node, context);
  if (node.type === 'array') {
    const items = (node.children ?? []).map((child) => readNode(child, context));
    return {
      value: items.map((item) => item.value),
      canonical: `[${items.map((item) => item.canonical).join()}]`,
    };
  }
  const source = sourceOf(node, context.text);
  if (node.type === 'number') return { value: readNumber(source), canonical: source };
  const value: JsonValue = JSON.parse(source);
  return { value, canonical: JSON.stringify(value) };
}

function readObject(node: Node, context: ReadContext): ParsedJson {
  const value: { [key: string]: JsonValue } = Object.create(null);
  const canonicals = new Map<string, string>();
  for (const property of node.children ?? []) {
    const [keyNode, valueNode] = property.children ?? [];
    if (keyNode === undefined || valueNode === undefined) throw new JsonSyntaxError('Not valid.');
    const key: string = JSON.parse(sourceOf(keyNode, context.text));
    const read = readNode(valueNode, context);
    const earlier = canonicals.get(key);
    if (earlier !== undefined && earlier !== read.canonical) {
      const shown = JSON.stringify(key.slice(0, KEY_SHOWN_LENGTH_MAX));
      throw new JsonSyntaxError(`The key ${shown} is given twice, with different values.`);
    }
    if (earlier !== undefined) continue;
    canonicals.set(key, read.canonical);
    const keptRaw = node === context.outermost && context.raw.has(key);
    value[key] = keptRaw ? new RawJson(sourceOf(valueNode, context.text)) : read.value;
  }
  const members = [...canonicals.keys()]
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonicals.get(key)}`);
  return { value, canonical: `{${members.join()}}` };
}

function sourceOf(node: Node, text: string): string {
  return text.slice(node.offset, node.offset + node.length);
}

function readNumber(source: string): number | NumberLiteral {
  const value = Number(source);
  // Texts are compared, since `-0`, `1e3` and `10.0` are integers to JS but not as written.
  const exact = Number.isSafeInteger(value) && String(value) === source;
  return exact ? value : new NumberLiteral(source);
}
