/**
 * Writes the clients' types from clients/openapi.json: `npm run clients`. It installs the generators
 * into this folder first, Python's in an environment of its own.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { hashAll, LOCK, PYTHON, readReduced, TYPESCRIPT } from './current.mjs';

const FOLDER = fileURLToPath(new URL('.', import.meta.url));
const VENV = join(FOLDER, '.venv');
const work = mkdtempSync(join(tmpdir(), 'generate-clients-'));
try {
  const input = join(work, 'openapi.json');
  writeFileSync(input, readReduced());
  writeFileSync(TYPESCRIPT, generateTypeScript(input));
  writeFileSync(PYTHON, generatePython(input));
} finally {
  rmSync(work, { recursive: true });
}
writeFileSync(LOCK, `${JSON.stringify(hashAll(), null, 2)}\n`);

function generateTypeScript(input) {
  run('npm', ['ci', '--silent']);
  const output = join(work, 'schema.ts');
  const flags = ['--root-types', '--root-types-no-schema-prefix', '--alphabetize'];
  run(join(FOLDER, 'node_modules/.bin/openapi-typescript'), [input, '-o', output, ...flags]);
  const text = readFileSync(output, 'utf8');
  // The document has nothing but shapes.
  return text.replace(/^export type (paths|webhooks|operations|\$defs) = .*\n/gm, '');
}

function generatePython(input) {
  if (!existsSync(VENV)) run('python3', ['-m', 'venv', VENV]);
  run(join(VENV, 'bin/pip'), ['install', '--quiet', '-r', 'requirements.txt']);
  const output = join(work, 'types.py');
  run(join(VENV, 'bin/datamodel-codegen'), [
    ...['--input', input, '--input-file-type', 'openapi', '--output', output],
    ...['--output-model-type', 'typing.TypedDict', '--target-python-version', '3.10'],
    ...['--enum-field-as-literal', 'all', '--no-use-closed-typed-dict', '--no-use-union-operator'],
    ...['--use-field-description', '--disable-timestamp', '--formatters', 'builtin'],
    ...['--custom-file-header', '# Written by `npm run clients`: do not edit.'],
  ]);
  return supportPython39(readFileSync(output, 'utf8'));
}

/** Only type checkers need the names that the standard library of Python 3.9 does not have. */
function supportPython39(text) {
  const imports = /^from typing import (.*)\n\nfrom typing_extensions import NotRequired\n/m;
  const names = imports.exec(text)?.[1].split(', ');
  if (names === undefined) throw new Error('The generator imports other names than it did.');
  const known = names.filter((name) => name !== 'TypeAlias');
  return text.replace(
    imports,
    `from typing import TYPE_CHECKING, ${known.join(', ')}\n\nif TYPE_CHECKING:\n` +
      '    from typing_extensions import NotRequired, TypeAlias\n',
  );
}

function run(command, args) {
  execFileSync(command, args, { cwd: FOLDER, stdio: 'inherit' });
}
