import { createGate } from '../../../src/base/gate';
import type { CheckReport } from '../../../src/service/connector-check';
import { MUTANTS } from './mutants';
import { listBroken } from './setting';

/**
 * Checks wait for much of their time, so two run at once: each brings a connector, its bank and eight
 * promises at a time, all in this process, of which three kept a slow machine from taking a task.
 */
const AT_ONCE = 2;
const reports = new Map<string, Promise<CheckReport>>();

beforeAll(() => {
  const withinLimit = createGate(AT_ONCE);
  for (const [name, { check }] of Object.entries(MUTANTS)) {
    const report = withinLimit(check);
    // Each test says what failed.
    report.catch(() => undefined);
    reports.set(name, report);
  }
});

test.each(Object.entries(MUTANTS))(
  'a check names a connector that %s',
  async (name, { broken }) => {
    const report = await reports.get(name);
    const seen = report === undefined ? [] : listBroken(report);
    expect(seen).toEqual(broken.map((id) => expect.stringMatching(`^${id}: `)));
  },
);
