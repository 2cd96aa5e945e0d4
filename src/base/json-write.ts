import { NumberLiteral, RawJson } from './json';

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
