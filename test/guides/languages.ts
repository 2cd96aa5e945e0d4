import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { useFixture } from '../support/fixture';
import { runProgram } from '../support/programs';

const ROOT = join(__dirname, '../..');
const CLIENTS = join(ROOT, 'clients');
const TSC = join(ROOT, 'node_modules/.bin/tsc');

export const SNIPPETS = join(ROOT, 'docs/snippets');

export const SNIPPET_NAMES = readdirSync(SNIPPETS).toSorted();

/** How the snippets of a language are run. */
export interface Language {
  file: string;
  /** Program that runs them. Without it, its tests are skipped; CI must have it. */
  program: string;
  env?: Record<string, string>;
}

export const LANGUAGES = {
  curl: language('curl.sh', 'bash'),
  TypeScript: language('typescript.mjs', 'node'),
  Python: language('python.py', 'python3', {
    PYTHONPATH: join(CLIENTS, 'python/src'),
    PYTHONDONTWRITEBYTECODE: '1',
  }),
  PHP: language('php.php', 'php'),
} satisfies Record<string, Language>;

function language(file: string, program: string, env?: Record<string, string>): Language {
  return { file, program, ...(env && { env }) };
}

/** A project in which every snippet can run: TypeScript type-checks, and the client is installed. */
export function useSnippets(): { folder: string } {
  return useFixture(
    async () => {
      const folder = mkdtempSync(join(tmpdir(), 'snippets-'));
      for (const name of SNIPPET_NAMES) copySnippet(name, join(folder, name));
      await installClient(join(folder, 'node_modules/@durable-payments/client'));
      symlinkSync(join(ROOT, 'node_modules/@types'), join(folder, 'node_modules/@types'));
      const sources = SNIPPET_NAMES.map((name) => join(name, 'typescript.mts'));
      await runProgram(TSC, [...COMPILER, ...sources], { cwd: folder });
      return { folder };
    },
    ({ folder }) => rmSync(folder, { recursive: true }),
  );
}

/** Strict, and with nothing that Node.js cannot strip when it runs the file itself. */
const COMPILER = [
  '--strict',
  '--noUncheckedIndexedAccess',
  '--exactOptionalPropertyTypes',
  '--erasableSyntaxOnly',
  '--verbatimModuleSyntax',
  ...['--module', 'nodenext', '--target', 'es2022', '--types', 'node'],
];

function copySnippet(name: string, folder: string): void {
  cpSync(join(SNIPPETS, name), folder, { recursive: true });
  // As an ES module, which may wait at its top level.
  cpSync(join(folder, 'typescript.ts'), join(folder, 'typescript.mts'));
}

async function installClient(folder: string): Promise<void> {
  const source = join(CLIENTS, 'typescript');
  mkdirSync(folder, { recursive: true });
  cpSync(join(source, 'package.json'), join(folder, 'package.json'));
  await runProgram(TSC, ['-p', source, '--outDir', join(folder, 'dist')]);
}
