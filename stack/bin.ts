#!/usr/bin/env node
import './node-version';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PACKAGE_ROOT } from '../src/base/program';

const HELP = `durable-payments: takes payments, refunds them and makes payouts.

  durable-payments start [--inspect PART[:PORT]]  runs the whole service, with its data in .data
                                                  of the current directory; start --help has more
  durable-payments cli COMMAND                    manages the service that runs here: accounts,
                                                  keys, endpoints, …; cli --help lists them
  durable-payments --version                      prints the version
  durable-payments --help                         prints this text
`;

const PROGRAMS = new Map([
  ['start', require.resolve('./main')],
  ['cli', require.resolve('../src/cli/main')],
]);

const HELP_NAMES = ['--help', '-h', 'help'];
const VERSION_NAMES = ['--version', '-v'];

const [name = '', ...args] = process.argv.slice(2);
const program = PROGRAMS.get(name);
if (program !== undefined) {
  process.setSourceMapsEnabled(true);
  process.argv.splice(1, process.argv.length, program, ...args);
  require(program);
} else if (HELP_NAMES.includes(name)) {
  process.stdout.write(HELP);
} else if (VERSION_NAMES.includes(name)) {
  const text = readFileSync(join(PACKAGE_ROOT, 'package.json'), 'utf8');
  const { version }: { version: string } = JSON.parse(text);
  process.stdout.write(`${version}\n`);
} else {
  process.stderr.write(name === '' ? HELP : `There is no command ${name}.\n\n${HELP}`);
  process.exitCode = 1;
}
