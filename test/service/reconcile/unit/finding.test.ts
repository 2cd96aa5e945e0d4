import { buildFinding, isUnresolved } from '../../../../src/service/reconcile/rebuild';
import { REFUSED } from '../../../../src/service/reconcile/state';
import type { Difference } from '../../../../src/service/reconcile/walk';

const difference: Difference = {
  kind: 'behind',
  resource: 'payout',
  id: 'p1',
  workflow: { status: 'completed', version: 4, bookings: [] },
  document: {
    status: 'sent',
    version: 3,
    bookings: [],
    account_id: 'acct_1',
    livemode: true,
    updated_at: '2026-03-01T12:00:00.000Z',
  },
  running: false,
  started_at: '2026-03-01T11:00:00.000Z',
};

test('a finding says where each stands, and since when', () => {
  expect(buildFinding(difference)).toEqual({
    kind: 'behind',
    resource: 'payout',
    id: 'p1',
    account_id: 'acct_1',
    livemode: true,
    document: 'sent v3',
    workflow: 'completed v4, closed',
    since: '2026-03-01T12:00:00.000Z',
    act: 'rebuild',
    done: false,
  });
  expect(
    buildFinding({ ...difference, kind: 'missing', document: null, running: true }),
  ).toMatchObject({
    account_id: null,
    livemode: null,
    document: null,
    workflow: 'completed v4, running',
    since: '2026-03-01T11:00:00.000Z',
  });
});

test('a finding about a refusal says so', () => {
  expect(buildFinding({ ...difference, kind: 'contradicts', workflow: REFUSED })).toMatchObject({
    document: 'sent v3',
    workflow: 'refused, closed',
    act: 'person',
  });
});

test('a document that is ahead keeps nothing apart; any other difference does until it is done', () => {
  const left = (kind: Difference['kind'], done = false) =>
    isUnresolved({ ...buildFinding({ ...difference, kind }), done });
  expect(left('ahead')).toBe(false);
  expect(left('missing')).toBe(true);
  expect(left('behind')).toBe(true);
  expect(left('contradicts')).toBe(true);
  expect(left('missing', true)).toBe(false);
});
