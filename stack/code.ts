import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const REQUIRE = /\brequire(?:\.resolve)?\(["'](\.[^"']*)["']\)/g;

/**
 * A mark of the code that a compiled program consists of: its own file and all files of ours that
 * it requires. The mark changes when one of them does.
 */
export function codeMark(program: string): string {
  const hash = createHash('sha256');
  for (const [file, text] of [...codeOf(program)].sort()) hash.update(`${file}\n${text}\n`);
  return hash.digest('hex');
}

function codeOf(program: string): Map<string, string> {
  const found = new Map<string, string>();
  const open = [program];
  for (let file = open.pop(); file !== undefined; file = open.pop()) {
    if (found.has(file)) continue;
    const text = readFileSync(file, 'utf8');
    found.set(file, text);
    for (const [, target = ''] of text.matchAll(REQUIRE)) {
      open.push(fileOf(join(dirname(file), target)));
    }
  }
  return found;
}

/** A module's file: `./door` may be `door.js` or `door/index.js`. */
function fileOf(module: string): string {
  const candidates = [`${module}.js`, join(module, 'index.js'), module];
  return candidates.find((each) => existsSync(each)) ?? module;
}
