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

const PROGRAMS: Readonly<Record<string, string>> = {
  start: require.resolve('./main'),
  cli: require.resolve('../src/cli/main'),
};

function version(): string {
  const text = readFileSync(join(PACKAGE_ROOT, 'package.json'), 'utf8');
  const { version }: { version: string } = JSON.parse(text);
  return `${version}\n`;
}

const TEXTS: Readonly<Record<string, () => string>> = {
  '--help': () => HELP,
  '-h': () => HELP,
  help: () => HELP,
  '--version': version,
  '-v': version,
};

function main([name = '', ...args]: readonly string[]): void {
  const [program, text] = [get(PROGRAMS, name), get(TEXTS, name)];
  if (program !== undefined) {
    process.setSourceMapsEnabled(true);
    process.argv.splice(1, process.argv.length, program, ...args);
    require(program);
  } else if (text !== undefined) {
    process.stdout.write(text());
  } else {
    process.stderr.write(name === '' ? HELP : `There is no command ${name}.\n\n${HELP}`);
    process.exitCode = 1;
  }
}

function get<T>(table: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}

main(process.argv.slice(2));
