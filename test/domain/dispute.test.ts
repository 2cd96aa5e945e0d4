import {
  type Dispute,
  type DisputedPayment,
  type DisputeReport,
  decideDispute,
  isDisputeOpen,
  sumDisputed,
} from '../../src/domain/payment/dispute';

const build = (more: Partial<Dispute> = {}): Dispute => ({
  ...{ id: 'D1', kind: 'dispute_opened', amount: 400, currency: 'EUR', fee: 15 },
  ...{ held: 415, owed: 0, state: 'opened', opened_at: '2026-03-01', opened_by: 'cb-1' },
  ...more,
});
const OPEN = build();
const WON = build({ state: 'won', won: 400, fee_returned: 0, closed_by: 'cb-2' });
const LOST = build({ state: 'lost', closed_by: 'cb-2' });
const OTHER = build({ id: 'D2', amount: 300, opened_by: 'cb-3' });

function decide(
  disputes: Dispute[],
  name: DisputeReport['name'],
  facts: Partial<DisputeReport>,
  payment: Partial<DisputedPayment> = {},
): string {
  const disputed = { amount: 1_050, refunded: 0, currency: 'EUR', disputes, ...payment };
  const decision = decideDispute(disputed, { name, callback_id: 'cb-9', ...facts });
  switch (decision.kind) {
    case 'open':
      return `open ${decision.id} ${decision.amount} ${decision.fee}`;
    case 'close':
      return `close ${decision.dispute.id} ${decision.won} ${decision.fee_returned}`;
    case 'repeated':
      return `repeated${decision.isOwn ? ' by its own report' : ''}`;
    default:
      return decision.why;
  }
}

test.each<[string, Dispute[], Partial<DisputeReport>, string, Partial<DisputedPayment>]>([
  ['of all that settled', [], {}, 'open cb-9 1050 0', {}],
  ['of what settled', [], {}, 'open cb-9 999 0', { settled_amount: 999 }],
  ['of more than settled', [], { amount: 1_000 }, '999 is left', { settled_amount: 999 }],
  ['of a part, with a fee', [], { dispute_id: 'D1', amount: 400, fee: 15 }, 'open D1 400 15', {}],
  ['of all that is left', [OPEN], { amount: 650 }, 'open cb-9 650 0', {}],
  ['of more than is left', [OPEN], { amount: 651 }, 'disputes 651, and 650 is left', {}],
  ['of what was won back', [WON], { amount: 1_050 }, 'open cb-9 1050 0', {}],
  ['of what was refunded', [], { amount: 1_000 }, '949 is left', { refunded: 101 }],
  ['of what was refunded beyond it', [], {}, '1049 is left', { refunded_over: 1 }],
  ['in another currency', [], { currency: 'USD' }, 'a dispute in USD', {}],
  ['again', [OPEN], { dispute_id: 'D1', amount: 400, fee: 15 }, 'repeated', {}],
  ['again by its own report', [OPEN], { callback_id: 'cb-1', fee: 15 }, 'by its own report', {}],
  ['of another amount', [OPEN], { dispute_id: 'D1', amount: 401, fee: 15 }, 'another amount', {}],
  ['again without its fee', [OPEN], { dispute_id: 'D1' }, 'another amount or fee', {}],
])('a dispute that is opened %s', (_what, disputes, facts, expected, payment) => {
  expect(decide(disputes, 'dispute_opened', facts, payment)).toContain(expected);
});

test.each<[string, Dispute[], DisputeReport['name'], Partial<DisputeReport>, string]>([
  ['is won', [OPEN], 'dispute_won', {}, 'close D1 400 0'],
  ['is won in part, with its fee', [OPEN], 'dispute_won', { amount: 1, fee: 15 }, 'close D1 1 15'],
  ['is won with more than it took', [OPEN], 'dispute_won', { amount: 401 }, 'more came back'],
  ['is won with more than its fee', [OPEN], 'dispute_won', { fee: 16 }, 'more came back'],
  ['is lost', [OPEN], 'dispute_lost', { amount: 400, fee: 15 }, 'close D1 0 0'],
  ['is lost with another amount', [OPEN], 'dispute_lost', { amount: 399 }, 'another amount'],
  ['is lost with another fee', [OPEN], 'dispute_lost', { fee: 16 }, 'another amount or fee'],
  ['is won by arbitration', [LOST], 'dispute_won', {}, 'close D1 400 0'],
  ['is lost after it was won', [WON], 'dispute_lost', {}, 'D1 is won already'],
  ['is won again', [WON], 'dispute_won', {}, 'repeated'],
  ['is won again by one report', [WON], 'dispute_won', { callback_id: 'cb-2' }, 'own report'],
  ['is won again otherwise', [WON], 'dispute_won', { amount: 399 }, 'D1 is won already'],
  ['is lost again', [LOST], 'dispute_lost', {}, 'repeated'],
  ['is not known', [], 'dispute_won', {}, 'no such dispute'],
  ['is one of two', [OPEN, OTHER], 'dispute_won', {}, 'no such dispute'],
  ['is named', [OPEN, OTHER], 'dispute_won', { dispute_id: 'D2' }, 'close D2 300'],
  ['has another name', [OPEN], 'dispute_lost', { dispute_id: 'D2' }, 'no such dispute'],
])('a dispute that %s', (_what, disputes, name, facts, expected) => {
  expect(decide(disputes, name, facts)).toContain(expected);
});

test('disputes take what did not come back, and one that has no end is open', () => {
  expect(sumDisputed([OPEN, OTHER, build({ state: 'won', won: 150 })])).toBe(950);
  expect(sumDisputed()).toBe(0);
  expect([[OPEN, LOST], [LOST, WON], []].map((disputes) => isDisputeOpen({ disputes }))).toEqual([
    ...[true, false, false],
  ]);
});
