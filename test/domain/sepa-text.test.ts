import fc from 'fast-check';
import {
  findReferenceFaults,
  findSepaFaults,
  joinName,
  toLatin,
} from '../../src/domain/payout/sepa-text';

const NAME = { first_name: 'Ada', last_name: 'Lovelace' };
const ADDRESS = { address_line1: '12 Long Lane', city: 'London', postal_code: 'EC1A 9PT' };
const nowhere = { address_line1: null, city: null, postal_code: null, country: null };

test.each([
  ['Müller-Lüdenscheidt', 'Muller-Ludenscheidt'],
  ['Weiß', 'Weiss'],
  ['Łódź', 'Lodz'],
  ['Øre Æbelø', 'Ore AEbelo'],
  ["O'Brien", "O'Brien"],
  ['A_B–C—D', 'A-B-C-D'],
  ['R&D #4; ’a‘ ´b`', "R+D .4, 'a' 'b'"],
  ['[a] {b} c\\d|e', '(a) (b) c/d/e'],
])('"%s" is written as "%s" in SEPA files', (text, latin) => {
  expect(toLatin(text)).toBe(latin);
});

test('a name with accents is valid, and is joined in Latin letters', () => {
  const name = { first_name: ' Zoë ', last_name: 'Ångström' };
  expect(findSepaFaults({ ...name, ...nowhere })).toEqual([]);
  expect(joinName(name)).toBe('Zoe Angstrom');
});

test.each([
  ['first_name', 'Анна'],
  ['first_name', 'Ada @ Eve'],
  ['last_name', 'Love<lace'],
  ['last_name', 'Love\u0001lace'],
  ['last_name', '李'],
])('%s "%s" is refused, since no transfer carries its characters', (field, text) => {
  const faults = findSepaFaults({ ...NAME, [field]: text, ...nowhere });
  expect(faults).toEqual([{ field, code: 'characters_not_supported' }]);
});

test('first and last name together may have 70 characters, a reference 140, and ß counts twice', () => {
  const name = (length: number) => ({ first_name: 'A'.repeat(34), last_name: 'B'.repeat(length) });
  expect(findSepaFaults({ ...name(35), ...nowhere })).toEqual([]);
  const faults = findSepaFaults({ ...name(36), ...nowhere });
  expect(faults).toEqual([{ field: 'last_name', code: 'too_long' }]);
  expect(findReferenceFaults('ß'.repeat(70))).toEqual([]);
  expect(findReferenceFaults(`${'ß'.repeat(69)}&æ`)).toMatchObject([{ code: 'too_long' }]);
  expect(findReferenceFaults('ß'.repeat(71))).toEqual([{ field: 'reference', code: 'too_long' }]);
});

test('an address is checked only with a country, since it is not sent without one', () => {
  const long = { ...ADDRESS, city: 'C'.repeat(36), postal_code: '1'.repeat(17) };
  expect(findSepaFaults({ ...NAME, ...long, country: null })).toEqual([]);
  expect(findSepaFaults({ ...NAME, ...long, country: 'GB' })).toEqual([
    { field: 'city', code: 'too_long' },
    { field: 'postal_code', code: 'too_long' },
  ]);
});

test.each([
  ['x'.repeat(141), ['too_long']],
  ['10 €', ['characters_not_supported']],
  ['line\nbreak', ['characters_not_supported']],
  [null, []],
])('the reference %j has the faults %j', (reference, codes) => {
  expect(findReferenceFaults(reference).map(({ code }) => code)).toEqual(codes);
});

test.each([...'!"$%*=~^<>@€§•…“\u00a0\u2010\u200b'])('a reference with %j is refused', (sign) => {
  expect(findReferenceFaults(`a${sign}b`)).toMatchObject([{ code: 'characters_not_supported' }]);
});

test('a text has a fault exactly when it cannot be written in Latin letters', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (text) => {
      const isLatin = /^[A-Za-z0-9/?:().,'+ -]*$/.test(toLatin(text).trim());
      const codes = findReferenceFaults(text).map(({ code }) => code);
      expect(codes.includes('characters_not_supported')).toBe(!isLatin);
    }),
  );
});
