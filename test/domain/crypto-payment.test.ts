import fc from 'fast-check';
import { assertLawful, assertNever } from '../../src/domain/assert';
import {
  isInSuspense,
  type Movement,
  OUTCOMES,
  type Outcome,
  sumRests,
} from '../../src/domain/banks/movement';
import { amountReceived, findUnscreened } from '../../src/domain/crypto/deposit';
import {
  actOnDeposits,
  depositActFault,
  findResolutionFault,
  resolveDeposit,
} from '../../src/domain/crypto/deposit-acts';
import {
  changeMovement,
  type DepositEntry,
  type DepositStep,
  findDepositMovement,
  isCredited,
  listDepositEntries,
} from '../../src/domain/crypto/deposit-money';
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
  getDepositAttention,
  outranksReason,
} from '../../src/domain/crypto/deposit-set';
import {
  CRYPTO_PAYMENT_ACTS,
  CRYPTO_PAYMENT_TRANSITIONS,
  type CryptoPaymentAttention,
  type CryptoPaymentStatus,
} from '../../src/domain/crypto/payment';
import { buildDepositLines } from '../../src/ledger/crypto-entries';
import { makeMovement } from '../support/movements';

const DUE = 1_000n;
const IN_TIME = '2026-11-22T10:00:00.000Z';
const TERMS = { required_confirmations: 2, expires_at: '2026-11-22T10:30:00.000Z' };
const LATE = '2026-11-22T10:30:00.001Z';

/** Row of the register. */
type Row = Movement & { entry: string };

/** Deposits with their rows, and each entry that was posted. */
interface World extends DepositSet {
  movements: readonly Row[];
  entries: readonly Posted[];
}

interface Posted {
  kind: DepositEntry;
  deposit: string;
  /** As it was before the entry. */
  row: Row;
}

const EMPTY: World = {
  status: 'awaiting_deposit',
  sufficient: String(DUE),
  deposits: [],
  movements: [],
  entries: [],
  accepted: false,
};
const EXPIRED: World = { ...EMPTY, status: 'expired' };

/** Lists deposits with an entry of this kind that `after` has, and `before` has not. */
function listPosted(before: World, after: World, wanted: DepositEntry): string[] {
  return after.entries
    .slice(before.entries.length)
    .filter(({ kind }) => kind === wanted)
    .map(({ deposit }) => deposit);
}

/** Changes a row as the register does. */
function record(world: World, step: DepositStep): World {
  const { deposit: key } = step;
  const deposit = world.deposits.find((each) => each.key === key);
  if (deposit === undefined) throw new Error(`No deposit ${key}`);
  const known = findDepositMovement(world.movements, { key });
  const isNew = known === undefined && (step.step === 'held' || step.step === 'credited');
  const row = known ?? {
    ...makeMovement({ id: `mv_${key}`, amount: deposit.amount }),
    sources: [{ kind: 'block', id: key, at: '' }],
    entry: `crypto_payment_${step.step}:payment:${key}`,
  };
  if (known === undefined && !isNew) throw new Error(`No movement of ${key}`);
  const decision = { operator: null, reason: null, at: '' };
  const changed = { ...row, ...changeMovement(row, step, decision) };
  const others = world.movements.filter((each) => each !== known);
  const posted = step.step === 'noted' ? [] : [{ kind: step.step, deposit: key, row }];
  return { ...world, movements: [...others, changed], entries: [...world.entries, ...posted] };
}

function report(transaction_id: string, amount: bigint, confirmations: number, seen_at = IN_TIME) {
  return { transaction_id, amount: String(amount), confirmations, seen_at, screening: null };
}

/** Deposits after a change, with the status that follows from them. */
function apply(set: World, change: DepositChange, isOpen = true): World {
  if (change.kind === 'unapplied') return set;
  const { deposits, steps, accepted = set.accepted } = change;
  const next = steps.reduce(record, { ...set, deposits, accepted });
  return { ...next, status: computeStatus(next, isOpen) };
}

type Act = Parameters<typeof actOnDeposits>[1];
type Params = Parameters<typeof actOnDeposits>[2];

const see = (set: World, id: string, amount: bigint, confirmations: number, isOpen = true) =>
  apply(set, applyDeposit(set, report(id, amount, confirmations), TERMS), isOpen);
const screen = (set: World, id: string, verdict: 'passed' | 'failed') =>
  apply(set, applyScreening(set, id, verdict));
const reorg = (set: World, id: string, isOpen = true) => apply(set, applyReorg(set, id), isOpen);
const act = (set: World, name: Act, params?: Params, isOpen = true) =>
  apply(set, actOnDeposits(set, name, params), isOpen);
/** Resolves the first that is in suspense. */
const resolve = (set: World, as: Outcome, back?: Params, isOpen = true) => {
  const movement = set.movements.find(isInSuspense);
  if (movement === undefined) throw new Error('Nothing is in suspense.');
  return apply(set, resolveDeposit(set, movement, as, back), isOpen);
};
const pay = (set: World, id: string, amount: bigint) =>
  screen(see(set, id, amount, 2), id, 'passed');

/** Status, statuses of deposits, units received, and the attention reason, in words. */
function describeWorld(set: World, isOpen = true): string {
  const { status, deposits } = set;
  const money = `${amountReceived(deposits)}`;
  const unscreened = findUnscreened(deposits).length > 0 ? 'unscreened' : '';
  const words = [status, ...deposits.map((each) => each.status), money, unscreened];
  return [...words, getDepositAttention(set, isOpen)].filter(Boolean).join(' ');
}

const seen = see(EMPTY, 'a', DUE, 1);
const short = pay(EMPTY, 'a', DUE - 1n);
const returned = act(short, 'return', undefined, false);
const held = screen(see(EMPTY, 'a', DUE, 2), 'a', 'failed');
const tardy = apply(EXPIRED, applyDeposit(EXPIRED, report('a', DUE, 2, LATE), TERMS), false);
const late = apply(tardy, applyScreening(tardy, 'a', 'passed'), false);
const undone = reorg(pay(EMPTY, 'a', DUE), 'a');
const found = see(undone, 'a', DUE, 1);
const doubt = { ...report('a', DUE, 2), screening: 'failed' } as const;
const doubted = apply(found, applyDeposit(found, doubt, TERMS));
const wrong = { ...report('a', DUE, 2), asset: 'USDC' };
const mistaken = apply(EMPTY, applyWrongAsset(EMPTY, wrong, TERMS));
const BACK = { transaction_id: 'out', address: '0xabc' };

test.each<[string, World, string, boolean?]>([
  ['is not confirmed', seen, 'awaiting_deposit pending 0'],
  ['is confirmed', see(seen, 'a', DUE, 2), 'awaiting_deposit pending 0 unscreened'],
  ['has passed screening', pay(EMPTY, 'a', DUE), 'received confirmed 1000'],
  ['is too small', short, 'underpaid confirmed 999'],
  ['is too small, after the window', short, 'underpaid confirmed 999 underpaid', false],
  ['was topped up', pay(short, 'b', 1n), 'received confirmed confirmed 1000'],
  ['was topped up beyond the rest', pay(short, 'b', 5n), 'received confirmed confirmed 1004'],
  ['an operator accepts', act(short, 'accept'), 'received confirmed 999'],
  ['is returned', returned, 'expired rejected 0 deposit_to_return', false],
  ['went back', resolve(returned, 'customer', BACK, false), 'expired rejected 0', false],
  ['failed screening', held, 'held held 0 deposit_held'],
  ['was released', act(held, 'release'), 'received confirmed 1000'],
  ['was rejected', act(held, 'reject'), 'awaiting_deposit rejected 0 deposit_to_return'],
  ['is late', late, 'expired held 0 late_deposit', false],
  ['is late, and credited', act(late, 'credit_late', undefined, false), 'received confirmed 1000'],
  ['keeps the window open', see(EMPTY, 'a', DUE, 1, false), 'awaiting_deposit pending 0', false],
  ['is dropped after the window', reorg(seen, 'a', false), 'expired 0', false],
  ['is dropped after it counted', undone, 'received confirmed 1000 deposit_undone'],
  ['is there again', found, 'received confirmed 1000 deposit_undone'],
  ['is there again, and confirmed', see(found, 'a', DUE, 2), 'received confirmed 1000'],
  ['is there again, and one node lacks', doubted, 'received confirmed 1000 deposit_undone'],
  ['is gone, and debited', resolve(undone, 'merchant'), 'received rejected 0'],
  ['is gone, and our loss', resolve(undone, 'loss'), 'received confirmed 1000'],
  ['has another asset', mistaken, 'awaiting_deposit rejected 0 wrong_asset'],
  ['follows one', pay(mistaken, 'a', DUE), 'received rejected confirmed 1000 wrong_asset'],
])('a payment with a deposit that %s is as documented', (_, set, words, isOpen = true) => {
  expect(describeWorld(set, isOpen)).toBe(words);
});

test('a payment of more units than a number holds is short by exactly one unit, and received with it', () => {
  const due = 10n ** 19n + 1n;
  const lacking = pay({ ...EMPTY, sufficient: String(due) }, 'a', due - 1n);
  expect(describeWorld(lacking)).toBe(`underpaid confirmed ${due - 1n}`);
  expect(describeWorld(pay(lacking, 'b', 1n))).toBe(`received confirmed confirmed ${due}`);
});

describe('a deposit', () => {
  test('too small is returned once, after the window is over', () => {
    expect(depositActFault(short, 'return', true)).toMatch(/may still send the rest/);
    const unconfirmed = see(short, 'b', 1n, 0, false);
    expect(depositActFault(unconfirmed, 'return', false)).toMatch(/not confirmed yet/);
    expect(depositActFault(short, 'return', false)).toBeUndefined();
    expect(listPosted(short, returned, 'withdrawn')).toEqual(['a']);
    expect(listPosted(returned, act(returned, 'return'), 'withdrawn')).toEqual([]);
    expect(applyReorg(returned, 'a').kind).toBe('unapplied');
    const done = resolve(returned, 'customer', BACK, false);
    expect(listPosted(returned, done, 'sent_back')).toEqual(['a']);
    const [{ resolutions } = { resolutions: [] }] = done.movements;
    expect(resolutions).toMatchObject([{ as: 'customer', address: '0xabc' }]);
    expect(done.movements.filter(isInSuspense)).toEqual([]);
  });

  test('is released once, and leaves the window of a rejected one as it is', () => {
    expect(depositActFault(act(held, 'release'), 'release', true)).toMatch(/No deposit is held/);
    expect(computeStatus(act(held, 'reject'), false)).toBe('expired');
  });

  test('that is seen again with another amount needs attention', () => {
    const again = applyDeposit(found, report('a', 1n, 3), TERMS);
    expect(again).toMatchObject({ attention: 'amount_differs' });
  });

  test('beyond the maximum number is refused unless it completes the payment', () => {
    let set: World = { ...EMPTY, sufficient: '100000' };
    for (let n = 0; n <= DEPOSITS_MAX; n += 1) set = see(set, `small ${n}`, 1n, 0);
    expect(set.deposits).toHaveLength(DEPOSITS_MAX);
    const unconfirmed = applyDeposit(set, report('real', 100_000n, 1), TERMS);
    expect(unconfirmed).toMatchObject({ attention: 'too_many_deposits' });
    expect(pay(set, 'real', 100_000n).status).toBe('received');
  });

  test.each<[World, bigint, object]>([
    [EMPTY, 9n, { kind: 'unapplied', reason: expect.stringMatching(/dust/) }],
    [EMPTY, 10n, { kind: 'changed' }],
    [pay(EMPTY, 'a', DUE - 5n), 5n, { kind: 'changed' }],
    [pay(EMPTY, 'a', DUE), 5n, { kind: 'unapplied' }],
  ])(
    'below the least amount is dust, unless it completes the payment: %#',
    (set, amount, change) => {
      const dust = applyDeposit(set, report('dust', amount, 2), { ...TERMS, least_deposit: '10' });
      expect(dust).toMatchObject(change);
      expect(dust).not.toHaveProperty('attention');
    },
  );

  test.each<[string, string | undefined, string, boolean]>([
    ['seen in time', undefined, IN_TIME, false],
    ['seen in time, mined late', LATE, IN_TIME, false],
    ['mined in time, seen late', IN_TIME, LATE, false],
    ['mined and seen late', LATE, LATE, true],
    ['seen late', undefined, LATE, true],
  ])('%s is judged by these times, also after the payment expired', (_, mined, seenAt, isLate) => {
    const times = { ...report('a', DUE, 2, seenAt), ...(mined && { mined_at: mined }) };
    for (const set of [EMPTY, EXPIRED]) {
      expect(applyDeposit(set, times, TERMS)).toMatchObject({ deposits: [{ late: isLate }] });
    }
  });

  test('of another asset is held once each time that it is there', () => {
    expect(applyWrongAsset(mistaken, wrong, TERMS).kind).toBe('unapplied');
    const gone = apply(mistaken, applyReorg(mistaken, 'a', 'USDC'));
    const again = apply(gone, applyWrongAsset(gone, wrong, TERMS));
    expect(listPosted(gone, again, 'held')).toEqual(['a:USDC#2']);
    const unknown = applyWrongAsset(EMPTY, { ...wrong, asset: undefined }, TERMS);
    expect(unknown).toMatchObject({ kind: 'unapplied', attention: 'wrong_asset' });
  });

  const CREDIT = ['late_deposit', 'credit_late'] as const;
  test.each<[string, World, string, 'credit_late' | 'loss', posted?: DepositEntry]>([
    ['held as late', reorg(late, 'a', false), ...CREDIT],
    ['debited', resolve(undone, 'merchant'), ...CREDIT, 'returned'],
    ['our loss', resolve(undone, 'loss'), 'deposit_to_return', 'loss', 'written_off'],
  ])(
    'that was gone while it was %s, and comes again, is a new step',
    (_, gone, reason, what, ...[posted]) => {
      if (posted !== undefined) expect(listPosted(undone, gone, posted)).toEqual(['a']);
      expect(gone.movements.filter(isInSuspense)).toEqual([]);
      const found = apply(gone, applyDeposit(gone, report('a', DUE, 1), TERMS), false);
      const again = see(found, 'a', DUE, 3);
      expect(listPosted(gone, again, 'held')).toEqual(['a#2']);
      expect(getDepositAttention(again, false)).toBe(reason);
      const decided = what === 'loss' ? resolve(again, what) : act(again, what);
      expect(getDepositAttention(decided, false)).toBeNull();
      const step = what === 'loss' ? 'written_off' : 'credited';
      expect(listPosted(again, decided, step)).toEqual(['a#2']);
      expect(amountReceived(decided.deposits)).toBe(DUE);
      const twice = see(reorg(again, 'a', false), 'a', DUE, 3);
      expect(listPosted(again, twice, 'sent_back')).toEqual(['a#2']);
      expect(listPosted(again, twice, 'held')).toEqual(['a#3']);
    },
  );

  test('that stays pending is confirmed by an operator, who names it, and then screened', () => {
    expect(depositActFault(seen, 'confirm', true, { transaction_id: 'b' })).toMatch(/No deposit/);
    expect(depositActFault(seen, 'confirm', true, { transaction_id: 'a' })).toBeUndefined();
    const confirmed = act(seen, 'confirm', { transaction_id: 'a' });
    expect(findUnscreened(confirmed.deposits)).toHaveLength(1);
    expect(screen(confirmed, 'a', 'passed').status).toBe('received');
  });
});

const RESOLVED: Record<string, readonly Outcome[]> = {
  deposit_undone: ['merchant', 'loss'],
  deposit_held: ['customer', 'loss', 'never_happened'],
  late_deposit: ['customer', 'loss', 'never_happened'],
  wrong_asset: ['customer', 'loss', 'never_happened'],
  deposit_to_return: ['customer', 'loss', 'never_happened'],
};

test.each(Object.entries(RESOLVED))(
  'of a movement in suspense as %s, the outcome is one of %j',
  (reason, outcomes) => {
    const movement = { reason: reason as Movement['reason'] };
    const possible = OUTCOMES.filter((as) => findResolutionFault(movement, as) === undefined);
    expect([...possible].sort()).toEqual([...outcomes].sort());
  },
);

describe('the attention reasons of deposits', () => {
  const held = (reason: Movement['reason']) => makeMovement({ reason });
  const REORGED = [held('deposit_undone')];
  const TARDY = [held('late_deposit')];
  const COUNTED = [makeMovement({ reason: null, applied: 1_000, amount: 1_000 })];
  const ALL = [...TARDY, held('deposit_held'), ...REORGED];

  test.each<[readonly Movement[], CryptoPaymentAttention[], CryptoPaymentAttention | null]>([
    [ALL, [], 'deposit_undone'],
    [ALL, ['deposit_undone'], 'deposit_undone'],
    [[held('late_deposit'), held('deposit_held')], [], 'deposit_held'],
    [TARDY, ['late_deposit', 'underpaid'], 'late_deposit'],
    [COUNTED, [], 'underpaid'],
    [COUNTED, ['underpaid'], null],
  ])(
    '%#: the first in suspense, which nobody can acknowledge, or else the payment’s is shown',
    (movements, acknowledged, shown) => {
      const payment = { status: 'underpaid', movements } as const;
      expect(getDepositAttention(payment, false, new Set(acknowledged))).toBe(shown);
    },
  );

  test.each<[CryptoPaymentAttention, CryptoPaymentAttention, boolean]>([
    ['deposit_undone', 'late_deposit', true],
    ['late_deposit', 'deposit_undone', false],
    ['late_deposit', 'late_deposit', false],
    ['amount_differs', 'late_deposit', false],
  ])('%s replaces %s while money is in suspense: %p', (reason, shown, isReplaced) => {
    expect(outranksReason(reason, shown)).toBe(isReplaced);
  });
});

/** Events of the chain, the screening and the operators, in any order. */
type Step =
  | { kind: 'deposit'; id: string; confirmations: number; late: boolean }
  | { kind: 'wrong_asset'; id: string }
  | { kind: 'undone'; id: string }
  | { kind: 'screened'; id: string; verdict: 'passed' | 'failed' }
  | { kind: 'act'; act: (typeof CRYPTO_PAYMENT_ACTS)[number]; as: Outcome }
  | { kind: 'closed' };

const kind = <Kind extends Step['kind']>(name: Kind) => fc.constant(name);
const id = fc.constantFrom('a', 'b', 'c', 'd');
const actName = fc.constantFrom(...CRYPTO_PAYMENT_ACTS);
const verdict = fc.constantFrom('passed' as const, 'failed' as const);
const steps: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: kind('deposit'), id, confirmations: fc.nat(4), late: fc.boolean() }),
  fc.record({ kind: kind('undone'), id }),
  fc.record({ kind: kind('wrong_asset'), id }),
  fc.record({ kind: kind('screened'), id, verdict }),
  fc.record({ kind: kind('act'), act: actName, as: fc.constantFrom(...OUTCOMES) }),
  fc.record({ kind: kind('closed') }),
);

test('in any order of events, the ledger has what is credited and held, and transitions are lawful', () => {
  const units = fc.bigInt({ min: 1n, max: 10n ** 24n });
  const amounts = fc.record({ a: units, b: units, c: units, d: units });
  fc.assert(
    fc.property(fc.array(steps, { maxLength: 40 }), amounts, units, (story, sizes, due) => {
      const sizeById = new Map(Object.entries(sizes));
      let set: World = { ...EMPTY, sufficient: String(due) };
      let isOpen = true;
      const entries = new Set<string>();
      const ledger = new Map<string, bigint>();
      const reached: CryptoPaymentStatus[] = [];
      for (const step of story) {
        if (step.kind === 'closed') isOpen = false;
        const next = apply(set, changeBy(set, step, sizeById, isOpen), isOpen);
        const moved = { ...next, status: computeStatus(next, isOpen) };
        if (moved.status !== set.status) {
          assertLawful(CRYPTO_PAYMENT_TRANSITIONS, set.status, [moved.status]);
          reached.push(moved.status);
        }
        for (const { kind, deposit, row } of moved.entries.slice(set.entries.length)) {
          const name = `${kind}:${deposit}`;
          expect(entries).not.toContain(name);
          entries.add(name);
          const isReorged = row.reason === 'deposit_undone';
          const isFromSuspense = entries.has(`held:${deposit}`);
          const money = { amount: row.amount, isFromSuspense, isReorged };
          for (const { account, amount } of buildDepositLines(kind, 'chain', money)) {
            ledger.set(account, (ledger.get(account) ?? 0n) + BigInt(amount));
          }
        }
        for (const deposit of moved.deposits) {
          const row = findDepositMovement(moved.movements, deposit);
          const expected = row === undefined ? [] : listDepositEntries(row);
          expect(row !== undefined && isCredited(row)).toBe(deposit.status === 'confirmed');
          const posted = moved.entries.filter((each) => each.deposit === deposit.key);
          expect(posted.map((each) => each.kind).sort()).toEqual(expected.sort());
        }
        set = moved;
        const credited = ledger.get('balances.main.available') ?? 0n;
        expect(credited).toBe(amountReceived(set.deposits));
        const inSuspense = set.movements.filter(
          (row) => isInSuspense(row) && row.reason !== 'deposit_undone',
        );
        expect(ledger.get('suspense.deposits') ?? 0n).toBe(sumRests(inSuspense));
        expect(credited > 0n && ['awaiting_deposit', 'expired'].includes(set.status)).toBe(false);
      }
      expect(reached.filter((status) => status === 'received').length).toBeLessThanOrEqual(1);
    }),
    { numRuns: 2_000 },
  );
});

function changeBy(
  set: World,
  step: Step,
  sizeById: Map<string, bigint>,
  isOpen: boolean,
): DepositChange {
  const nothing = { kind: 'unapplied', reason: 'not possible' } as const;
  switch (step.kind) {
    case 'deposit': {
      const { confirmations, late } = step;
      const amount = sizeById.get(step.id) ?? 0n;
      const seen_at = late ? LATE : IN_TIME;
      return applyDeposit(set, report(step.id, amount, confirmations, seen_at), TERMS);
    }
    case 'wrong_asset': {
      const amount = sizeById.get(step.id) ?? 0n;
      return applyWrongAsset(set, { ...report(step.id, amount, 2), asset: 'USDC' }, TERMS);
    }
    case 'undone':
      return applyReorg(set, step.id);
    case 'screened':
      return applyScreening(set, step.id, step.verdict);
    case 'act': {
      const name = step.act;
      if (name === 'snooze' || name === 'acknowledge') return nothing;
      if (depositActFault(set, name, isOpen) !== undefined) return nothing;
      if (['accept', 'return'].includes(name) && set.status !== 'underpaid') return nothing;
      if (name === 'resolve_movement') {
        const movement = set.movements.find(isInSuspense);
        const isFault = movement === undefined || findResolutionFault(movement, step.as);
        return isFault ? nothing : resolveDeposit(set, movement, step.as);
      }
      return actOnDeposits(set, name, { transaction_id: 'a' });
    }
    case 'closed':
      return nothing;
    default:
      return assertNever(step);
  }
}
