import { readText } from './pages';

/** Number of requirements of levels 1 and 2 in each section of ASVS 5.0.0. */
const REQUIREMENTS: Record<string, number> = {
  ...{ '1.1': 2, '1.2': 9, '1.3': 11, '1.4': 3, '1.5': 2 },
  ...{ '2.1': 3, '2.2': 3, '2.3': 4, '2.4': 1 },
  ...{ '3.2': 2, '3.3': 4, '3.4': 6, '3.5': 5, '3.7': 2 },
  ...{ '4.1': 3, '4.2': 1, '4.3': 2, '4.4': 4 },
  ...{ '5.1': 1, '5.2': 3, '5.3': 2, '5.4': 3 },
  ...{ '6.1': 3, '6.2': 12, '6.3': 4, '6.4': 4, '6.5': 5, '6.6': 3, '6.8': 4 },
  ...{ '7.1': 3, '7.2': 4, '7.3': 2, '7.4': 5, '7.5': 2, '7.6': 2 },
  ...{ '8.1': 2, '8.2': 3, '8.3': 1, '8.4': 1 },
  ...{ '9.1': 3, '9.2': 4 },
  ...{ '10.1': 2, '10.2': 2, '10.3': 4, '10.4': 11, '10.5': 5, '10.6': 2, '10.7': 3 },
  ...{ '11.1': 2, '11.2': 3, '11.3': 3, '11.4': 4, '11.5': 1, '11.6': 1 },
  ...{ '12.1': 3, '12.2': 2, '12.3': 4 },
  ...{ '13.1': 1, '13.2': 5, '13.3': 2, '13.4': 5 },
  ...{ '14.1': 2, '14.2': 4, '14.3': 3 },
  ...{ '15.1': 3, '15.2': 3, '15.3': 7 },
  ...{ '16.1': 1, '16.2': 5, '16.3': 4, '16.4': 3, '16.5': 3 },
  ...{ '17.1': 1, '17.2': 4, '17.3': 2 },
};

const NUMBERS = String.raw`(?:\d+\.)*\d+(?:–\d+)?(?:, (?:\d+\.)*\d+(?:–\d+)?)*`;

/** Lists the requirements of a section, or of a whole chapter. */
function listAll(name: string): string[] {
  const sections = Object.entries(REQUIREMENTS).filter(
    ([section]) => section === name || section.startsWith(`${name}.`),
  );
  return sections.flatMap(([section, count]) => listRange(section, '1', String(count)));
}

/** Reads `1–3, 5`, `6.3.1, 4` or `4.3, 10`; a number alone belongs to the section before it. */
function expand(numbers: string, section?: string): string[] {
  let current = section;
  return numbers.split(', ').flatMap((text) => {
    const [, name = '', first = '', last = first] =
      /^((?:\d+\.)*)(\d+)(?:–(\d+))?$/.exec(text) ?? [];
    const parts = name.split('.').length;
    if (parts === 3) current = name.slice(0, -1);
    if (parts === 2 || current === undefined) return listAll(`${name}${first}`);
    return listRange(current, first, last);
  });
}

function listRange(prefix: string, first: string, last: string): string[] {
  const length = Number(last) - Number(first) + 1;
  return Array.from({ length }, (_, index) => `${prefix}.${Number(first) + index}`);
}

/** Sections that a row names: `6.1`, `12.1, 12.3` or `5.1–5.3`. */
function readSections(text: string): string[] {
  return [...text.matchAll(/(\d+)\.(\d+)(?:–\d+\.(\d+))?/g)].flatMap(
    ([, chapter, first = '', last = first]) => listRange(`${chapter}`, first, last),
  );
}

/** Requirements of a row's cells, each before its place or its reason. */
function readRow([, head = '', ...cells]: string[]): string[] {
  const sections = readSections(head);
  const [section] = sections;
  return cells.flatMap((cell) => [
    ...(/^ all(?: else)?:/.test(cell) ? sections.flatMap(listAll) : []),
    ...[...cell.matchAll(new RegExp(String.raw`(?:^ |[.;] )(${NUMBERS})(?=:| \()`, 'g'))].flatMap(
      ([, numbers = '']) => expand(numbers, section),
    ),
  ]);
}

test('the table of ASVS names each requirement of levels 1 and 2, and no other', () => {
  const page = readText('docs/asvs.md');
  const rows = [...page.matchAll(/^\| \d.*\|$/gm)].map(([line]) => line.split('|').slice(0, -1));
  const [, unused = ''] = /\nNot used: ([\s\S]*)$/.exec(page) ?? [];
  const inBrackets = [...unused.replaceAll('\n', ' ').matchAll(/\(([^)]*)\)/g)];
  const named = [
    ...rows.flatMap(readRow),
    ...inBrackets.flatMap(([, text = '']) => expand(text.replace(/:.*$/, ''))),
  ];
  const all = Object.keys(REQUIREMENTS).flatMap(listAll);
  expect(all.filter((each) => !named.includes(each))).toEqual([]);
  expect(named.filter((each) => !all.includes(each))).toEqual([]);
});
