import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { FAULTS, type Patch } from './robot-faults';

/**
 * Puts faults that the product once had back, and lets the robot find them. `ROBOT_FAULTS=all` runs all,
 * `ROBOT_FAULTS=M3,M14` some; without it, only whether each still fits the sources.
 */
const REQUESTED = process.env['ROBOT_FAULTS'];
const run = [...new Set(FAULTS.map(({ id }) => id))].filter(
  (id) => REQUESTED === 'all' || REQUESTED?.split(',').includes(id),
);

const ROOT = join(__dirname, '../..');
const LEFT_OUT = ['node_modules', '.git', 'dist', '.data'];
const SEEDS_MAX = 200;

test.each(FAULTS)('the fault $id can be put back into $file', ({ file, from }) => {
  const parts = readFileSync(join(ROOT, file), 'utf8').split(from);
  expect({ file, count: parts.length - 1 }).toEqual({ file, count: 1 });
});

if (run.length > 0) {
  test.each(run)(
    'the robot finds the fault %s when it is put back',
    async (id) => {
      const patches = FAULTS.filter((each) => each.id === id);
      const found = await findBack(patches);
      // At once: all of them take long.
      process.stderr.write(`${id}: ${found ?? `not within ${SEEDS_MAX} seeds`}\n`);
      expect(found).toBeDefined();
    },
    SEEDS_MAX * 10_000,
  );
}

/** Runs the robot on a copy of the sources. @returns seed and step at which it finds the fault */
async function findBack(patches: readonly Patch[]): Promise<string | undefined> {
  const folder = mkdtempSync(join(tmpdir(), 'robot-fault-'));
  try {
    const filter = (path: string) => !LEFT_OUT.includes(basename(path));
    cpSync(ROOT, folder, { recursive: true, filter });
    symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
    for (const { file, from, to } of patches) {
      const path = join(folder, file);
      const source = readFileSync(path, 'utf8');
      writeFileSync(
        path,
        source.replace(from, () => to),
      );
    }
    const findings = join(folder, 'findings.json');
    const jest = ['node_modules/jest/bin/jest.js', '--selectProjects', 'integration'];
    const robot = ['--runTestsByPath', 'test/ledger/robot.test.ts'];
    const seeds = { ROBOT_SEED: String(patches[0]?.seed), ROBOT_SEEDS: String(SEEDS_MAX) };
    const env = { ...process.env, ...seeds, ROBOT_FINDINGS: findings };
    const options = { cwd: folder, stdio: 'ignore', env } as const;
    await once(spawn(process.execPath, [...jest, ...robot], options), 'exit');
    if (!existsSync(findings)) return undefined;
    const all: Finding[] = JSON.parse(readFileSync(findings, 'utf8'));
    const [first] = all.toSorted((a, b) => a.seed - b.seed);
    if (first === undefined) return 'nothing';
    const what = JSON.stringify(first.found).slice(0, 300);
    return `seed ${first.seed}, step ${first.done.length}: ${what}`;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Finding {
  seed: number;
  found: object[];
  done: string[];
}
