import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { z } from 'zod';
import { EvmSettings } from '../../connectors/evm/config';
import { httpSettings } from '../../connectors/http/definition';
import { fill } from '../../docs/generate/blocks';
import { blocksByPage } from '../../docs/generate/pages';
import { createContext } from '../../src/cli/context';
import { createProgram } from '../../src/cli/program';
import {
  COMMON_REMEDIES,
  FINDING_REMEDIES,
  listRows,
  REMEDIES,
  type Remedy,
} from '../../src/domain/operators/remedies';
import { KINDS, RESOURCES } from '../../src/domain/resources';
import { WRITES } from '../../src/service/installation/database';
import { LIBRARIES, LIBRARY_VARIABLES } from '../../src/variables';
import { listFields, listVariables, USAGE } from '../../stack/usage';
import { runbooks } from '../support/monitoring';
import { filesEndingIn, listAnchors, ROOT, readProse, readText } from './pages';

test('the documented backup has the databases, and no file with a secret; a restore replaces them if it can read the archive', () => {
  const [backup, restore] = [/```sh\n(tar .+)\n```/, /```sh\n(.+ tar -x.+)\n```/].map(
    (command) => command.exec(readText('docs/operations.md'))?.[1],
  );
  const folder = mkdtempSync(join(tmpdir(), 'backup-'));
  const write = (name: string) => {
    mkdirSync(dirname(join(folder, '.data', name)), { recursive: true });
    writeFileSync(join(folder, '.data', name), name);
  };
  const sh = (script: string) =>
    spawnSync('sh', ['-ec', script], { cwd: folder, encoding: 'utf8' }).stdout.split('\n');
  const secrets = ['keys.json', 'keys/recipients.live.json', 'mongodb-login.json', 'mongodb.key'];
  const others = ['demo-account.json', 'stack.json', 'connectors/evm.json', 'logs/api.log'];
  const databases = ['version', 'mongodb/WiredTiger', 'temporal/temporal.db'];
  const all = [...secrets, ...others, ...databases];
  for (const name of all) write(name);
  const packed = sh(`${backup} && tar -tf backup.tgz`).filter((name) => /[^/]$/.test(name));
  expect(packed.sort()).toEqual(databases.map((name) => `.data/${name}`).sort());
  for (const name of ['mongodb/journal/WiredTigerLog.2', 'temporal/temporal.db-wal']) write(name);
  const restored = sh(`${restore} && find .data -type f`).filter((name) => name !== '');
  expect(restored.sort()).toEqual(all.map((name) => `.data/${name}`).sort());
  truncateSync(join(folder, 'backup.tgz'), 100);
  expect(sh(`${restore}; find .data -type f`).sort()).toEqual(['', ...restored]);
  rmSync(folder, { recursive: true });
});

describe('the links', () => {
  const PAGES = filesEndingIn('.md');
  const CODE = filesEndingIn('.ts', '.tsx', '.mjs');

  /** A path in code, without patterns such as `{payment,refund}` or `*`. */
  const PATH =
    /`((?:src|workflows|activities|connectors|worker|stack|bench|docs|test)\/[\w./-]+)`/g;

  interface Link {
    page: string;
    target: string;
  }

  /** Links from pages to files, headings and pictures of the project, without the web. */
  const LINKS: Link[] = PAGES.flatMap((page) =>
    [...readProse(page).matchAll(/\]\(([^)\s]+)\)/g)]
      .map(([, target = '']) => ({ page, target }))
      .filter(({ target }) => !/^[a-z]+:/.test(target)),
  );

  function leadsSomewhere({ page, target }: Link): boolean {
    const [path = '', anchor] = target.split('#');
    const file = path === '' ? page : join(dirname(page), path);
    if (!existsSync(join(ROOT, file))) return false;
    return anchor === undefined || listAnchors(file).includes(anchor);
  }

  test('every link of a page leads to a file, and to a heading where it names one', () => {
    expect(LINKS.length).toBeGreaterThan(30);
    expect(LINKS.filter((link) => !leadsSomewhere(link))).toEqual([]);
    for (const target of ['nowhere.md', '#nowhere', 'webhooks.md#nowhere']) {
      expect(leadsSomewhere({ page: 'docs/api.md', target })).toBe(false);
    }
  });

  test('the page of alerts has one heading for each alert, to which the alert links', () => {
    const links = runbooks().map(({ alert, page, anchor }) => [alert, `${page}#${anchor}`]);
    const headings = readProse('docs/alerts.md').match(/^### .+$/gm) ?? [];
    const alerts = headings.map((heading) => heading.replace('### ', ''));
    expect(alerts.length).toBeGreaterThan(30);
    expect(links.toSorted()).toEqual(
      alerts.toSorted().map((alert) => [alert, `docs/alerts.md#${alert.toLowerCase()}`]),
    );
  });

  test('every picture is shown on a page, and all of them stay small', () => {
    const pictures = readdirSync(join(ROOT, 'docs/images'));
    const shown = new Set(LINKS.map(({ target }) => target.replace('docs/', '')));
    expect(pictures.filter((name) => !shown.has(`images/${name}`))).toEqual([]);
    const sizes = pictures.map((name) => statSync(join(ROOT, 'docs/images', name)).size);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(1_500_000);
  });

  // Each version of the changelog has the same headings.
  test.each(PAGES.filter((page) => page !== 'CHANGELOG.md'))(
    'no two headings of %s have the same anchor',
    (page) => {
      expect(listAnchors(page).filter((anchor) => /-\d+$/.test(anchor))).toEqual([]);
    },
  );

  test('every file that the docs name exists', () => {
    const paths = PAGES.flatMap((page) =>
      [...readProse(page).matchAll(PATH)].map(([, path]) => path),
    );
    expect(paths.length).toBeGreaterThan(30);
    expect(paths.filter((path = '') => !existsSync(join(ROOT, path)))).toEqual([]);
  });

  test('every heading that the code cites exists', () => {
    const cited = CODE.flatMap((path) =>
      [...readText(path).matchAll(/\bdocs\/([\w-]+\.md#[\w-]+)/g)].map(([, target = '']) => target),
    );
    expect(cited.length).toBeGreaterThan(100);
    const isBroken = (target: string) => !leadsSomewhere({ page: 'docs/api.md', target });
    const broken = [...new Set(cited)].filter(isBroken);
    expect(broken).toEqual([]);
  });

  test('the list of recorded histories names every file of their folder, and no other', () => {
    const listed = readText('test/replay/README.md').matchAll(
      /`((?:payment|refund|payout|dispute|webhook|crypto|schedule|clock)-[\w-]+)`/g,
    );
    const files = readdirSync(join(ROOT, 'test/replay/histories'));
    expect([...listed].map(([, name]) => name).sort()).toEqual(
      files.map((name) => basename(name, '.json')).sort(),
    );
  });
});

describe('what is generated', () => {
  describe('generated blocks of a page', () => {
    const PAGE = 'a\n<!-- generated: x -->\nold\n<!-- end -->\nb\n';

    test.each(Object.entries(blocksByPage()))(
      'in %s have the text that the code generates: else run `npm run docs`',
      (page, blocks) => {
        expect(readText(page)).toBe(fill(readText(page), blocks));
        for (const block of Object.values(blocks)) expect(block.length).toBeGreaterThan(40);
      },
    );

    test('are replaced between their markers, and each block needs its place', () => {
      const filled = 'a\n<!-- generated: x -->\n\nnew\n\n<!-- end -->\nb\n';
      for (const page of [PAGE, filled]) expect(fill(page, { x: 'new' })).toBe(filled);
      expect(() => fill(PAGE, { x: 'new', y: 'new' })).toThrow('no place for y');
      expect(() => fill(PAGE, {})).toThrow('Nothing makes the block "x"');
    });
  });

  describe('the variables of the environment', () => {
    const variables = listVariables();

    test('are at most 56 without those of libraries, and each has a description', () => {
      const own = variables.filter(({ name }) => !(name in LIBRARIES));
      expect(own.length).toBeLessThanOrEqual(56);
      const settings = [...listFields(EvmSettings), ...listFields(z.object(httpSettings))];
      const all = [...variables, ...settings];
      expect(all.filter(({ description }) => description === '')).toEqual([]);
    });

    test('of a library are described with the others of their library', () => {
      const prefixes = Object.keys(LIBRARIES).map((name) => name.replace('*', ''));
      const names = Object.keys(LIBRARY_VARIABLES.shape);
      expect(names.filter((name) => !prefixes.some((each) => name.startsWith(each)))).toEqual([]);
    });

    test('are listed by --help where the launcher applies them, and no others are', () => {
      const listed = [...USAGE.matchAll(/^ {2}([A-Z_*]+) +\S/gm)].map(([, name]) => name);
      const applied = variables.filter(({ isLauncher }) => !isLauncher);
      expect(listed).toEqual(applied.map(({ name }) => name));
    });
  });

  /** Collections without personal data. */
  const IMPERSONAL = [
    ...['api_keys', 'approval_limits', 'audit_heads', 'bank_accounts', 'brand_logos'],
    ...['connector_capabilities', 'connector_keys', 'event_orders', 'events', 'ledger_books'],
    ...['ledger_checkpoints', 'ledger_checks', 'journal_entries', 'entry_states', 'payout_days'],
    ...['ledger_verified', 'mail_settings', 'sandbox_reports', 'schedule_runs', 'service_epoch'],
    ...['statements', 'webhook_endpoints', 'worker_heartbeats'],
  ];

  test('the table of personal data names every collection that has some, and no other', () => {
    const [, section = ''] =
      /\n## Personal data\n([\s\S]*?)\n## /.exec(readText('docs/operations.md')) ?? [];
    const cells = [...section.matchAll(/^\|[^|]*\|([^|]*)\|/gm)].map(([, cell = '']) => cell);
    const names = cells.flatMap((cell) => [
      ...[...cell.matchAll(/`([a-z_]+)`/g)].map(([, name = '']) => name),
      ...(cell.includes('with the resource')
        ? KINDS.map((kind) => RESOURCES[kind].collection)
        : []),
    ]);
    expect(names.length).toBeGreaterThan(0);
    const all = [...new Set(names), ...IMPERSONAL];
    expect(all.toSorted()).toEqual(Object.keys(WRITES).toSorted());
  });
});

test('no file has a word that the glossary avoids, and CONTRIBUTING lists each that it recommends', () => {
  const texts = [
    ['a.ts', `const ${'seal'}edSecret = 1;`],
    ['a.md', `A caller is ${'to'}ld.`],
    ['a.ts', "const dispute = row['clawed_back'];"],
  ];
  // The tool is an ES module.
  const tool = pathToFileURL(join(ROOT, 'tools/glossary.mjs')).href;
  const code = `import('${tool}').then(({ findAll, checkText, GLOSSARY }) => {
    const checked = ${JSON.stringify(texts)}.map((text) => checkText(...text));
    const words = GLOSSARY.map(({ write }) => write);
    console.log(JSON.stringify({ all: findAll(), checked, words }));
  })`;
  const run = spawnSync(process.execPath, ['-e', code], { cwd: ROOT, encoding: 'utf8' });
  expect(run.stderr).toBe('');
  const { all, checked, words }: { all: []; checked: []; words: string[] } = JSON.parse(run.stdout);
  expect(all).toEqual([]);
  expect(checked).toMatchObject([
    [{ line: 1, word: `${'seal'}edSecret` }],
    [{ line: 1, word: `${'to'}ld` }],
    [],
  ]);
  const page = readText('CONTRIBUTING.md');
  expect(words.filter((word) => !page.includes(`| ${word} |`))).toEqual([]);
});

describe('the controls of ASVS', () => {
  /** Number of requirements of levels 1 and 2 in each section of ASVS 5.0.0. */
  const SECTIONS = new Map(
    `1.1: 2, 1.2: 9, 1.3: 11, 1.4: 3, 1.5: 2, 2.1: 3, 2.2: 3, 2.3: 4, 2.4: 1, 3.2: 2, 3.3: 4, 3.4: 6,
    3.5: 5, 3.7: 2, 4.1: 3, 4.2: 1, 4.3: 2, 4.4: 4, 5.1: 1, 5.2: 3, 5.3: 2, 5.4: 3, 6.1: 3, 6.2: 12,
    6.3: 4, 6.4: 4, 6.5: 5, 6.6: 3, 6.8: 4, 7.1: 3, 7.2: 4, 7.3: 2, 7.4: 5, 7.5: 2, 7.6: 2, 8.1: 2,
    8.2: 3, 8.3: 1, 8.4: 1, 9.1: 3, 9.2: 4, 10.1: 2, 10.2: 2, 10.3: 4, 10.4: 11, 10.5: 5, 10.6: 2,
    10.7: 3, 11.1: 2, 11.2: 3, 11.3: 3, 11.4: 4, 11.5: 1, 11.6: 1, 12.1: 3, 12.2: 2, 12.3: 4, 13.1: 1,
    13.2: 5, 13.3: 2, 13.4: 5, 14.1: 2, 14.2: 4, 14.3: 3, 15.1: 3, 15.2: 3, 15.3: 7, 16.1: 1, 16.2: 5,
    16.3: 4, 16.4: 3, 16.5: 3, 17.1: 1, 17.2: 4, 17.3: 2`
      .split(/,\s+/)
      .map((each) => [each.split(': ')[0] ?? '', each.split(': ')[1] ?? ''] as const),
  );

  const NUMBERS = String.raw`(?:\d+\.)*\d+(?:–\d+)?(?:, (?:\d+\.)*\d+(?:–\d+)?)*`;

  function listRange(prefix: string, first: string, last: string): string[] {
    const length = Number(last) - Number(first) + 1;
    return Array.from({ length }, (_, index) => `${prefix}.${Number(first) + index}`);
  }

  /** Lists the requirements of a section, or of a whole chapter. */
  const listAll = (name: string): string[] =>
    [...SECTIONS]
      .filter(([section]) => section === name || section.startsWith(`${name}.`))
      .flatMap(([section, count]) => listRange(section, '1', count));

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

  /** Requirements of a row's cells, each before its place or its reason; the first names sections. */
  function readRow([, head = '', ...cells]: string[]): string[] {
    const sections = [...head.matchAll(/(\d+)\.(\d+)(?:–\d+\.(\d+))?/g)].flatMap(
      ([, chapter = '', first = '', last = first]) => listRange(chapter, first, last),
    );
    return cells.flatMap((cell) => [
      ...(/^ all(?: else)?:/.test(cell) ? sections.flatMap(listAll) : []),
      ...[...cell.matchAll(new RegExp(String.raw`(?:^ |[.;] )(${NUMBERS})(?=:| \()`, 'g'))].flatMap(
        ([, numbers = '']) => expand(numbers, sections[0]),
      ),
    ]);
  }

  const [page = '', third = ''] = readText('docs/asvs.md').split('## The third level');

  test('the table of ASVS names each requirement of levels 1 and 2, and no other', () => {
    const rows = [...page.matchAll(/^\| \d.*\|$/gm)].map(([line]) => line.split('|').slice(0, -1));
    const [, unused = ''] = /\nNot used: ([\s\S]*)$/.exec(page) ?? [];
    const inBrackets = [...unused.replaceAll('\n', ' ').matchAll(/\(([^)]*)\)/g)];
    const named = [
      ...rows.flatMap(readRow),
      ...inBrackets.flatMap(([, text = '']) => expand(text.replace(/:.*$/, ''))),
    ];
    const all = [...SECTIONS.keys()].flatMap(listAll);
    expect(all.filter((each) => !named.includes(each))).toEqual([]);
    expect(named.filter((each) => !all.includes(each))).toEqual([]);
  });

  test('the table of the third level names each of its requirements, numbered after those of levels 1 and 2', () => {
    const counts = `1.2: 1, 1.3: 1, 1.5: 1, 2.3: 1, 2.4: 1, 3.1: 1, 3.2: 1, 3.3: 1, 3.4: 2, 3.5: 3, 3.6: 1,
      3.7: 3, 4.1: 2, 4.2: 4, 5.2: 3, 5.3: 1, 6.3: 4, 6.4: 2, 6.5: 3, 6.6: 1, 6.7: 2, 7.5: 1, 8.1: 2,
      8.2: 1, 8.3: 2, 8.4: 1, 11.1: 2, 11.2: 2, 11.3: 2, 11.5: 1, 11.6: 1, 11.7: 2, 12.1: 2, 12.3: 1,
      13.1: 3, 13.2: 1, 13.3: 2, 13.4: 2, 14.2: 4, 15.1: 2, 15.2: 2, 15.4: 4, 16.5: 1`;
    const all = [...counts.matchAll(/([\d.]+): (\d+)/g)].flatMap(([, section = '', count]) => {
      const before = Number(SECTIONS.get(section) ?? 0);
      return listRange(section, String(before + 1), String(before + Number(count)));
    });
    const named = [...third.matchAll(/(\d+\.\d+)\.(\d+)(?:–(\d+))?/g)].flatMap(
      ([, section = '', first = '', last = first]) => listRange(section, first, last),
    );
    expect(all.filter((each) => !named.includes(each))).toEqual([]);
    // Of level 2, with more at level 3.
    expect(named.filter((each) => ![...all, '6.3.3'].includes(each))).toEqual([]);
  });
});

test('every command of a remedy exists, with its options and acts', () => {
  const refuse = () => Promise.reject(new Error('Nothing is run.'));
  const loads = { openRebuilder: refuse, checkConnector: refuse };
  const io = { env: {}, stdout: () => undefined, stderr: () => undefined };
  const program = createProgram(createContext(io, false, loads).context, io, false);
  const rows = [...Object.values(REMEDIES), COMMON_REMEDIES, FINDING_REMEDIES]
    .flatMap((remedies): Remedy[] => Object.values(remedies))
    .flatMap(listRows);
  const commands = new Set(rows.flatMap(({ run }) => run));
  expect(commands.size).toBeGreaterThan(20);
  const faults = [...commands].filter((line) => {
    const [group, name, , act = ''] = line.split(' ');
    const command = program.commands
      .find((each) => each.name() === group)
      ?.commands.find((each) => each.name() === name);
    const options = [...line.matchAll(/--[\w-]+/g)].map(([option]) => option);
    const isKnown = options.every((option) => command?.options.some(({ long }) => long === option));
    const kind = KINDS.find((each) => each.replace('_', '-') === group) ?? 'payment';
    const { acts } = RESOURCES[kind];
    return !isKnown || (name === 'act' && !act.split('|').every((each) => acts.includes(each)));
  });
  expect(faults).toEqual([]);
});
