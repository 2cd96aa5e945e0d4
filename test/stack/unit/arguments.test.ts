import { readArguments } from '../../../stack/arguments';

test('without words nothing is asked for', () => {
  expect(readArguments([])).toEqual({ help: false, watch: false });
});

test.each([
  { words: ['--inspect', 'worker'], part: 'worker', port: 9229 },
  { words: ['--inspect=api'], part: 'api', port: 9229 },
  { words: ['--inspect', 'sandbox_bank:9300'], part: 'sandbox_bank', port: 9300 },
])('$words opens $part on port $port', ({ words, part, port }) => {
  expect(readArguments(words)).toMatchObject({ inspect: { part, port } });
});

test.each([
  {
    words: ['--inspect', 'mongodb'],
    says: '--inspect mongodb: it takes api, worker, sandbox_bank',
  },
  { words: ['--inspect', 'worker:0'], says: '--inspect worker:0: it takes' },
  { words: ['--inspect', 'worker:99999'], says: '--inspect worker:99999: it takes' },
  { words: ['--inspect', 'worker:'], says: '--inspect worker:: it takes' },
  { words: ['--inspect'], says: 'argument missing' },
  { words: ['--port', '80'], says: "Unknown option '--port'" },
  { words: ['api'], says: "Unexpected argument 'api'" },
])('$words is refused in words', ({ words, says }) => {
  expect(() => readArguments(words)).toThrow(says);
});
