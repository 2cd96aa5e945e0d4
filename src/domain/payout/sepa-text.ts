/** Latin set of the European Payments Council. @see docs/sepa.md#text */
const LATIN = /^[A-Za-z0-9/?:().,'+ -]*$/;

/** Other letters lose their accents. @see docs/sepa.md#text */
const LETTERS: Readonly<Record<string, string>> = {
  ...{ ß: 'ss', ẞ: 'SS', æ: 'ae', Æ: 'AE', œ: 'oe', Œ: 'OE', ø: 'o', Ø: 'O', ł: 'l', Ł: 'L' },
  ...{ đ: 'd', Đ: 'D', ð: 'd', Ð: 'D', þ: 'th', Þ: 'TH', ħ: 'h', Ħ: 'H', ı: 'i', ŧ: 't', Ŧ: 'T' },
  ...{ _: '-', '–': '-', '—': '-', '&': '+', '#': '.', ';': ',', '\\': '/', '|': '/' },
  ...{ '’': "'", '‘': "'", '´': "'", '`': "'", '[': '(', '{': '(', ']': ')', '}': ')' },
};

/** Limits of a SEPA transfer. */
const LENGTHS_MAX = { address_line1: 70, city: 35, postal_code: 16, reference: 140 } as const;
const NAME_LENGTH_MAX = 70;

type SepaField = keyof typeof LENGTHS_MAX | 'first_name' | 'last_name';

/** Never contains the text. */
export interface SepaFault {
  field: SepaField;
  code: 'characters_not_supported' | 'too_long';
}

const MESSAGES: Record<SepaFault['code'], string> = {
  characters_not_supported: 'has characters that a SEPA transfer cannot carry',
  too_long: 'is longer than a SEPA transfer can carry',
};

export function describeSepaFault({ code }: SepaFault): string {
  return MESSAGES[code];
}

/** Leaves characters that have no Latin form. */
export function toLatin(text: string): string {
  const plain = text.normalize('NFD').replace(/\p{Mn}/gu, '');
  return [...plain].map((letter) => LETTERS[letter] ?? letter).join('');
}

export function joinName({ first_name, last_name }: FullName): string {
  return `${toLatin(first_name).trim()} ${toLatin(last_name).trim()}`;
}

interface FullName {
  first_name: string;
  last_name: string;
}

interface Address {
  address_line1: string | null;
  city: string | null;
  postal_code: string | null;
  country: string | null;
}

/** An address is sent only with a country. */
export function findSepaFaults(details: FullName & Address): SepaFault[] {
  const names = (['first_name', 'last_name'] as const).flatMap((field) =>
    findFaults(field, details[field], NAME_LENGTH_MAX),
  );
  const isLong = names.length === 0 && joinName(details).length > NAME_LENGTH_MAX;
  const address = (['address_line1', 'city', 'postal_code'] as const).flatMap((field) =>
    findFaults(field, details.country === null ? null : details[field], LENGTHS_MAX[field]),
  );
  const tooLong: SepaFault = { field: 'last_name', code: 'too_long' };
  return [...names, ...(isLong ? [tooLong] : []), ...address];
}

export function findReferenceFaults(reference: string | null): SepaFault[] {
  return findFaults('reference', reference, LENGTHS_MAX.reference);
}

function findFaults(field: SepaField, text: string | null, lengthMax: number): SepaFault[] {
  const latin = toLatin(text ?? '').trim();
  return [
    ...(LATIN.test(latin) ? [] : [{ field, code: 'characters_not_supported' } as const]),
    ...(latin.length > lengthMax ? [{ field, code: 'too_long' } as const] : []),
  ];
}
