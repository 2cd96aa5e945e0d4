import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { historyFromJSON } from '@temporalio/common/lib/proto-utils';
import { listStateSteps } from '../../../../src/domain/resources';
import {
  buildFinding,
  isUnresolved,
  type RebuildResult,
  rebuildAll,
} from '../../../../src/service/operators/reconcile/reconcile';
import {
  compare,
  type Difference,
  hasEnded,
  REFUSED,
} from '../../../../src/service/operators/reconcile/walk';

const FOLDER = join(__dirname, '../../../replay/histories');
const readHistory = (name: string) =>
  historyFromJSON(JSON.parse(readFileSync(join(FOLDER, `${name}.json`), 'utf8')));

test.each([
  ['payout', 'payout-completed', 'openPayout'],
  ['payment', 'payment-settled', 'openPayment'],
  ['refund', 'refund-refused', 'abandonRefund'],
  ['crypto_payment', 'crypto-payment-resumed', 'loadCryptoPayment'],
] as const)('a %s is opened in the history %s once %s has ended', (kind, name, step) => {
  const history = readHistory(name);
  expect(hasEnded(listStateSteps(kind), [{ events: [] }, history])).toBe(true);
  expect(hasEnded([step], [history])).toBe(true);
  expect(hasEnded(['another'], [history])).toBe(false);
  // Its workflow has begun, and no step has ended.
  const events = (history.events ?? []).slice(0, 2);
  expect(hasEnded(listStateSteps(kind), [{ events }, {}])).toBe(false);
});

const at = (version: number, status = 'sent') => ({ status, version });

test.each([
  ['nothing began and nothing is stored', null, null, null],
  ['stored, and not yet known to the workflow', null, at(1), null],
  ['begun and not stored', at(1), null, 'missing'],
  ['stored at an earlier version', at(3), at(2), 'behind'],
  ['stored at a later version', at(3), at(4), 'ahead'],
  ['stored at the same version', at(3), at(3), null],
  ['stored at the same version in another status', at(3), at(3, 'failed'), 'contradicts'],
  ['refused and not stored', REFUSED, null, null],
  ['refused and stored', REFUSED, at(1, 'created'), 'contradicts'],
])('a document that is %s differs from its workflow (%j, %j): %s', (_, workflow, document, kind) =>
  expect(compare(workflow, document)).toBe(kind),
);

const DIFFERENCE: Difference = {
  ...{ kind: 'behind', resource: 'payout', id: 'p1' },
  workflow: { status: 'completed', version: 4 },
  document: {
    ...{ status: 'sent', version: 3, account_id: 'acct_1', livemode: true },
    updated_at: '2026-03-01T12:00:00.000Z',
  },
  running: false,
  started_at: '2026-03-01T11:00:00.000Z',
};

describe('a finding', () => {
  const missing = { kind: 'missing', document: null, running: true } as const;
  const refused = { kind: 'contradicts', workflow: REFUSED } as const;

  test('names the state of the document and of the workflow, and since when they differ', () => {
    expect(buildFinding(DIFFERENCE)).toEqual({
      ...{ kind: 'behind', resource: 'payout', id: 'p1', account_id: 'acct_1', livemode: true },
      ...{ document: 'sent v3', workflow: 'completed v4, closed' },
      ...{ since: '2026-03-01T12:00:00.000Z', act: 'rebuild', done: false },
    });
    expect(buildFinding({ ...DIFFERENCE, ...missing })).toMatchObject({
      ...{ account_id: null, livemode: null, document: null, workflow: 'completed v4, running' },
      since: '2026-03-01T11:00:00.000Z',
    });
    expect(buildFinding({ ...DIFFERENCE, ...refused })).toMatchObject({
      ...{ document: 'sent v3', workflow: 'refused, closed', act: 'person' },
    });
  });

  test.each([
    ['ahead', false, false],
    ['missing', false, true],
    ['behind', false, true],
    ['contradicts', false, true],
    ['missing', true, false],
  ] as const)('of the kind %s (done: %s) is unresolved: %s', (kind, done, unresolved) => {
    expect(isUnresolved({ ...buildFinding({ ...DIFFERENCE, kind }), done })).toBe(unresolved);
  });
});

describe('rebuilding all', () => {
  const lost = (id: string): Difference => ({ ...DIFFERENCE, kind: 'missing', document: null, id });

  /** Rebuilds each resource only after the one that it needs, and records every try. */
  function fakeRebuilder(
    needs: Record<string, string>,
    outcome: RebuildResult['outcome'] = 'short',
  ) {
    const [rebuilt, tries]: [string[], string[]] = [[], []];
    const rebuild = async (_kind: string, id: string): Promise<RebuildResult> => {
      tries.push(id);
      const need = needs[id];
      if (need !== undefined && !rebuilt.includes(need)) return { outcome, reason: 'No money.' };
      rebuilt.push(id);
      return { outcome: 'rebuilt', key_lost: true };
    };
    return { rebuild, rebuilt, tries };
  }

  test('rebuilds a resource after the one whose money it needs', async () => {
    const rebuilder = fakeRebuilder({ a: 'b', b: 'c' });
    const findings = await rebuildAll(rebuilder, ['a', 'b', 'c'].map(lost), () => {});
    expect(rebuilder.rebuilt).toEqual(['c', 'b', 'a']);
    const done = { kind: 'missing', done: true, key_lost: true };
    expect(findings).toMatchObject(['a', 'b', 'c'].map((id) => ({ id, ...done })));
  });

  test.each([
    ['short', 'its balance is insufficient', 'short', ['a']],
    ['unreadable', 'it cannot read its history', 'missing', ['a', 'b', 'a']],
  ] as const)('leaves out a resource whose rebuilding is %s: %s', async (...row) => {
    const [outcome, , kind, tries] = row;
    const rebuilder = fakeRebuilder({ a: 'never' }, outcome);
    const ids = [...new Set(tries)];
    const [finding, ...others] = await rebuildAll(rebuilder, ids.map(lost), () => {});
    expect(finding).toMatchObject({ kind, act: 'rebuild', done: false, reason: 'No money.' });
    expect(others).toMatchObject(others.map(() => ({ done: true })));
    expect(rebuilder.tries).toEqual(tries);
  });
});
