import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { historyFromJSON } from '@temporalio/common/lib/proto-utils';
import {
  buildFinding,
  isUnresolved,
  type RebuildResult,
  rebuildAll,
} from '../../../../src/service/reconcile/rebuild';
import {
  type Booking,
  compare,
  REFUSED,
  readResourceState,
  wasRefused,
} from '../../../../src/service/reconcile/state';
import type { Difference } from '../../../../src/service/reconcile/walk';

const FOLDER = join(__dirname, '../../../replay/histories');
const readHistory = (name: string) =>
  historyFromJSON(JSON.parse(readFileSync(join(FOLDER, `${name}.json`), 'utf8')));

describe('the state of a resource in histories', () => {
  test.each([
    ['payout-completed', 'completed', 4],
    ['payout-jumped', 'completed', 4],
    ['payout-returned-days-later', 'returned', 5],
    ['payout-accepted-behind', 'sent', 3],
    ['payment-settled', 'settled', 4],
    ['refund-settled', 'settled', 2],
    ['crypto-payment-topped-up', 'received', 5],
    ['crypto-payment-returned', 'expired', 4],
    ['crypto-settlement-sent-again', 'completed', 3],
    ['crypto-settlement-refused', 'failed', 2],
  ])('is that of the last step of %s', (name, status, version) => {
    const history = readHistory(name);
    expect(readResourceState([history])).toEqual({ status, version, bookings: [] });
    expect(wasRefused([history])).toBe(false);
  });

  test.each([
    'payout-insufficient-balance',
    'payout-not-accepted-in-time',
    'refund-refused',
    'crypto-settlement-insufficient-balance',
    'crypto-payment-not-available',
  ])('is none for %s, which is a refusal', (name) => {
    expect(readResourceState([readHistory(name)])).toBeNull();
    expect(wasRefused([readHistory(name)])).toBe(true);
  });

  test('is none before anything begins, and that of the last known step where a history is cut off', () => {
    expect(readResourceState([{ events: [] }, {}])).toBeNull();
    expect(readResourceState([])).toBeNull();
    expect(wasRefused([{ events: [] }])).toBe(false);
    const events = readHistory('payout-completed').events ?? [];
    const read = (length: number) => readResourceState([{ events: events.slice(0, length) }]);
    const written = events.findIndex((_event, index) => read(index + 1)?.status === 'sent');
    expect(read(written)).toEqual({ status: 'created', version: 1, bookings: [] });
    expect(read(written + 1)).toEqual({ status: 'sent', version: 3, bookings: [] });
  });

  test('can be read from every recorded history of a lifecycle', () => {
    const names = readdirSync(FOLDER).filter((name) =>
      /^(payment|refund|payout|crypto)-/.test(name),
    );
    expect(names.length).toBeGreaterThan(65);
    for (const name of names) {
      const state = readResourceState([readHistory(name.replace('.json', ''))]);
      expect(state?.version ?? 1).toBeGreaterThanOrEqual(1);
    }
  });

  test('has the bookings of all runs, and the status of the newest', () => {
    const [settled, disputed, reversed] = [
      readHistory('payment-settled'),
      readHistory('payment-disputed-failed'),
      readHistory('payment-late-reversed'),
    ];
    const state = readResourceState([disputed]);
    expect(state?.bookings).toEqual(['recordDispute']);
    expect(readResourceState([settled, disputed])).toEqual(state);
    expect(readResourceState([disputed, {}])).toEqual(state);
    expect(readResourceState([readHistory('payment-disputed-clawed-back')])?.bookings).toEqual([
      'recordDispute',
    ]);
    const late = ['held one', 'returned one'];
    expect(readResourceState([reversed])?.bookings).toEqual(late);
    expect(readResourceState([disputed, reversed])?.bookings).toEqual(['recordDispute', ...late]);
  });
});

const at = (version: number, status = 'sent', ...bookings: Booking[]) => ({
  ...{ status, version, bookings },
});

test.each([
  ['nothing began and nothing is stored', null, null, null],
  ['stored, and not yet known to the workflow', null, at(1), null],
  ['begun and not stored', at(1), null, 'missing'],
  ['stored at an earlier version', at(3), at(2), 'behind'],
  ['stored at a later version', at(3), at(4), 'ahead'],
  ['without a booking of the workflow', at(3, 'sent', 'clawBack'), at(3), 'behind'],
  ['with one booking more', at(3), at(3, 'sent', 'clawBack'), null],
  ['stored at the same version', at(3), at(3), null],
  ['stored at the same version in another status', at(3), at(3, 'failed'), 'contradicts'],
  ['refused and not stored', REFUSED, null, null],
  ['refused and stored', REFUSED, at(1, 'created'), 'contradicts'],
])(
  'a document that is %s differs from its workflow (%j, %j): %s',
  (_, workflow, document, kind) => {
    expect(compare(workflow, document)).toBe(kind);
  },
);

const DIFFERENCE: Difference = {
  ...{ kind: 'behind', resource: 'payout', id: 'p1' },
  workflow: { status: 'completed', version: 4, bookings: [] },
  document: {
    ...{ status: 'sent', version: 3, bookings: [], account_id: 'acct_1', livemode: true },
    updated_at: '2026-03-01T12:00:00.000Z',
  },
  running: false,
  started_at: '2026-03-01T11:00:00.000Z',
};

describe('a finding', () => {
  test('names the state of the document and of the workflow, and since when they differ', () => {
    expect(buildFinding(DIFFERENCE)).toEqual({
      ...{ kind: 'behind', resource: 'payout', id: 'p1', account_id: 'acct_1', livemode: true },
      ...{ document: 'sent v3', workflow: 'completed v4, closed' },
      ...{ since: '2026-03-01T12:00:00.000Z', act: 'rebuild', done: false },
    });
    const missing = { ...DIFFERENCE, kind: 'missing', document: null, running: true } as const;
    expect(buildFinding(missing)).toMatchObject({
      ...{ account_id: null, livemode: null, document: null, workflow: 'completed v4, running' },
      since: '2026-03-01T11:00:00.000Z',
    });
    const refused = { ...DIFFERENCE, kind: 'contradicts', workflow: REFUSED } as const;
    expect(buildFinding(refused)).toMatchObject({
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
    expect(findings.map(({ id, kind, done, key_lost }) => ({ id, kind, done, key_lost }))).toEqual(
      ['a', 'b', 'c'].map((id) => ({ id, kind: 'missing', done: true, key_lost: true })),
    );
  });

  test('tries a resource with insufficient balance only once, and reports that', async () => {
    const rebuilder = fakeRebuilder({ a: 'never' });
    const [finding] = await rebuildAll(rebuilder, [lost('a')], () => {});
    expect(finding).toMatchObject({
      ...{ kind: 'short', act: 'rebuild', done: false, reason: 'No money.' },
    });
    expect(rebuilder.tries).toEqual(['a']);
  });

  test('leaves a resource whose history it cannot read, with the reason', async () => {
    const rebuilder = fakeRebuilder({ a: 'never' }, 'unreadable');
    const [finding, other] = await rebuildAll(rebuilder, ['a', 'b'].map(lost), () => {});
    expect(finding).toMatchObject({ kind: 'missing', done: false, reason: 'No money.' });
    expect(other).toMatchObject({ done: true });
    expect(rebuilder.tries).toEqual(['a', 'b', 'a']);
  });
});
