import { type RebuildResult, rebuildAll } from '../../../../src/service/reconcile/rebuild';
import type { Difference } from '../../../../src/service/reconcile/walk';

const lost = (id: string): Difference => ({
  kind: 'missing',
  resource: 'payout',
  id,
  workflow: { status: 'completed', version: 4, bookings: [] },
  document: null,
  running: false,
  started_at: '2026-03-01T12:00:00.000Z',
});

/** Rebuilds what is named after those that it needs, and counts how often it was asked. */
function fakeRebuilder(needs: Record<string, string>, outcome: RebuildResult['outcome'] = 'short') {
  const rebuilt: string[] = [];
  const asked: string[] = [];
  const rebuild = async (_kind: string, id: string): Promise<RebuildResult> => {
    asked.push(id);
    const need = needs[id];
    if (need !== undefined && !rebuilt.includes(need)) return { outcome, reason: 'No money.' };
    rebuilt.push(id);
    return { outcome: 'rebuilt', key_lost: true };
  };
  return { rebuild, rebuilt, asked };
}

test('one that needs the money of another is rebuilt after it', async () => {
  const rebuilder = fakeRebuilder({ a: 'b', b: 'c' });
  const findings = await rebuildAll(rebuilder, ['a', 'b', 'c'].map(lost), () => {});
  expect(rebuilder.rebuilt).toEqual(['c', 'b', 'a']);
  expect(findings.map(({ id, kind, done, key_lost }) => ({ id, kind, done, key_lost }))).toEqual([
    { id: 'a', kind: 'missing', done: true, key_lost: true },
    { id: 'b', kind: 'missing', done: true, key_lost: true },
    { id: 'c', kind: 'missing', done: true, key_lost: true },
  ]);
});

test('one for which the balance is short is a finding of its own, and asked no more than needed', async () => {
  const rebuilder = fakeRebuilder({ a: 'never' });
  const [finding] = await rebuildAll(rebuilder, [lost('a')], () => {});
  expect(finding).toMatchObject({
    kind: 'short',
    act: 'rebuild',
    done: false,
    reason: 'No money.',
  });
  expect(rebuilder.asked).toEqual(['a']);
});

test('one whose history cannot be read keeps its kind, with the reason', async () => {
  const rebuilder = fakeRebuilder({ a: 'never' }, 'unreadable');
  const [finding, other] = await rebuildAll(rebuilder, ['a', 'b'].map(lost), () => {});
  expect(finding).toMatchObject({ kind: 'missing', done: false, reason: 'No money.' });
  expect(other).toMatchObject({ done: true });
  expect(rebuilder.asked).toEqual(['a', 'b', 'a']);
});
