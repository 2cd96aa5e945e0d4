import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** An empty folder for each test, which is removed after it. */
export function useTempFolder() {
  let path = '';
  beforeEach(() => {
    path = mkdtempSync(join(tmpdir(), 'test-'));
  });
  afterEach(() => rmSync(path, { recursive: true }));
  const at = (...names: string[]) => join(path, ...names);
  return {
    at,
    read: (...names: string[]) => readFileSync(at(...names), 'utf8'),
    /** Gives the permissions of a file as an octal number, such as 0o600. */
    mode: (...names: string[]) => statSync(at(...names)).mode & 0o777,
    write: (name: string, text: string, mode = 0o644) => {
      mkdirSync(dirname(at(name)), { recursive: true });
      writeFileSync(at(name), text, { mode });
      return at(name);
    },
  };
}
