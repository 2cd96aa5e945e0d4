import fc from 'fast-check';
import {
  JSON_DEPTH_MAX,
  JsonSyntaxError,
  type JsonValue,
  NumberLiteral,
  parseJson,
  RawJson,
  stringifyJson,
} from '../../../src/base/json';
import { leastCpuMs } from '../../support/cpu-time';

/** JSON text of any shape, with the white space, numbers and escapes a caller may write. */
const space = fc.constantFrom('', ' ', '\n', '\t ', '\r\n');
const numberText = fc.oneof(
  fc.constantFrom('12345678901234567890', '1.10', '1e400', '-0', '1E+5', '0.0', '10.0', '-1e-7'),
  fc.maxSafeInteger().map(String),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => JSON.stringify(number)),
);
const stringText = fc.oneof(
  fc.string({ unit: 'binary' }).map((text) => JSON.stringify(text)),
  fc.constantFrom('"\\ud800"', '"\\u0041\\/"', '"é\u2028😀"', '"__proto__"', '"1"', '"toJSON"'),
);
const DISTINCT = { maxLength: 5, selector: ([key]: [string, string]) => JSON.parse(key) };
const { container: jsonText } = fc.letrec<{ any: string; container: string }>((tie) => ({
  any: fc.oneof(
    { maxDepth: 5 },
    fc.constantFrom('null', 'true', 'false'),
    numberText,
    stringText,
    tie('container'),
  ),
  container: fc.oneof(
    fc
      .tuple(space, fc.array(tie('any'), { maxLength: 5 }))
      .map(([gap, items]) => `[${gap}${items.join(`${gap},${gap}`)}${gap}]`),
    fc.tuple(space, fc.uniqueArray(fc.tuple(stringText, tie('any')), DISTINCT)).map((object) => {
      const [gap, members] = object;
      const texts = members.map(([key, value]) => `${gap}${key}${gap}:${gap}${value}${gap}`);
      return `{${texts.join()}${gap}}`;
    }),
  ),
}));

function parseRaw(metadata: string): RawJson {
  const { value } = parseJson(`{"metadata":${metadata}}`, { raw: ['metadata'] });
  const raw: unknown = Object(value).metadata;
  if (!(raw instanceof RawJson)) throw new Error('not a raw field');
  return raw;
}

describe('a raw field', () => {
  test('of any shape comes back byte for byte', () => {
    fc.assert(
      fc.property(jsonText, space, (metadata, gap) => {
        const body = `{${gap}"metadata"${gap}:${gap}${metadata}${gap},"z":1}`;
        const { value } = parseJson(body, { raw: ['metadata'] });
        expect(stringifyJson(value)).toBe(`{"metadata":${metadata},"z":1}`);
      }),
    );
  });

  test('has a kind, a count of distinct keys and a length in bytes', () => {
    const texts = ['{}', '[]', '"a"', '1', '-1.5', 'true', 'false', 'null'];
    expect(texts.map((text) => parseRaw(text).kind)).toEqual([
      ...['object', 'array', 'string', 'number', 'number', 'boolean', 'boolean', 'null'],
    ]);
    const metadata = '{"é":1,"__proto__":2,"a":{"b":3}, "a":{ "b":3}}';
    const raw = parseRaw(metadata);
    expect([raw.keyCount, raw.byteLength]).toEqual([3, Buffer.byteLength(metadata)]);
    expect(parseRaw('[1,2]').keyCount).toBe(0);
  });

  test('stays raw only in the outermost object', () => {
    const { value } = parseJson('{"inner":{"metadata":{"a":1}}}', { raw: ['metadata'] });
    expect(value).toEqual({ inner: { metadata: { a: 1 } } });
  });
});

describe('a number', () => {
  test.each(['0', '1', '-1', '9007199254740991', '-9007199254740991'])(
    '%s is an integer',
    (text) => {
      expect(parseJson(text).value).toBe(Number(text));
    },
  );

  test.each(['10.0', '1e3', '1E0', '-0', '0.5', '9007199254740992', '-9007199254740992', '1e400'])(
    '%s is no integer and stays as written',
    (text) => {
      expect(parseJson(text).value).toEqual(new NumberLiteral(text));
      expect(stringifyJson({ amount: parseJson(text).value })).toBe(`{"amount":${text}}`);
    },
  );
});

describe('an object', () => {
  test('has __proto__ as a key like any other, and pollutes nothing', () => {
    const { value } = parseJson('{"__proto__":{"polluted":true}}');
    expect(Object.keys(Object(value))).toEqual(['__proto__']);
    expect(Object(value).polluted).toBeUndefined();
    expect(Reflect.get({}, 'polluted')).toBeUndefined();
    expect(stringifyJson(value)).toBe('{"__proto__":{"polluted":true}}');
  });

  test('may repeat a key with an equal value, which counts once', () => {
    const { value, canonical } = parseJson('{"a":{"x":1,"y":2},"\\u0061":{"y":2, "x":1}}');
    expect(value).toEqual({ a: { x: 1, y: 2 } });
    expect(canonical).toBe('{"a":{"x":1,"y":2}}');
  });
});

/** Writes a value otherwise: keys reversed, other white space, every letter escaped. */
function rewrite(value: JsonValue): string {
  if (value instanceof NumberLiteral) return value.text;
  if (Array.isArray(value)) return `[ ${value.map(rewrite).join(' ,\n')} ]`;
  if (typeof value === 'string') return escapeAll(value);
  if (value === null || typeof value !== 'object') return ` ${JSON.stringify(value)} `;
  const members = Object.entries(value).map(([key, item]) => `${escapeAll(key)} :${rewrite(item)}`);
  return `{\t${members.reverse().join(', ')}\r\n}`;
}

function escapeAll(text: string): string {
  const units = text.split('').map((unit) => unit.charCodeAt(0).toString(16).padStart(4, '0'));
  return `"${units.map((unit) => `\\u${unit}`).join('')}"`;
}

describe('the canonical text', () => {
  test('has sorted keys and no white space', () => {
    const { canonical } = parseJson(
      '{ "b" : [1, 2.0], "10": "\\u00e9\\/", "9": { "y":1, "x":null } }',
    );
    expect(canonical).toBe('{"10":"é/","9":{"x":null,"y":1},"b":[1,2.0]}');
  });

  test('is the same under any key order, white space and escaping', () => {
    fc.assert(
      fc.property(jsonText, (text) => {
        const { value, canonical } = parseJson(text);
        expect(parseJson(rewrite(value)).canonical).toBe(canonical);
        expect(parseJson(canonical).canonical).toBe(canonical);
      }),
    );
  });

  test('covers raw fields in the same way', () => {
    fc.assert(
      fc.property(jsonText, (metadata) => {
        const text = `{"metadata":${metadata}}`;
        expect(parseJson(text, { raw: ['metadata'] }).canonical).toBe(parseJson(text).canonical);
      }),
    );
  });

  test('differs when any value differs', () => {
    const empty = fc.constantFrom('null', 'true', '""', '[]', '{}');
    const leaf = fc.oneof(empty, numberText, stringText);
    fc.assert(
      fc.property(jsonText, leaf, leaf, fc.nat(), (around, left, right, depth) => {
        const canonicalize = (text: string) => parseJson(text).canonical;
        fc.pre(canonicalize(left) !== canonicalize(right));
        const wrap = (text: string) =>
          `${'{"in":['.repeat(depth % 5)}[${around},${text}]${']}'.repeat(depth % 5)}`;
        expect(canonicalize(wrap(left))).not.toBe(canonicalize(wrap(right)));
      }),
    );
  });
});

describe('writing', () => {
  test('equals JSON.stringify where no value is raw', () => {
    const when = new Date(Date.UTC(2026, 0, 2));
    const odd = { a: undefined, b: [undefined, () => 1], n: Number.NaN };
    const value = { ...odd, when, s: '\ud800"\u2028' };
    expect(stringifyJson(value)).toBe(JSON.stringify(value));
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: 'binary' }), (any) => {
        expect(stringifyJson(any)).toBe(JSON.stringify(any));
      }),
    );
  });

  test('refuses values without a JSON form', () => {
    expect(() => stringifyJson(undefined)).toThrow(TypeError);
    expect(() => stringifyJson({ amount: 1n })).toThrow(TypeError);
  });
});

describe('the limits of JSON', () => {
  describe('text that is refused', () => {
    test.each([
      ...['', ' \n', '{', '{"a":1,}', '[1,]', "{'a':1}", '{a:1}', '01', '+1', '.5', '1.', 'NaN'],
      ...['// c\n1', '1 /* c */', '\ufeff{}', '"\n"', '"\\x"', '{} {}', 'undefined', '"\\u12"'],
    ])('%j is not strict JSON', (text) => expect(() => parseJson(text)).toThrow(JsonSyntaxError));

    test('is not quoted in the message, which says where it goes wrong', () => {
      const read = () => parseJson('{"card_number":"4111111111111111" x}');
      expect(read).toThrow('position 34');
      expect(read).not.toThrow(/4111/);
    });

    test('is refused exactly when JSON.parse refuses it', () => {
      const snippet = fc.constantFrom(...'{}[]:,"\\01-.e tn/'.split(''), 'true', '"a"', 'null');
      fc.assert(
        fc.property(fc.array(snippet, { maxLength: 12 }), (snippets) => {
          const text = snippets.join('');
          let strict: unknown;
          try {
            strict = JSON.parse(text);
          } catch {
            expect(() => parseJson(text)).toThrow(JsonSyntaxError);
            return;
          }
          expect(JSON.parse(parseJson(text).canonical)).toEqual(strict);
        }),
        { numRuns: 2_000 },
      );
    });

    test.each([
      '{"amount":1,"amount":2}',
      '{"amount":1,"amount":1.0}',
      '{"amount":null,"\\u0061mount":{}}',
      '{"list":[{"deep":{"amount":1,"amount":"1"}}]}',
      '{"metadata":{"amount":1,"amount":2}}',
    ])('%s gives a key two values', (text) => {
      const read = () => parseJson(text, { raw: ['metadata'] });
      expect(read).toThrow(JsonSyntaxError);
      expect(read).toThrow('"amount"');
    });
  });

  describe('nesting', () => {
    const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);

    test('is read up to the limit and refused past it', () => {
      expect(parseJson(nested(JSON_DEPTH_MAX)).canonical).toBe(nested(JSON_DEPTH_MAX));
      expect(() => parseJson(nested(JSON_DEPTH_MAX + 1))).toThrow(JsonSyntaxError);
      expect(() => parseJson('{"a":[1]}', { depthMax: 1 })).toThrow(JsonSyntaxError);
      expect(parseJson('["[[[[", "\\"[["]', { depthMax: 1 }).value).toEqual(['[[[[', '"[[']);
    });

    test.each([
      ['open arrays', '['.repeat(65_536)],
      ['open objects', '{"a":'.repeat(13_000)],
      ['closed arrays', nested(32_768)],
      ['open strings', '"'.repeat(65_535)],
      ['commas', `[${','.repeat(65_000)}]`],
      ['broken objects', `[${'{"a" 1}'.repeat(9_000)}]`],
      ['colons in an object', `{${':'.repeat(65_000)}}`],
      ['bad escapes', `"${'\\x'.repeat(32_000)}"`],
      ['comments', '/*'.repeat(32_000)],
      ['closers', ']'.repeat(65_536)],
      ['a long number', `${'9'.repeat(65_000)}x`],
      ['one key 7,000 times, differently', `{${'"a":1,'.repeat(7_000)}"a":2}`],
    ])('of 64 KiB of %s is refused, quickly', (_, text) => {
      const refuse = () => expect(() => parseJson(text)).toThrow(JsonSyntaxError);
      expect(leastCpuMs(refuse)).toBeLessThan(1_000);
    });

    const valued = (text: string, valuesMax: number) => () => parseJson(text, { valuesMax });

    const countValues = (value: unknown): number =>
      typeof value === 'object' && value !== null
        ? Object.values(value).reduce<number>((sum, item) => sum + countValues(item), 1)
        : 1;

    test('is counted in values as JSON.parse finds them', () => {
      fc.assert(
        fc.property(fc.json(), (text) => {
          const count = countValues(JSON.parse(text));
          expect(valued(text, count)).not.toThrow();
          expect(valued(text, count - 1)).toThrow(JsonSyntaxError);
        }),
      );
    });

    test('in a raw field counts for the limit of all values, and not for that of the others', () => {
      const limits = { raw: ['m'], valuesMax: 12, ownValuesMax: 3 };
      const parse = (text: string) => () => parseJson(text, limits);
      const raw = '"m":[1,{"x":[2]},"m"]';
      for (const text of [`{"a":"m",${raw},"b":2}`, `{${raw},"a":1}`])
        expect(parse(text)).not.toThrow();
      for (const text of [`{"a":1,${raw},"b":2,"c":3}`, `{${raw},"a":{"m":[1]}}`]) {
        expect(parse(text)).toThrow('More than 3 values.');
      }
      expect(parse('{"m":[1,2,3,4,5,6,7,8,9,10,11]}')).toThrow('More than 12 values.');
    });

    test('of too many values is refused before they are read, at any depth', () => {
      const body = `[${Array.from({ length: 160 }, () => nested(199)).join()}]`;
      const refuse = () => expect(valued(body, 5_000)).toThrow('More than 5000 values.');
      expect(leastCpuMs(refuse)).toBeLessThan(500);
    });

    const keys = `{${Array.from({ length: 10_000 }, (_, i) => `"${i}":1`).join()}}`;
    const nestedText = `${'['.repeat(199)}"${'é'.repeat(60_000)}"${']'.repeat(199)}`;
    const items = `[${'1,'.repeat(32_000)}1]`;

    test.each([
      ['10,000 keys', keys, keys],
      ['one long string under 199 arrays', nestedText, nestedText],
      ['a number of 65,000 digits', '9'.repeat(65_000), '9'.repeat(65_000)],
      ['32,000 items', items, items],
      ['escapes', `"${'\\u0041'.repeat(10_000)}"`, `"${'A'.repeat(10_000)}"`],
      ['white space', `${' '.repeat(65_000)}1`, '1'],
    ])('or width of 64 KiB with %s is read whole, quickly', (_, text, read) => {
      // Compared by `===`: a report of the difference would be as long as the texts.
      const readWhole = () => expect(stringifyJson(parseJson(text).value) === read).toBe(true);
      expect(leastCpuMs(readWhole)).toBeLessThan(1_000);
    });
  });
});
