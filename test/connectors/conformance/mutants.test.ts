import { createGate } from '../../../src/base/gate';
import type { CheckReport } from '../../../src/service/connector-check';
import { MUTANTS } from './mutants';
import { listBroken } from './setting';

/** Checks wait for most of their time, so several run at once. */
const AT_ONCE = 3;
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

test.each(Object.entries(MUTANTS))('a connector that %s is named', async (name, { broken }) => {
  const report = await reports.get(name);
  const seen = report === undefined ? [] : listBroken(report);
  expect(seen).toEqual(broken.map((id) => expect.stringMatching(`^${id}: `)));
});
