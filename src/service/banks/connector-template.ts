import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { IS_CHECKOUT, PACKAGE_ROOT } from '../../base/program';
import { ServiceError } from '../../domain/errors';

const FILES = ['example.ts', 'main.ts', 'fake-bank.ts', 'test.ts'];
const PACKAGED_KIT = 'durable-payments/connectors/kit';

/** Directories of the service, files of the copy, or names that the copy uses. */
const TAKEN = [
  ...['contract', 'conformance', 'evm', 'example', 'http', 'kit', 'sandbox', 'sepa'],
  ...['main', 'test', 'after', 'answer', 'assert', 'bank', 'before', 'explain', 'id', 'page'],
  ...['payout', 'report', 'settings'],
];
/** Words of TypeScript. */
const RESERVED = [
  ...['break', 'case', 'catch', 'class', 'const', 'continue', 'debugger', 'default', 'delete'],
  ...['else', 'enum', 'export', 'extends', 'false', 'finally', 'for', 'function', 'if', 'import'],
  ...['implements', 'interface', 'let', 'package', 'private', 'protected', 'public', 'static'],
  ...['await', 'in', 'instanceof', 'new', 'null', 'return', 'super', 'switch', 'this', 'throw'],
  ...['true', 'try', 'typeof', 'var', 'void', 'while', 'with', 'yield'],
  ...['arguments', 'do', 'eval', 'undefined'],
];

const EXAMPLE = IS_CHECKOUT ? 'connectors/example' : 'dist/connectors/example/source';

/**
 * Copies the example connector.
 * @param dir absent: next to the example; outside a checkout, in the working directory
 * @throws ServiceError `connector_name_invalid`, `directory_exists`
 */
export function createConnector(name: string, dir?: string): { dir: string; files: string[] } {
  const isTaken = [...TAKEN, ...RESERVED].includes(name);
  if (isTaken || !/^[a-z][a-z0-9]{1,30}$/.test(name)) {
    const why = isTaken ? 'has a meaning already' : 'must be 2 to 31 lowercase letters and digits';
    const message = `"${name}" cannot be the name of a new connector: it ${why}.`;
    throw new ServiceError('connector_name_invalid', message);
  }
  const target = resolve(dir ?? (IS_CHECKOUT ? join(PACKAGE_ROOT, 'connectors', name) : name));
  if (existsSync(target)) {
    const message = `${target} exists: nothing was written. Give another name, or --dir.`;
    throw new ServiceError('directory_exists', message);
  }
  const isNext = IS_CHECKOUT && dirname(target) === join(PACKAGE_ROOT, 'connectors');
  const kit = isNext ? '../kit' : PACKAGED_KIT;
  mkdirSync(target, { recursive: true });
  const files = FILES.map((file) => {
    const text = readFileSync(join(PACKAGE_ROOT, EXAMPLE, file), 'utf8');
    const path = join(target, rename(file, name));
    writeFileSync(path, rename(text, name).replaceAll("from '../kit'", `from '${kit}'`));
    return relative(target, path);
  });
  return { dir: target, files };
}

function rename(text: string, name: string): string {
  const title = `${name.slice(0, 1).toUpperCase()}${name.slice(1)}`;
  return text
    .replaceAll('EXAMPLE', name.toUpperCase())
    .replaceAll('Example', title)
    .replaceAll('example', name);
}
