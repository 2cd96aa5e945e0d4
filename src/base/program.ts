import { existsSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

interface Program {
  start: string;
  cli: string;
}

/**
 * Names the commands as they can be pasted.
 * @param root the package's own directory
 */
export function describeProgram(root: string, workingDirectory: string): Program {
  if (isCheckout(root)) {
    return { start: 'npm start', cli: 'npm run -s cli --' };
  }
  if (relative(workingDirectory, root) === join('node_modules', 'durable-payments')) {
    return { start: 'npx durable-payments start', cli: 'npx durable-payments cli' };
  }
  const program = (name: string) => {
    const path = join(root, 'dist', name);
    const isPlain = /^[\w./@+-]+$/.test(path);
    return `node ${isPlain ? path : `'${path.replaceAll("'", "'\\''")}'`}`;
  };
  return { start: `${program('stack/bin.js')} start`, cli: program('src/cli/main.js') };
}

function isCheckout(root: string): boolean {
  return existsSync(join(root, 'tsconfig.json'));
}

function packageRoot(): string {
  let folder = __dirname;
  while (!existsSync(join(folder, 'package.json')) && dirname(folder) !== folder) {
    folder = dirname(folder);
  }
  return folder;
}

export const PACKAGE_ROOT = packageRoot();
export const IS_CHECKOUT = isCheckout(PACKAGE_ROOT);
export const PROGRAM = describeProgram(PACKAGE_ROOT, process.cwd());
