import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';

const findVulnerability = (severity: string) => ({
  vulnerabilities: { x: { name: 'x', severity, range: '*' } },
});
const AWAY = { message: 'no registry' };

test.each([
  ['a high vulnerability', findVulnerability('high'), [], 1],
  ['a critical vulnerability', findVulnerability('critical'), ['--strict'], 1],
  ['a low vulnerability', findVulnerability('low'), ['--strict'], 0],
  ['a registry that does not answer', AWAY, ['--strict'], 2],
  ['a registry that does not answer', AWAY, [], 0],
])('for %s (%j) the audit with the flags %j ends with exit code %i', (_, answer, flags, code) => {
  const folder = mkdtempSync(join(tmpdir(), 'audit-'));
  try {
    const npm = `#!/bin/sh\ncat <<'END'\n${JSON.stringify(answer)}\nEND\nexit 1\n`;
    writeFileSync(join(folder, 'npm'), npm, { mode: 0o755 });
    const PATH = [folder, dirname(process.execPath), process.env['PATH']].join(delimiter);
    const audit = [resolve('tools/audit.mjs'), ...flags];
    expect(spawnSync(process.execPath, audit, { env: { ...process.env, PATH } }).status).toBe(code);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
