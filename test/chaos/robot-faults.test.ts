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
import { FAULTS, type Fault } from './robot-faults';

/**
 * Puts faults that the product once had back, and lets the robot find them. `ROBOT_FAULTS=all` runs all,
 * `ROBOT_FAULTS=M3,M14` some; without it, only whether each still fits the sources.
 */
const REQUESTED = process.env['ROBOT_FAULTS'];
const run = FAULTS.filter(({ id }) => REQUESTED === 'all' || REQUESTED?.split(',').includes(id));

const ROOT = join(__dirname, '../..');
const LEFT_OUT = ['node_modules', '.git', 'dist', '.data'];
const SEEDS_MAX = 200;

test.each(FAULTS)('$id fits the sources', ({ patches }) => {
  for (const { file, from } of patches) {
    const parts = readFileSync(join(ROOT, file), 'utf8').split(from);
    expect({ file, count: parts.length - 1 }).toEqual({ file, count: 1 });
  }
});

if (run.length > 0) {
  test.each(run)(
    'the robot finds $id',
    async (fault) => {
      const found = await findBack(fault);
      // At once: all of them take long.
      process.stderr.write(`${fault.id}: ${found ?? `not within ${SEEDS_MAX} seeds`}\n`);
      expect(found).toBeDefined();
    },
    SEEDS_MAX * 10_000,
  );
}

/** Runs the robot on a copy of the sources. @returns seed and step at which it finds the fault */
async function findBack({ patches, seed }: Fault): Promise<string | undefined> {
  const folder = mkdtempSync(join(tmpdir(), 'robot-fault-'));
  try {
    cpSync(ROOT, folder, {
      recursive: true,
      filter: (path) => !LEFT_OUT.includes(basename(path)),
    });
    symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
    for (const { file, from, to } of patches) {
      const path = join(folder, file);
      writeFileSync(
        path,
        readFileSync(path, 'utf8').replace(from, () => to),
      );
    }
    const findings = join(folder, 'findings.json');
    const jest = ['node_modules/jest/bin/jest.js', '--selectProjects', 'integration'];
    const robot = ['--runTestsByPath', 'test/ledger/robot.test.ts'];
    const child = spawn(process.execPath, [...jest, ...robot], {
      cwd: folder,
      stdio: 'ignore',
      env: {
        ...process.env,
        ...{ ROBOT_SEED: String(seed), ROBOT_SEEDS: String(SEEDS_MAX) },
        ROBOT_FINDINGS: findings,
      },
    });
    await once(child, 'exit');
    return existsSync(findings)
      ? describeFound(JSON.parse(readFileSync(findings, 'utf8')))
      : undefined;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Finding {
  seed: number;
  found: object[];
  done: string[];
}

function describeFound(all: readonly Finding[]): string {
  const [first] = all.toSorted((a, b) => a.seed - b.seed);
  if (first === undefined) return 'nothing';
  const { seed, found, done } = first;
  const stories = done.filter((line) => /^(payment|refund|payout) \S+ [a-z_]+$/.test(line));
  const what = JSON.stringify(found).slice(0, 300);
  return `seed ${seed}, step ${done.length} (${stories.map((line) => line.replace(/ \S+/, '')).join(', ')}): ${what}`;
}
