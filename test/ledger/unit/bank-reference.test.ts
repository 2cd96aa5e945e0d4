import type { Direction, Outcome } from '../../../src/domain/banks/movement';
import * as entries from '../../../src/ledger/resource-entries';
import { buildBankFacts, findClearing } from '../../../src/ledger/uncleared';
import { makeMovement } from '../../support/movements';

const time = { at: '2026-03-04T05:06:07.089Z' };
const resource = {
  ...{ _id: 'r1', account_id: 'acct_1', livemode: true, currency: 'EUR', connector: 'acme' },
  ...{ amount: 1_000, fee: 0, balance_account: 'main', created_at: time.at },
  bank_reference: 'own',
};
const report = { ...time, bank_reference: 'again' };
const chargeback = { direction: 'out', amount: 1_000, held: 0, owed: 1_000, fee: 0 } as const;
const dispute = { ...chargeback, held: 1_000, owed: 15, fee: 15 };
const won = { direction: 'in', amount: 900, held: 0, owed: 0, fee: 0 } as const;

type MovingKind = entries.MovingKind;
const { buildRefundEntry, buildSettlement, buildDisputeTransfer, buildMovementResolved } = entries;
type Taken = Parameters<typeof buildDisputeTransfer>;
const take = (kind: Taken[1], transfer: Taken[2], booking: Taken[3] = report) =>
  buildDisputeTransfer(resource, kind, transfer, booking);
const settle = (held: number) => buildSettlement(resource, { held, fee: 40 }, time);
const moved = (direction: Direction) =>
  makeMovement({ direction, bank_reference: 'moved', currency: 'USD' });
const hold = (kind: MovingKind, direction: Direction) =>
  entries.buildMovementHeld(kind, resource, moved(direction), time.at).entry;
const resolve = (
  kind: MovingKind,
  direction: Direction,
  as: Outcome,
  booking: Partial<typeof report> & typeof time = report,
) => buildMovementResolved(kind, resource, moved(direction), { as, amount: 1_000 }, booking).entry;
const buildPayout = (from: 'submitted' | 'sent', to: 'sent' | 'failed' | 'returned') => {
  const change = { ...time, from: { status: from }, to: [to] };
  const [entry] = entries.buildPayoutEntries(resource, change);
  if (entry === undefined) throw new Error('No entry.');
  return entry;
};

test.each([
  ['a settlement', settle(0), 'own', 1_000],
  ['the rest of a settlement', settle(300), 'own', 700],
  ['late funds', hold('payment', 'in'), 'moved', 1_000],
  ['their return', resolve('payment', 'in', 'customer'), 'again', -1_000],
  ['their unnamed return', resolve('payment', 'in', 'customer', time), undefined, -1_000],
  ['what goes to the bank', resolve('payment', 'in', 'bank'), 'again', -1_000],
  ['a report that was wrong', resolve('payment', 'in', 'never_happened', time), undefined, -1_000],
  ['a chargeback', take('clawed_back', chargeback, time), undefined, -1_000],
  ['a dispute with its fee', take('dispute_opened', dispute), 'again', -1_000],
  ['a won dispute', take('dispute_opened', won), 'again', 900],
  ['a refund', buildRefundEntry('refund_settled', resource, time), 'own', -1_000],
  ['a refund that is sent late', hold('refund', 'out'), 'moved', -1_000],
  ['a refund that came back', hold('refund', 'in'), 'moved', 1_000],
  ['a payout that is sent again', hold('payout', 'out'), 'moved', -1_000],
  ['what the bank has back of it', resolve('payout', 'out', 'bank'), 'again', 1_000],
  ['a return in suspense', hold('payout', 'in'), 'moved', 1_000],
  ['a payout', buildPayout('submitted', 'sent'), 'own', -1_000],
  ['a payout that fails', buildPayout('sent', 'failed'), 'own', 1_000],
  ['a payout that returns', buildPayout('sent', 'returned'), 'own', 1_000],
] as const)('%s has the reference and amount of its movement at the bank', (_, entry, ...named) => {
  const { bank_day, bank_reference, bank_amount } = buildBankFacts(entry);
  expect([bank_day, bank_reference, Number(bank_amount)]).toEqual(['2026-03-04', ...named]);
  expect(findClearing(entry.lines)?.connector).toBe('acme');
});

test.each([
  ['an accepted refund', buildRefundEntry('refund_accepted', resource, time)],
  ['a released payout', buildPayout('submitted', 'failed')],
  ['a settlement that is in suspense already', settle(1_000)],
  ['late funds of the merchant', resolve('payment', 'in', 'merchant')],
  ['late funds that nobody has', resolve('payment', 'in', 'loss')],
  ['a payout that the merchant bears', resolve('payout', 'out', 'merchant')],
  ['a payout that nobody bears', resolve('payout', 'out', 'loss')],
])('%s has no movement at the bank', (_, entry) => {
  expect(buildBankFacts(entry)).toEqual({});
});

test('what never moved awaits no statement line, where it is all of a movement', () => {
  const all = resolve('payout', 'out', 'never_happened');
  expect(all.offsets).toBe('payout_held:r1:mv_1');
  const parts = { ...moved('out'), applied: 400 };
  const part = { as: 'never_happened', amount: 600 } as const;
  const { entry } = buildMovementResolved('payout', resource, parts, part, report);
  expect(entry.offsets).toBeUndefined();
  expect(resolve('payout', 'out', 'bank').offsets).toBeUndefined();
});

test('each part of a movement that leaves suspense has an entry of its own', () => {
  const part = { as: 'loss', amount: 300 } as const;
  const resolution = { ...part, operator: 'mia', reason: 'Why', at: time.at };
  const second = { ...moved('in'), resolutions: [resolution] };
  const ids = [moved('in'), second].map(
    (movement) => buildMovementResolved('refund', resource, movement, part, report).id,
  );
  expect(ids).toEqual(['refund_resolved:r1:mv_1', 'refund_resolved:r1:mv_1#2']);
});
