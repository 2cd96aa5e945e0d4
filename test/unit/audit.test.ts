import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';

const AUDIT = resolve('tools/audit.mjs');

/** Runs the audit over what npm has found out; gives how it ended. */
function auditOf(answer: object, ...flags: string[]): number | null {
  const folder = mkdtempSync(join(tmpdir(), 'audit-'));
  try {
    const npm = join(folder, 'npm');
    writeFileSync(npm, `#!/bin/sh\ncat <<'END'\n${JSON.stringify(answer)}\nEND\nexit 1\n`);
    chmodSync(npm, 0o755);
    const PATH = [folder, dirname(process.execPath), process.env['PATH']].join(delimiter);
    return spawnSync(process.execPath, [AUDIT, ...flags], { env: { ...process.env, PATH } }).status;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const holeOf = (severity: string) => ({
  vulnerabilities: { x: { name: 'x', severity, range: '*' } },
});

test('the audit tells a hole that was found from a registry that can’t be asked', () => {
  expect(auditOf(holeOf('high'))).toBe(1);
  expect(auditOf(holeOf('critical'), '--strict')).toBe(1);
  expect(auditOf(holeOf('low'), '--strict')).toBe(0);
  expect(auditOf({ message: 'no registry' }, '--strict')).toBe(2);
  expect(auditOf({ message: 'no registry' })).toBe(0);
});
