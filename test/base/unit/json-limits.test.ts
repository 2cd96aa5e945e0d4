import fc from 'fast-check';
import { JSON_DEPTH_MAX, JsonSyntaxError, parseJson } from '../../../src/base/json';
import { stringifyJson } from '../../../src/base/json-write';
import { leastCpuMs } from '../../support/cpu-time';

describe('text that is refused', () => {
  test.each([
    '',
    ' \n',
    '{',
    '{"a":1,}',
    '[1,]',
    "{'a':1}",
    '{a:1}',
    '01',
    '+1',
    '.5',
    '1.',
    'NaN',
  ])('%j is not JSON', (text) => expect(() => parseJson(text)).toThrow(JsonSyntaxError));

  test.each(['// c\n1', '1 /* c */', '\ufeff{}', '"\n"', '"\\x"', '{} {}', 'undefined', '"\\u12"'])(
    '%j is not strict JSON',
    (text) => expect(() => parseJson(text)).toThrow(JsonSyntaxError),
  );

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

  test.each([
    ['1', 1],
    ['[]', 1],
    ['{ }', 1],
    ['[[],[ ]]', 3],
    ['[1,"a,b]",null]', 4],
    ['{"a":{"b":[true,{}]},"c":"\\"{[,"}', 6],
    [`{"metadata":[${'0,'.repeat(3_999)}0]}`, 4_002],
    [nested(40), 40],
  ])('values are counted, containers too: %s', (text, count) => {
    expect(valued(text, count)).not.toThrow();
    expect(valued(text, count - 1)).toThrow(`More than ${count - 1} values.`);
  });

  const countValues = (value: unknown): number =>
    typeof value === 'object' && value !== null
      ? Object.values(value).reduce<number>((sum, item) => sum + countValues(item), 1)
      : 1;

  test('as many as JSON.parse finds', () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        const count = countValues(JSON.parse(text));
        expect(valued(text, count)).not.toThrow();
        expect(valued(text, count - 1)).toThrow(JsonSyntaxError);
      }),
    );
  });

  test('too many are refused before they are read, at any depth', () => {
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
