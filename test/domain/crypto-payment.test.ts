import fc from 'fast-check';
import { assertLawful, assertNever } from '../../src/domain/assert';
import {
  amountReceived,
  type DepositStep,
  depositKey,
  findUnscreened,
  isInSuspense,
  listDepositEntries,
} from '../../src/domain/crypto/deposit';
import { actOnDeposits, depositActFault } from '../../src/domain/crypto/deposit-acts';
import { getDepositAttention } from '../../src/domain/crypto/deposit-attention';
import {
  applyDeposit,
  applyReorg,
  applyScreening,
  applyWrongAsset,
} from '../../src/domain/crypto/deposit-report';
import {
  computeStatus,
  DEPOSITS_MAX,
  type DepositChange,
  type DepositSet,
} from '../../src/domain/crypto/deposit-set';
import {
  CRYPTO_PAYMENT_ACTS,
  CRYPTO_PAYMENT_TRANSITIONS,
  type CryptoPaymentStatus,
} from '../../src/domain/crypto/payment';
import { buildDepositLines } from '../../src/ledger/crypto-entries';

const DUE = 10n ** 18n;
const IN_TIME = '2026-11-22T10:00:00.000Z';
const TERMS = { required_confirmations: 2, expires_at: '2026-11-22T10:30:00.000Z' };
const LATE = '2026-11-22T10:30:00.001Z';

const EMPTY: DepositSet = {
  status: 'awaiting_deposit',
  amount_due: String(DUE),
  deposits: [],
  accepted: false,
  revision: 2,
};

/** Deposits of which a change posts an entry. */
function posted(before: DepositSet, after: DepositSet, wanted: DepositStep): string[] {
  return listDepositEntries(before.deposits, after.deposits)
    .filter(({ step }) => step === wanted)
    .map(({ deposit }) => deposit);
}

function report(transaction_id: string, amount: bigint, confirmations: number, seen_at = IN_TIME) {
  return { transaction_id, amount: String(amount), confirmations, seen_at, screening: null };
}

/** Book after a change, with the state that follows from it. */
function upon(book: DepositSet, change: DepositChange, isOpen = true): DepositSet {
  if (change.kind === 'unapplied') return book;
  const { deposits, accepted = book.accepted } = change;
  const next = { ...book, deposits, accepted };
  return { ...next, status: computeStatus(next, isOpen) };
}

/** Book with one deposit more, as deep as it must be and screened. */
function paid(book: DepositSet, id: string, amount: bigint, seen_at = IN_TIME, isOpen = true) {
  const seen = upon(book, applyDeposit(book, report(id, amount, 2, seen_at), TERMS), isOpen);
  return upon(seen, applyScreening(seen, id, 'passed'), isOpen);
}

const statuses = ({ deposits }: DepositSet) => deposits.map(({ status }) => status);

describe('a deposit', () => {
  test('counts once it is deep enough and its source has passed', () => {
    const seen = upon(EMPTY, applyDeposit(EMPTY, report('a', DUE, 1), TERMS));
    expect([seen.status, statuses(seen)]).toEqual(['awaiting_deposit', ['pending']]);
    const deep = upon(seen, applyDeposit(seen, report('a', DUE, 2), TERMS));
    expect([deep.status, findUnscreened(deep.deposits).length]).toEqual(['awaiting_deposit', 1]);
    const counted = upon(deep, applyScreening(deep, 'a', 'passed'));
    expect([counted.status, amountReceived(counted.deposits)]).toEqual(['received', DUE]);
  });

  test('too small makes it underpaid, and a top-up received', () => {
    const short = paid(EMPTY, 'a', DUE - 1n);
    expect(short.status).toBe('underpaid');
    expect([getDepositAttention(short, true), getDepositAttention(short, false)]).toEqual([
      null,
      'underpaid',
    ]);
    expect(paid(short, 'b', 1n).status).toBe('received');
    const asItIs = upon(short, actOnDeposits(short, 'accept'));
    expect([asItIs.status, amountReceived(asItIs.deposits)]).toEqual(['received', DUE - 1n]);
  });

  test('too small goes back once the window is over, and only once', () => {
    const short = paid(EMPTY, 'a', DUE - 1n);
    expect(depositActFault(short, 'return', true)).toMatch(/may still send the rest/);
    const seen = upon(short, applyDeposit(short, report('b', 1n, 0), TERMS), false);
    expect(depositActFault(seen, 'return', false)).toMatch(/not confirmed yet/);
    expect(depositActFault(short, 'return', false)).toBeUndefined();
    const back = upon(short, actOnDeposits(short, 'return'), false);
    expect([back.status, statuses(back), amountReceived(back.deposits)]).toEqual([
      'expired',
      ['rejected'],
      0n,
    ]);
    expect(posted(short, back, 'withdrawn')).toEqual(['a']);
    expect(posted(back, upon(back, actOnDeposits(back, 'return')), 'withdrawn')).toEqual([]);
    expect(applyReorg(back, 'a').kind).toBe('unapplied');
    expect(getDepositAttention(back, false)).toBe('deposit_to_return');
    const sent = actOnDeposits(back, 'mark_sent_back', { transaction_id: 'out', address: '0xabc' });
    const done = upon(back, sent, false);
    expect(posted(back, done, 'sent_back')).toEqual(['a']);
    expect(done.deposits[0]?.left).toEqual({
      as: 'returned',
      transaction_id: 'out',
      address: '0xabc',
    });
    expect([done.status, getDepositAttention(done, false)]).toEqual(['expired', null]);
    expect(depositActFault(done, 'mark_sent_back', false)).toMatch(/No deposit is in suspense/);
  });

  test('of a source that fails is held, then released once', () => {
    const seen = upon(EMPTY, applyDeposit(EMPTY, report('a', DUE, 2), TERMS));
    const held = upon(seen, applyScreening(seen, 'a', 'failed'));
    expect([held.status, getDepositAttention(held, true)]).toEqual(['held', 'deposit_held']);
    const released = upon(held, actOnDeposits(held, 'release'));
    expect([released.status, statuses(released)]).toEqual(['received', ['confirmed']]);
    expect(depositActFault(released, 'release', true)).toMatch(/No deposit is held/);
    const rejected = upon(held, actOnDeposits(held, 'reject'));
    expect([rejected.status, statuses(rejected)]).toEqual(['awaiting_deposit', ['rejected']]);
    expect(computeStatus(rejected, false)).toBe('expired');
  });

  test('that comes late waits for an operator', () => {
    const expired: DepositSet = { ...EMPTY, status: 'expired' };
    const late = paid(expired, 'a', DUE, LATE, false);
    expect([late.status, statuses(late), getDepositAttention(late, false)]).toEqual([
      'expired',
      ['held'],
      'late_deposit',
    ]);
    expect(upon(late, actOnDeposits(late, 'credit_late'), false).status).toBe('received');
  });

  test('beyond what is due counts too', () => {
    const more = paid(paid(EMPTY, 'a', DUE), 'b', 5n);
    expect([more.status, amountReceived(more.deposits)]).toEqual(['received', DUE + 5n]);
  });

  test('seen in time keeps the window open, and is forgotten when the chain gives it up', () => {
    const seen = upon(EMPTY, applyDeposit(EMPTY, report('a', DUE, 1), TERMS), false);
    expect(seen.status).toBe('awaiting_deposit');
    const forgotten = upon(seen, applyReorg(seen, 'a'), false);
    expect([forgotten.status, forgotten.deposits]).toEqual(['expired', []]);
  });

  test('given up after it counted is kept, for a person', () => {
    const counted = paid(EMPTY, 'a', DUE);
    const undone = upon(counted, applyReorg(counted, 'a'));
    expect([undone.status, getDepositAttention(undone, true)]).toEqual([
      'received',
      'deposit_undone',
    ]);
    const back = upon(undone, applyDeposit(undone, report('a', DUE, 1), TERMS));
    expect(getDepositAttention(back, true)).toBeNull();
    expect(applyDeposit(back, report('a', 1n, 3), TERMS)).toMatchObject({
      attention: 'amount_differs',
    });
  });

  test('is one of a bounded number, and the one that completes the payment always has room', () => {
    let book = EMPTY;
    for (let n = 0; n <= DEPOSITS_MAX; n += 1) {
      book = upon(book, applyDeposit(book, report(`small ${n}`, 1n, 0), TERMS));
    }
    expect(book.deposits).toHaveLength(DEPOSITS_MAX);
    const unconfirmed = applyDeposit(book, report('real', DUE, 1), TERMS);
    expect(unconfirmed).toMatchObject({ attention: 'too_many_deposits' });
    expect(paid(book, 'real', DUE).status).toBe('received');
  });

  test('below the least amount is dust, unless it completes the payment', () => {
    const terms = { ...TERMS, least_deposit: '1000' };
    const dust = (book: DepositSet, amount: bigint) =>
      applyDeposit(book, report('dust', amount, 2), terms);
    expect(dust(EMPTY, 999n)).toMatchObject({ reason: expect.stringMatching(/dust/) });
    expect(dust(EMPTY, 999n)).not.toHaveProperty('attention');
    expect(dust(EMPTY, 1_000n)).toMatchObject({ kind: 'changed' });
    expect(dust(paid(EMPTY, 'a', DUE - 5n), 5n)).toMatchObject({ kind: 'changed' });
    expect(dust(paid(EMPTY, 'a', DUE), 5n)).toMatchObject({ kind: 'unapplied' });
  });

  test.each<[string, string | undefined, string, boolean]>([
    ['seen in time', undefined, IN_TIME, false],
    ['seen in time, mined late', LATE, IN_TIME, false],
    ['mined in time, seen late', IN_TIME, LATE, false],
    ['mined and seen late', LATE, LATE, true],
    ['seen late', undefined, LATE, true],
  ])('%s is judged by these times, also once the payment has expired', (_, mined, seen, late) => {
    const times = { ...report('a', DUE, 2, seen), ...(mined && { mined_at: mined }) };
    for (const status of ['awaiting_deposit', 'expired'] as const) {
      const change = applyDeposit({ ...EMPTY, status }, times, TERMS);
      expect(change).toMatchObject({ deposits: [{ late }] });
    }
    const first = applyDeposit({ ...EMPTY, revision: 1, status: 'expired' }, times, TERMS);
    expect(first).toMatchObject({ deposits: [{ late: true }] });
  });

  test('of another asset is in suspense until it leaves, and never counts', () => {
    const wrong = { ...report('a', DUE, 2), asset: 'USDC' };
    const book = upon(EMPTY, applyWrongAsset(EMPTY, wrong, TERMS));
    expect([book.status, getDepositAttention(book, true)]).toEqual([
      'awaiting_deposit',
      'wrong_asset',
    ]);
    expect(applyWrongAsset(book, wrong, TERMS).kind).toBe('unapplied');
    const both = paid(book, 'a', DUE);
    expect([both.status, statuses(both)]).toEqual(['received', ['rejected', 'confirmed']]);
    const unknown = applyWrongAsset(EMPTY, { ...wrong, asset: undefined }, TERMS);
    expect(unknown).toMatchObject({ kind: 'unapplied', attention: 'wrong_asset' });
  });

  test('that is gone after it counted is the loss of the merchant, or ours', () => {
    const counted = paid(EMPTY, 'a', DUE);
    const undone = upon(counted, applyReorg(counted, 'a'));
    const debited = upon(undone, actOnDeposits(undone, 'debit_reorged'));
    const borne = upon(undone, actOnDeposits(undone, 'write_off'));
    expect(posted(undone, debited, 'returned')).toEqual(['a']);
    expect(posted(undone, borne, 'written_off')).toEqual(['a']);
    expect([amountReceived(debited.deposits), amountReceived(borne.deposits)]).toEqual([0n, DUE]);
    for (const book of [debited, borne]) {
      expect(getDepositAttention(book, true)).toBeNull();
      expect(depositActFault(book, 'debit_reorged', true)).toMatch(/gone from the chain/);
      const again = applyDeposit(book, report('a', DUE, 3), TERMS);
      expect(again).toMatchObject({ attention: 'amount_differs' });
    }
  });

  test('that stays pending is confirmed by an operator, who names it, and then screened', () => {
    const seen = upon(EMPTY, applyDeposit(EMPTY, report('a', DUE, 1), TERMS));
    expect(depositActFault(seen, 'confirm', true, { transaction_id: 'b' })).toMatch(/No deposit/);
    expect(depositActFault(seen, 'confirm', true, { transaction_id: 'a' })).toBeUndefined();
    const confirmed = upon(seen, actOnDeposits(seen, 'confirm', { transaction_id: 'a' }));
    expect(findUnscreened(confirmed.deposits)).toHaveLength(1);
    expect(upon(confirmed, applyScreening(confirmed, 'a', 'passed')).status).toBe('received');
  });
});

/** Steps of the world, in any order. */
type Step =
  | { kind: 'deposit'; id: string; confirmations: number; late: boolean }
  | { kind: 'wrong_asset'; id: string }
  | { kind: 'undone'; id: string }
  | { kind: 'screened'; id: string; verdict: 'passed' | 'failed' }
  | { kind: 'act'; act: (typeof CRYPTO_PAYMENT_ACTS)[number] }
  | { kind: 'closed' };

const ids = fc.constantFrom('a', 'b', 'c', 'd');
const steps: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    kind: fc.constant('deposit' as const),
    id: ids,
    confirmations: fc.nat(4),
    late: fc.boolean(),
  }),
  fc.record({ kind: fc.constant('undone' as const), id: ids }),
  fc.record({ kind: fc.constant('wrong_asset' as const), id: ids }),
  fc.record({
    kind: fc.constant('screened' as const),
    id: ids,
    verdict: fc.constantFrom('passed' as const, 'failed' as const),
  }),
  fc.record({ kind: fc.constant('act' as const), act: fc.constantFrom(...CRYPTO_PAYMENT_ACTS) }),
  fc.constant({ kind: 'closed' as const }),
);

test('any interleaving has in the books what is credited and what is held, to the unit, and moves lawfully', () => {
  const units = fc.bigInt({ min: 1n, max: 10n ** 24n });
  const amounts = fc.record({ a: units, b: units, c: units, d: units });
  fc.assert(
    fc.property(fc.array(steps, { maxLength: 40 }), amounts, units, (world, sizes, due) => {
      const sizeOf = new Map(Object.entries(sizes));
      let book: DepositSet = { ...EMPTY, amount_due: String(due) };
      let isOpen = true;
      const entries = new Set<string>();
      const ledger = new Map<string, bigint>();
      const told: CryptoPaymentStatus[] = [];
      for (const step of world) {
        if (step.kind === 'closed') isOpen = false;
        const next = upon(book, changeBy(book, step, sizeOf, isOpen), isOpen);
        const moved = { ...next, status: computeStatus(next, isOpen) };
        if (moved.status !== book.status) {
          assertLawful(CRYPTO_PAYMENT_TRANSITIONS, book.status, [moved.status]);
          told.push(moved.status);
        }
        for (const { step: entry, deposit: key } of listDepositEntries(
          book.deposits,
          moved.deposits,
        )) {
          expect(entries).not.toContain(`${entry}:${key}`);
          entries.add(`${entry}:${key}`);
          const deposit = moved.deposits.find((each) => depositKey(each) === key);
          if (deposit === undefined) throw new Error(`No deposit ${key}`);
          for (const { account, amount } of buildDepositLines(entry, 'chain', deposit)) {
            ledger.set(account, (ledger.get(account) ?? 0n) + BigInt(amount));
          }
        }
        book = moved;
        const credited = ledger.get('balances.main.available') ?? 0n;
        expect(credited).toBe(amountReceived(book.deposits));
        const inSuspense = book.deposits.filter(isInSuspense);
        const held = inSuspense.reduce((sum, { amount }) => sum + BigInt(amount), 0n);
        expect(ledger.get('suspense.deposits') ?? 0n).toBe(held);
        expect(credited > 0n && ['awaiting_deposit', 'expired'].includes(book.status)).toBe(false);
      }
      expect(told.filter((status) => status === 'received').length).toBeLessThanOrEqual(1);
    }),
    { numRuns: 2_000 },
  );
});

function changeBy(
  book: DepositSet,
  step: Step,
  sizeOf: Map<string, bigint>,
  isOpen: boolean,
): DepositChange {
  switch (step.kind) {
    case 'deposit': {
      const { id, confirmations, late } = step;
      const seen_at = late ? LATE : IN_TIME;
      const size = sizeOf.get(id) ?? 0n;
      return applyDeposit(book, report(id, size, confirmations, seen_at), TERMS);
    }
    case 'wrong_asset': {
      const amount = sizeOf.get(step.id) ?? 0n;
      return applyWrongAsset(book, { ...report(step.id, amount, 2), asset: 'USDC' }, TERMS);
    }
    case 'undone':
      return applyReorg(book, step.id);
    case 'screened':
      return applyScreening(book, step.id, step.verdict);
    case 'act': {
      const { act } = step;
      const nothing = { kind: 'unapplied', reason: 'not possible' } as const;
      if (act === 'snooze' || act === 'acknowledge') return nothing;
      if (depositActFault(book, act, isOpen) !== undefined) return nothing;
      if (['accept', 'return'].includes(act) && book.status !== 'underpaid') return nothing;
      return actOnDeposits(book, act, { transaction_id: 'a' });
    }
    case 'closed':
      return { kind: 'unapplied', reason: 'only time passed' };
    default:
      return assertNever(step);
  }
}
