import { LANGUAGE_CODES, TEXTS } from '../../../src/pages/texts';
import { en } from '../../../src/pages/texts/en';
import { fillText } from '../../../src/pages/texts/texts';

/** Texts by their path, such as `notice.taken.title`. */
function flatten(texts: object, path = ''): [path: string, text: string][] {
  return Object.entries(texts).flatMap(([name, value]): [string, string][] =>
    typeof value === 'string' ? [[`${path}${name}`, value]] : flatten(value, `${path}${name}.`),
  );
}

const placeholders = (text: string) => (text.match(/\{\w*\}/g) ?? []).toSorted();

const english = flatten(en);
const others = LANGUAGE_CODES.filter((code) => code !== 'en');

test('there are eight languages, each with its own name', () => {
  expect(Object.keys(TEXTS)).toEqual([...LANGUAGE_CODES]);
  const names = LANGUAGE_CODES.map((code) => TEXTS[code].name);
  expect(new Set(names).size).toBe(8);
  expect(names).toEqual(names.toSorted((a, b) => a.localeCompare(b, 'en')));
});

describe.each(others)('the texts in %s', (code) => {
  const texts = new Map(flatten(TEXTS[code]));

  it('are complete, with the placeholders of the English ones', () => {
    expect([...texts.keys()]).toEqual(english.map(([path]) => path));
    const differing = english.filter(
      ([path, text]) => `${placeholders(text)}` !== `${placeholders(texts.get(path) ?? '')}`,
    );
    expect(differing).toEqual([]);
  });

  it('are not left in English', () => {
    const left = english.filter(([path, text]) => texts.get(path) === text).map(([path]) => path);
    expect(left).toEqual([]);
  });

  it('end as the English ones do', () => {
    const end = (text: string) => /[.…]$/.exec(text)?.[0];
    const differing = english.filter(([path, text]) => end(text) !== end(texts.get(path) ?? ''));
    expect(differing).toEqual([]);
  });
});

test.each(LANGUAGE_CODES)('no text in %s is empty, untidy, or has straight quotes', (code) => {
  const faulty = flatten(TEXTS[code]).filter(
    ([, text]) => text === '' || text !== text.trim() || /['"]| {2}|\.\.\./.test(text),
  );
  expect(faulty).toEqual([]);
});

test('a text is never shown with a placeholder that nothing fills', () => {
  expect(fillText('Pay {amount} to {merchant}', { amount: '€1', merchant: '{amount}' })).toBe(
    'Pay €1 to {amount}',
  );
  expect(() => fillText('Pay {amount}', {})).toThrow('No value for {amount}');
});
