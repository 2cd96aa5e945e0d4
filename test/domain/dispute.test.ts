import fc from 'fast-check';
import type { DisputeStatus } from '../../src/domain/dispute/dispute';
import {
  computeBorneFee,
  DISPUTE_CALLBACKS,
  type DisputedPayment,
  type DisputeFacts,
  type DisputeReport,
  type DisputeTransfer,
  decideReport,
  shareReturnedFee,
  sumTaken,
} from '../../src/domain/dispute/report';

const PAYMENT: DisputedPayment = { amount: 1_050, refunded: 0, currency: 'EUR' };
const AT = '2026-03-01T10:00:00.000Z';

const transfer = (
  direction: 'in' | 'out',
  amount: number,
  more: Partial<DisputeTransfer> = {},
) => ({ ...{ direction, amount, fee: 0, held: amount, owed: 0, at: AT, by: 'cb-1' }, ...more });
const build = (status: DisputeStatus, ...transfers: DisputeTransfer[]): DisputeFacts => ({
  ...{ status, reason: null, evidence_due_at: null, transfers },
});
const TAKEN = transfer('out', 400, { fee: 15 });
const BACK = transfer('in', 400, { by: 'cb-2' });
const OPEN = build('needs_response', TAKEN);
const INQUIRY = build('needs_response');
const WON = build('won', TAKEN, BACK);
const LOST = build('lost', TAKEN);
const ACCEPTED = build('accepted', TAKEN);
const GIVING_IN = { ...OPEN, answering: 'acceptance' } as const;
const ANSWERED = { ...OPEN, answering: 'evidence' } as const;

/** Decision in words. */
function decide(
  dispute: DisputeFacts | null,
  name: DisputeReport['name'],
  facts: Partial<DisputeReport> = {},
  payment: Partial<DisputedPayment> = {},
): string {
  const disputed = sumTaken(dispute?.transfers ?? []).amount;
  const report = { name, callback_id: 'cb-9', occurred_at: AT, ...facts };
  const decision = decideReport({ ...PAYMENT, disputed, ...payment }, dispute, report);
  switch (decision.kind) {
    case 'applied': {
      const { direction = '', amount = '', fee = '' } = decision.transfer ?? {};
      const changed = Object.entries(decision.change)
        .filter(([field]) => field !== 'reported_at')
        .map(([field, value]) => `${field} ${value}`);
      return [decision.to, direction, amount, fee, ...changed]
        .filter((each) => each !== '')
        .join(' ');
    }
    case 'named':
      return `named ${decision.by} ${decision.bank_reference}`;
    case 'repeated':
      return decision.isOwn ? 'own' : 'repeated';
    default:
      return `${decision.kind}: ${decision.why}`;
  }
}

const OPENED = 'needs_response out';
const SAME = { amount: 400, fee: 15 };

test.each<[string, DisputeFacts | null, Partial<DisputeReport>, string, Partial<DisputedPayment>?]>(
  [
    ['of all that settled', null, {}, `${OPENED} 1050 0`],
    ['of what settled', null, {}, `${OPENED} 999 0`, { settled_amount: 999 }],
    ['of more than settled', null, { amount: 1_000 }, '999 is left', { settled_amount: 999 }],
    ['of a part, with a fee', null, { amount: 400, fee: 15 }, `${OPENED} 400 15`],
    ['for its fee alone', null, { amount: 0, fee: 15 }, `${OPENED} 0 15`],
    ['of all that is left', null, { amount: 650 }, `${OPENED} 650 0`, { disputed: 400 }],
    ['of more than is left', null, { amount: 651 }, '650 is left', { disputed: 400 }],
    ['of what was refunded', null, { amount: 1_000 }, '949 is left', { refunded: 101 }],
    ['of what was refunded beyond it', null, {}, '1049 is left', { refunded_over: 1 }],
    [
      'in another currency',
      null,
      { currency: 'USD' },
      'refused: the bank reports a dispute in USD',
    ],
    ['as an inquiry', null, { amount: 0, code: '13.1' }, 'needs_response reason 13.1'],
    ['while the bank decides', null, { amount: 0, dispute_status: 'under_review' }, 'under_review'],
    ['after an inquiry', INQUIRY, { amount: 400 }, `${OPENED} 400 0`],
    ['after it was withdrawn', OPEN, { ...SAME, code: '10.4' }, 'needs_response reason 10.4'],
    ['again', OPEN, SAME, 'repeated'],
    ['again by its own report', OPEN, { callback_id: 'cb-1', fee: 15 }, 'own'],
    ['of another amount', OPEN, { amount: 401, fee: 15 }, 'refused: the dispute is known'],
    ['again without its fee', OPEN, {}, 'another amount or fee'],
    ['after the end', LOST, SAME, 'repeated'],
  ],
)('a dispute that is opened %s', (_what, dispute, facts, expected, payment = {}) => {
  expect(decide(dispute, 'dispute_opened', facts, payment)).toContain(expected);
});

test.each<[string, DisputeFacts | null, DisputeReport['name'], Partial<DisputeReport>, string]>([
  ['is won', OPEN, 'dispute_won', {}, 'won in 400 0'],
  ['is won in part, with its fee', OPEN, 'dispute_won', { amount: 1, fee: 15 }, 'won in 1 15'],
  ['is won without money', OPEN, 'dispute_won', { amount: 0 }, 'won'],
  ['is won with its fee alone', OPEN, 'dispute_won', { amount: 0, fee: 15 }, 'won in 0 15'],
  ['is won with more than it took', OPEN, 'dispute_won', { amount: 401 }, 'more came back'],
  ['is won with more than its fee', OPEN, 'dispute_won', { fee: 16 }, 'more came back'],
  ['is lost', OPEN, 'dispute_lost', { amount: 400, fee: 15 }, 'lost'],
  ['is lost while the merchant gives in', GIVING_IN, 'dispute_lost', {}, 'accepted'],
  ['is won while the merchant gives in', GIVING_IN, 'dispute_won', {}, 'won in 400 0'],
  ['is lost while evidence is being sent', ANSWERED, 'dispute_lost', {}, 'lost'],
  ['is lost with another amount', OPEN, 'dispute_lost', { amount: 399 }, 'another amount'],
  ['is lost with another fee', OPEN, 'dispute_lost', { fee: 16 }, 'another amount or fee'],
  ['is won by arbitration', LOST, 'dispute_won', {}, 'won in 400 0'],
  ['is won after it was accepted', ACCEPTED, 'dispute_won', {}, 'won in 400 0'],
  ['is lost after it was accepted', ACCEPTED, 'dispute_lost', {}, 'repeated'],
  ['is lost after it was won', WON, 'dispute_lost', {}, 'the dispute is won already'],
  ['is won again', WON, 'dispute_won', {}, 'repeated'],
  ['is won again by one report', WON, 'dispute_won', { callback_id: 'cb-2' }, 'own'],
  ['is won again otherwise', WON, 'dispute_won', { amount: 399 }, 'the dispute is won already'],
  ['is lost again', LOST, 'dispute_lost', {}, 'repeated'],
  ['is not known', null, 'dispute_won', {}, 'no such dispute'],
])('a dispute that %s', (_what, dispute, name, facts, expected) => {
  expect(decide(dispute, name, facts)).toContain(expected);
});

const NAMED = { bank_reference: 'R1' };
const ONCE = build('needs_response', transfer('out', 400, NAMED));

const [OUT, IN] = ['dispute_withdrawn', 'dispute_reinstated'] as const;

test.each<[string, DisputeFacts | null, DisputeReport['name'], Partial<DisputeReport>, string]>([
  ['is withdrawn first', null, OUT, { amount: 400, ...NAMED }, `${OPENED} 400 0`],
  ['is withdrawn for an inquiry', INQUIRY, OUT, { amount: 400, ...NAMED }, 'out 400'],
  ['is withdrawn again', ONCE, OUT, { amount: 400, ...NAMED }, 'repeated'],
  ['is withdrawn otherwise', ONCE, OUT, { amount: 401, ...NAMED }, 'refused'],
  ['names what was opened', OPEN, OUT, { amount: 400, fee: 15, ...NAMED }, 'named cb-1 R1'],
  ['is withdrawn without a name', INQUIRY, OUT, { amount: 400 }, 'bank reference'],
  ['is withdrawn without an amount', INQUIRY, OUT, NAMED, 'names no money'],
  ['is withdrawn after the end', build('won'), OUT, { amount: 9, ...NAMED }, 'won out 9'],
  ['is withdrawn beyond the rest', OPEN, OUT, { amount: 651, ...NAMED }, '650 is left'],
  ['comes back', OPEN, IN, { amount: 400, ...NAMED }, 'needs_response in 400'],
  ['comes back after the end', LOST, IN, { amount: 400, ...NAMED }, 'lost in 400'],
  ['names what was won', WON, IN, { amount: 400, ...NAMED }, 'named cb-2 R1'],
  ['comes back beyond it', OPEN, IN, { amount: 401, ...NAMED }, 'more came back'],
  ['comes back beyond its fee', OPEN, IN, { fee: 16, ...NAMED }, 'more came back'],
  ['comes back unknown', null, IN, { amount: 1, ...NAMED }, 'no such dispute'],
])('money of a dispute that %s', (_what, dispute, name, facts, expected) => {
  expect(decide(dispute, name, facts)).toContain(expected);
});

test.each([
  [20, 15, 'the whole of both'],
  [15, 15, 'the one that the merchant bore'],
  [5, 0, 'the one that the service bore'],
  [12, 12, 'a part of which nobody knows'],
  [18, 15, 'more than the merchant bore'],
])('of a fee of %i that comes back, the merchant gets %i: %s', (fee, borne) => {
  const service = { fee: 5, fee_bearer: 'service' } as const;
  const charged = [transfer('out', 400, { fee: 15 }), transfer('out', 0, service)];
  const back = shareReturnedFee(charged, fee);
  expect([back.fee, computeBorneFee(back)]).toEqual([fee, borne]);
  // What is back does not come back to the same side again.
  const rest = shareReturnedFee([...charged, transfer('in', 0, back)], 20 - fee);
  expect(computeBorneFee(rest)).toBe(15 - borne);
});

test('a fee that comes back later is never negative, where the merchant has had more than their part back', () => {
  const service = { fee: 5, fee_bearer: 'service' } as const;
  const charged = [transfer('out', 400, { fee: 5 }), transfer('out', 0, service)];
  // The bank gives one of the two fees back, and an operator reverses the entry of the other.
  const back = [transfer('in', 0, shareReturnedFee(charged, 5)), transfer('in', 0, { fee: 5 })];
  expect(shareReturnedFee([...charged, ...back], 0)).toEqual({ fee: 0 });
});

const DUE = '2026-03-08T10:00:00.000Z';
const REVIEW = { dispute_status: 'under_review' } as const;

test.each<[string, DisputeFacts, Partial<DisputeReport>, string]>([
  ['a later status', OPEN, REVIEW, 'under_review'],
  ['a deadline', OPEN, { evidence_due_at: DUE }, `needs_response evidence_due_at ${DUE}`],
  ['nothing new', OPEN, { dispute_status: 'needs_response' }, 'repeated'],
  ['a status after the end', LOST, REVIEW, 'late: the dispute is lost already'],
  [...(['a status that is older', { ...OPEN, reported_at: DUE }, REVIEW, 'late'] as const)],
])('an update of a dispute with %s', (_what, dispute, facts, expected) => {
  expect(decide(dispute, 'dispute_updated', facts)).toContain(expected);
});

/** Plays reports in any order, with repeats, and holds what was taken against a plain sum. */
test('whatever comes in whatever order, no money is posted twice, lost or beyond the payment', () => {
  const report = fc.record({
    name: fc.constantFrom(...DISPUTE_CALLBACKS),
    amount: fc.option(fc.integer({ min: 0, max: 700 }), { nil: undefined }),
    reference: fc.integer({ min: 0, max: 3 }),
    repeats: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(report, { maxLength: 25 }), (reports) => {
      let dispute: DisputeFacts | null = null;
      let taken = 0;
      const names = new Set<string>();
      const all = reports.flatMap((each, n) => Array(each.repeats ? 2 : 1).fill({ ...each, n }));
      for (const { name, amount, reference, n } of all) {
        const callback_id = `cb-${n}`;
        const isNamed = /withdrawn|reinstated/.test(name);
        const named = isNamed ? { bank_reference: `${name}-${reference}` } : {};
        const money = amount === undefined ? {} : { amount };
        const facts = { name, callback_id, occurred_at: AT, ...money, ...named };
        const known: DisputeFacts | null = dispute;
        const decision = decideReport({ ...PAYMENT, disputed: taken }, known, facts);
        const { transfers, ...before }: DisputeFacts = known ?? INQUIRY;
        if (decision.kind === 'named') {
          const { by, bank_reference } = decision;
          const rename = (each: DisputeTransfer) =>
            each.by === by ? { ...each, bank_reference } : each;
          dispute = { ...before, transfers: transfers.map(rename) };
        }
        if (decision.kind !== 'applied') continue;
        const moved = decision.transfer;
        const added = moved && {
          ...transfer(moved.direction, moved.amount, { by: callback_id, ...named }),
        };
        if (moved) taken += moved.direction === 'out' ? moved.amount : -moved.amount;
        if (added && isNamed) {
          // A name is of one movement.
          expect(names).not.toContain(added.bank_reference);
          names.add(added.bank_reference ?? '');
        }
        const next = added ? [...transfers, added] : transfers;
        dispute = { ...before, status: decision.to, transfers: next };
        expect(sumTaken(next).amount).toBe(taken);
        expect(taken).toBeGreaterThanOrEqual(0);
        expect(taken).toBeLessThanOrEqual(1_050);
      }
    }),
  );
});
