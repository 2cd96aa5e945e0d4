import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import {
  applyTaken,
  computeRest,
  type Direction,
  findMovement,
  fits,
  getState,
  holdsMoney,
  identify,
  isInSuspense,
  listReleased,
  listTakeable,
  type Movement,
  type MovementReport,
  mergeMovements,
  OUTCOMES,
  type Outcome,
  reversalId,
  sumRests,
  take,
} from '../../src/domain/banks/movement';
import { buildMovement } from '../../src/movements/register';
import { makeMovement } from '../support/movements';

const AT = '2026-03-04T05:06:07.089Z';

const source = (id: string) => ({ kind: 'callback', id }) as const;
const report = (id: string, more: Partial<MovementReport> = {}): MovementReport => ({
  ...{ source: source(id), direction: 'in', amount: 1_000, currency: 'EUR' },
  ...more,
});
const movement = (id: string, more: Partial<Movement> = {}): Movement =>
  makeMovement({ id, sources: [{ ...source(`${id}-1`), at: AT }], ...more });

const NAMED = movement('a', { bank_reference: 'A' });
const UNNAMED = movement('b');
const OUT = movement('c', { direction: 'out' });

test('a report with an empty reference is one without', () => {
  expect(identify([NAMED], report('x', { bank_reference: '' })).kind).toBe('repeat');
  expect(holdsMoney({})).toBe(false);
});

test('what is sent of an asset is exact, beyond what a number holds', () => {
  const amount = '10000000000000000000001';
  const asset = { direction: 'out', amount, applied: '0', currency: 'ETH.ethereum' } as const;
  const sent = movement('s', asset);
  expect(fits(sent, { amount, currency: 'ETH.ethereum' })).toBe(true);
  expect(fits(sent, { amount: '10000000000000000000002' })).toBe(false);
  const taken = take([sent], BigInt(amount) - 1n);
  expect(taken).toEqual([{ id: 's', amount: '10000000000000000000000' }]);
  const [left] = applyTaken([sent], taken);
  if (left === undefined) throw new Error('No movement.');
  expect([left.applied, computeRest(left), getState(left)]).toEqual([
    ...['10000000000000000000000', 1n, 'suspense'],
  ]);
  const loss = { as: 'loss', amount: '1', operator: 'mia', reason: 'Why', at: AT } as const;
  expect(getState({ ...left, resolutions: [loss] })).toBe('resolved');
});

test('the failure of a resource is about all that was sent and is in suspense', () => {
  const all = [
    OUT,
    movement('p', { direction: 'out', applied: 400 }),
    movement('d', { direction: 'out', reason: null, applied: 1_000 }),
    movement('u', { direction: 'out', currency: 'USD' }),
    NAMED,
  ];
  expect(listReleased(all).map(({ id }) => id)).toEqual(['c', 'p', 'u']);
});

test('rows that a write has changed replace those that are known, and new ones follow', () => {
  const changed = movement('b', { applied: 1_000 });
  const added = movement('n');
  expect(mergeMovements([NAMED, UNNAMED], [added, changed])).toEqual([NAMED, changed, added]);
  expect(mergeMovements([NAMED])).toEqual([NAMED]);
});

test('the first late funds go back by the instruction of the payment, others by their own', () => {
  const late = { reason: 'late' } as const;
  const all = [NAMED, movement('l1', late), movement('l2', late)];
  const ids = all.map(({ id }) => reversalId('pay_1', all, id));
  expect(ids).toEqual(['reversal:pay_1:a', 'reversal:pay_1', 'reversal:pay_1:l2']);
});

const OWNER = {
  ...{ _id: 'pay_1', connector: 'acme', livemode: false, account_id: 'acct_1' },
  ...{ amount: 1_000, currency: 'EUR' },
};

/** Applies a report as the register does. */
function applyReport(movements: readonly Movement[], next: MovementReport): Movement[] {
  const identity = identify(movements, next);
  if (identity.kind === 'new') {
    const facts = { at: AT, order: movements.length, reason: 'late', clashes: 0 } as const;
    const { _id: id, ...built } = buildMovement(OWNER, next, { resource: 'payment', ...facts });
    return [...movements, { ...built, id }];
  }
  const { bank_reference = null } = next;
  return movements.map((each) => {
    if (each !== identity.movement) return each;
    const sources = [...each.sources, { ...next.source, at: AT }];
    return identity.kind === 'named' ? { ...each, sources, bank_reference } : { ...each, sources };
  });
}

const direction = fc.constantFrom<Direction>('in', 'out');
const reference = fc.constantFrom(undefined, 'A', 'B', 'C');
const amount = fc.constantFrom(300, 1_000);
const currency = fc.constantFrom('EUR', 'USD');
/** Reports repeat an id now and then, and one id may report different things. */
const reported = fc.integer({ min: 1, max: 8 }).map((id) => source(`c${id}`));

const RUNS = { numRuns: 10_000 };

/** Compares fast: only what differs is printed. */
function check(seen: unknown, expected: unknown): void {
  if (!isDeepStrictEqual(seen, expected)) expect(seen).toEqual(expected);
}

/** Row of the model: what the rules say of one movement, in plain numbers. */
interface Row {
  direction: Direction;
  minor: number;
  currency: string;
  reference: string | undefined;
  reports: string[];
  taken: number;
  resolved: number;
}

const left = ({ minor, taken, resolved }: Row) => minor - taken - resolved;

/** Finds the row that a report repeats or names, by the sentences of the docs. */
function findRow(rows: readonly Row[], next: MovementReport): Row | undefined {
  const same = rows.filter((row) => row.direction === next.direction);
  const again = same.find(({ reports }) => reports.includes(next.source.id));
  if (again !== undefined) return again;
  const fitting = same
    .filter(({ minor }) => next.amount === undefined || next.amount === minor)
    .filter((row) => next.currency === undefined || next.currency === row.currency);
  const wanted = next.bank_reference;
  if (wanted === undefined) return fitting[0];
  return fitting.find((row) => row.reference === wanted) ?? fitting.find((row) => !row.reference);
}

type Step =
  | { kind: 'report'; report: MovementReport }
  | { kind: 'settle'; most: number; of: number | undefined }
  | { kind: 'resolve'; of: number; as: Outcome; share: number };

const maybe = <T>(of: fc.Arbitrary<T>) => fc.option(of, { nil: undefined });
const money = { amount: maybe(amount), currency: maybe(currency) };
const reports = fc.record({ source: reported, direction, bank_reference: reference, ...money });
const settling = fc.record({ most: fc.integer({ min: 1, max: 2_500 }), of: maybe(fc.nat(5)) });
const outcome = { as: fc.constantFrom(...OUTCOMES), share: fc.integer({ min: 1, max: 4 }) };
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: reports.map((facts): Step => ({ kind: 'report', report: facts })) },
  settling.map((facts): Step => ({ kind: 'settle', ...facts })),
  fc.record({ of: fc.nat(5), ...outcome }).map((facts): Step => ({ kind: 'resolve', ...facts })),
);

function takeFromRows(rows: readonly Row[], most: number): number {
  let taken = 0;
  for (const row of rows) {
    const part = left(row) < most - taken ? left(row) : most - taken;
    row.taken += part;
    taken += part;
  }
  return taken;
}

test('any reports, acts and partial resolutions agree with a model of plain numbers', () => {
  const states = new Set<string>();
  const kinds = new Set<string>();

  /** Does one step to both; the model changes in place. */
  function advance(movements: Movement[], rows: Row[], next: Step): Movement[] {
    if (next.kind === 'report') {
      const { source: from, direction: to, bank_reference, ...money } = next.report;
      const known = findRow(rows, next.report);
      const kind = identify(movements, next.report).kind;
      kinds.add(kind);
      check(kind === 'new', known === undefined);
      const found = known === undefined ? undefined : movements[rows.indexOf(known)];
      check(findMovement(movements, next.report), found);
      const { amount: minor = OWNER.amount, currency: of = OWNER.currency } = money;
      if (known === undefined) {
        rows.push({
          ...{ direction: to, minor: Number(minor), currency: of, reference: bank_reference },
          ...{ reports: [from.id], taken: 0, resolved: 0 },
        });
      } else {
        if (!known.reports.includes(from.id)) known.reference ??= bank_reference;
        known.reports.push(from.id);
      }
      return applyReport(movements, next.report);
    }
    if (next.kind === 'settle') {
      const id = next.of === undefined ? undefined : (movements[next.of]?.id ?? 'mv_none');
      const own = rows
        .filter((_, index) => next.of === undefined || next.of === index)
        .filter((row) => row.direction === 'in' && row.currency === 'EUR');
      const held = own.reduce((sum, row) => sum + left(row), 0);
      const takeable = listTakeable(movements, { direction: 'in', currency: 'EUR', id });
      check(sumRests(takeable), BigInt(held));
      const taken = take(takeable, BigInt(next.most));
      const sum = taken.reduce((total, part) => total + Number(part.amount), 0);
      check(sum, takeFromRows(own, next.most));
      check(sum, Math.min(held, next.most));
      expect(taken.every((part) => Number(part.amount) > 0)).toBe(true);
      return applyTaken(movements, taken);
    }
    const row = rows[next.of];
    const chosen = movements[next.of];
    if (row === undefined || chosen === undefined || left(row) === 0) return movements;
    const part = Math.ceil(left(row) / next.share);
    row.resolved += part;
    const resolution = { as: next.as, amount: part, operator: 'mia', reason: 'Why', at: AT };
    return movements.map((each) =>
      each === chosen ? { ...each, resolutions: [...each.resolutions, resolution] } : each,
    );
  }

  fc.assert(
    fc.property(fc.array(step, { maxLength: 16 }), (steps) => {
      let movements: Movement[] = [];
      const rows: Row[] = [];
      for (const next of steps) {
        movements = advance(movements, rows, next);
        const rests = rows.map(left);
        check(movements.map(computeRest).map(Number), rests);
        const expected = rows.map((row) => {
          if (left(row) > 0) return 'suspense';
          return row.resolved > 0 ? 'resolved' : 'applied';
        });
        check(movements.map(getState), expected);
        check(new Set(movements.map(({ id }) => id)).size, movements.length);
        const held = rests.map((rest) => rest > 0);
        check(movements.map(isInSuspense), held);
        for (const state of expected) states.add(state);
      }
      check(
        movements.map(({ bank_reference }) => bank_reference ?? undefined),
        rows.map((row) => row.reference),
      );
      check(
        movements.map(({ sources }) => sources.map(({ id }) => id)),
        rows.map(({ reports }) => reports),
      );
      expect(holdsMoney({ movements })).toBe(rows.some((row) => left(row) > 0));
      const rests = movements.map(({ amount, applied, resolutions }) =>
        [applied, ...resolutions.map((each) => each.amount)].reduce<number>(
          (rest, part) => rest - Number(part),
          Number(amount),
        ),
      );
      check(movements.map(computeRest).map(Number), rests);
    }),
    RUNS,
  );
  expect([...states].toSorted()).toEqual(['applied', 'resolved', 'suspense']);
  expect([...kinds].toSorted()).toEqual(['named', 'new', 'repeat']);
});
