import { randomUUID } from 'node:crypto';
import type { Known, Written } from '../../activities/shared/record-table';
import { assertNever } from '../../src/domain/assert';
import { isInSuspense, sumFees, sumRests } from '../../src/domain/banks/movement';
import { computeBorneFee, type DisputeReport } from '../../src/domain/dispute/report';
import { ServiceError } from '../../src/domain/errors';
import type { FeeBearer } from '../../src/domain/merchants/acquirer-fee';
import { listMovements } from '../../src/movements/register';
import { reverseOperation } from '../../src/service/money/balances/act';
import { adjustBalance } from '../../src/service/money/balances/adjust';
import { fundBalance } from '../../src/service/money/balances/fund';
import { disputeId } from '../../src/store/disputes';
import { operatorsAudit } from '../support/audit';
import { retryUntilDone } from '../support/eventually';
import { setFeeBearer } from '../support/fee-bearer';
import type { WorkerProcess } from '../support/processes';
import type { PaymentFacts, Records } from '../support/records';
import { expectWholeBook } from './whole-books';

export const PAYMENTS = 2;
export const LATE = 2;
export const REFUNDS = 5;
export const OPERATIONS = 3;
const AMOUNT = 1_000;
const FUNDED = 500;
const ADJUSTED = [-700, 250, -300];
/** Minor units of each payment that its chargeback takes; null: all of it. */
const CHARGED_BACK = [null, 400];

type Reported = 'dispute_opened' | 'dispute_won' | 'dispute_lost';

export type Step =
  | { kind: 'dispute'; payment: number }
  | { kind: 'settle'; payment: number; fee: number }
  | { kind: 'bear'; bearer: FeeBearer }
  | { kind: 'claw_back'; payment: number; operator: number }
  | { kind: Reported; payment: number; amount: number }
  | { kind: 'refund'; refund: number; payment: number; amount: number | null }
  | { kind: 'report'; refund: number; to: 'settled' | 'failed' }
  | { kind: 'late'; late: number; amount: number; fee: number }
  | { kind: 'late_credited'; late: number; amount: number }
  | { kind: 'late_reversed'; late: number; amount: number | null }
  | { kind: 'fund'; operation: number }
  | { kind: 'adjust'; operation: number; against: 'adjustments' | 'receivable' }
  | { kind: 'reverse'; posting: number };

interface Refund {
  id: string;
  payment: PaymentFacts | undefined;
  /** Calls that were accepted, or may still be. */
  calls: number;
}

/** A merchant of its own, with payments that are paid, payments that have expired, and operators. */
export async function createWorld(first: WorkerProcess, operator: Records) {
  const account_id = `acct_${randomUUID()}`;
  const owner = { account_id, livemode: false, currency: 'EUR', balance_account: 'main' };
  const facts = { account_id, amount: AMOUNT };
  const payments = await many(PAYMENTS, () => first.authorizedPayment(first.records, facts));
  const late = await many(LATE, () => first.expiredPayment(first.records, facts));
  const refunds = await many(REFUNDS, async (): Promise<Refund> => {
    return { id: randomUUID(), payment: undefined, calls: 0 };
  });
  const disputed = new Set<string>();
  /** Payments whose dispute an operator may have ended. */
  const answered = new Set<string>();
  const met = new Set<string>();
  const audit = operatorsAudit(operator.stores);
  const deps = { ...operator, now: () => new Date(), audit };
  const correction = { operator: 'ana', reason: 'a test' };
  const buildId = (act: 'fund' | 'adjust', n: number) => `${act}_${n}_${account_id}`;
  const reversible = [
    ...payments.map(({ payment_id }) => `payment_clawed_back:${payment_id}`),
    ...[0, 1, 2].map((n) => `funded:${buildId('fund', n)}`),
    ...[0, 1, 2].map((n) => `adjusted:${buildId('adjust', n)}`),
  ];

  /** Books as a workflow does: from the stored state, and again when that is a later one. */
  async function book<Answer extends object>(
    payment_id: string,
    write: (known: Known) => Promise<Written<Answer>>,
  ): Promise<Answer> {
    for (;;) {
      const { version, transition } = await stored(payment_id);
      const answer = await retryUntilDone(() => write({ version, transition }));
      if (answer.stale === undefined) return answer;
    }
  }

  async function run(worker: WorkerProcess, step: Step): Promise<void> {
    const { records } = worker;
    switch (step.kind) {
      case 'settle':
        return await retryUntilDone(() =>
          worker.settle(records, of(payments, step.payment), step.fee),
        );
      case 'bear':
        return await retryUntilDone(() => setFeeBearer(operator.stores, account_id, step.bearer));
      case 'dispute': {
        const { payment_id } = of(payments, step.payment);
        await book(payment_id, (known) =>
          records.payments.recordDispute({ payment_id, at: now(), ...known }),
        );
        disputed.add(payment_id);
        return;
      }
      case 'claw_back':
        return await clawBack(worker, step.payment, step.operator);
      case 'dispute_opened':
      case 'dispute_won':
      case 'dispute_lost':
        return await reportDispute(worker, step);
      case 'refund':
        return await refund(worker, step);
      case 'report':
        return await report(worker, of(refunds, step.refund), step.to);
      case 'late': {
        const { payment_id } = of(late, step.late);
        const { amount } = step;
        // No statement has a line of nothing.
        const fee = Math.min(step.fee, amount - 1);
        // Money of one amount is reported once, by any process.
        const source = { kind: 'callback', id: `late-${amount}-${payment_id}` } as const;
        const report = { source, direction: 'in', amount, fee, currency: 'EUR' } as const;
        const call = { ...about(payment_id), reason: 'late', report } as const;
        const { id, movements } = await book(payment_id, (known) =>
          records.movements.recordMovement({ ...call, ...known }),
        );
        // Any attempt answers with the amount that was booked first.
        expect(movements.filter((movement) => movement.id === id)).toMatchObject([{ amount }]);
        return;
      }
      case 'late_credited':
        return await creditLate(worker, step);
      case 'late_reversed': {
        const { payment_id } = of(late, step.late);
        const by = `reversed-${step.amount}-${payment_id}`;
        const money = step.amount === null ? {} : { amount: step.amount };
        const source = { kind: 'callback', id: by } as const;
        const report = { source, direction: 'out', ...money } as const;
        const call = { ...about(payment_id), report };
        const { outcome, movements } = await book(payment_id, (known) =>
          records.movements.recordReturn({ ...call, ...known }),
        );
        const told = movements.filter(({ sources }) => sources.some(({ id }) => id === by));
        const back = { direction: 'out', applied: step.amount ?? expect.any(Number) };
        expect(told).toMatchObject(outcome === 'unmatched' ? [] : [back]);
        return;
      }
      case 'fund': {
        const id = buildId('fund', step.operation);
        return await asOperator(() => fundBalance(deps, { ...owner, amount: FUNDED }, { id }));
      }
      case 'adjust': {
        const { operation, against } = step;
        const adjustment = { ...owner, amount: of(ADJUSTED, operation), against };
        const id = buildId('adjust', operation);
        return await asOperator(() => adjustBalance(deps, adjustment, correction, id));
      }
      case 'reverse': {
        const id = of(reversible, step.posting);
        answered.add(id.slice(id.indexOf(':') + 1));
        return await asOperator(() => reverseOperation(deps, id, correction));
      }
      default:
        return assertNever(step);
    }
  }

  /** Credits a part of what is in suspense, twice at most. */
  async function creditLate(
    { records }: WorkerProcess,
    { late: n, amount }: Extract<Step, { kind: 'late_credited' }>,
  ): Promise<void> {
    const { payment_id } = of(late, n);
    const held = (await listMovements(operator.stores, payment_id)).find(isInSuspense);
    if (held === undefined) return;
    const id = `credit_${amount % 2}_${payment_id}`;
    const audit = { who: 'ana', what: 'resolve_movement', why: 'the merchant delivers' };
    const act = { id, acted_at: now(), audit, attention: null };
    const decided = { movement: held.id, as: 'merchant', amount } as const;
    const call = { ...about(payment_id), ...act, ...decided };
    await book(payment_id, (known) => records.movements.resolveMovement({ ...call, ...known }));
  }

  async function clawBack({ records }: WorkerProcess, payment: number, n: number): Promise<void> {
    const { payment_id } = of(payments, payment);
    const amount = of(CHARGED_BACK, payment);
    const id = `chargeback_${n}_${payment_id}`;
    const audit = { who: 'ana', what: 'mark_clawed_back', why: 'the bank says so' };
    const call = { payment_id, at: now(), id, amount, audit, attention: null };
    if (amount !== null) answered.add(payment_id);
    const answer = await book(payment_id, (known) =>
      records.payments.clawBack({ ...call, ...known }),
    );
    if (answer.outcome !== 'posted') return;
    disputed.add(payment_id);
    const disputes = await operator.stores.disputes.forPayment(payment_id);
    const part = disputes.find((each) => each.name === id)?.transfers ?? [];
    expect(part[0]).toMatchObject({ held: answer.held, owed: answer.owed });
    // Without an amount, what other disputes have left of the payment.
    expect(answer.held + answer.owed).toBe(amount ?? part[0]?.amount);
    expect(answer.held + answer.owed).toBeLessThanOrEqual(AMOUNT);
  }

  /** Disputes a payment under two names, perhaps for more than is left. */
  async function reportDispute(
    { records }: WorkerProcess,
    { kind: name, payment, amount }: Extract<Step, { kind: Reported }>,
  ): Promise<void> {
    const { payment_id, amount: _, ...owner } = of(payments, payment);
    const own = `dispute_${amount % 2}`;
    const dispute_id = disputeId(payment_id, own);
    const facts = name === 'dispute_opened' ? { amount, fee: 15 } : {};
    const at = now();
    const callback_id = `${name}_${own}`;
    const report: DisputeReport = { name, callback_id, occurred_at: at, ...facts };
    if ((await stored(payment_id)).status !== 'settled') return;
    if (name === 'dispute_opened') {
      const input = { dispute_id, payment_id, name: own, amount, ...owner, created_at: at, report };
      const opening = await retryUntilDone(() => records.disputes.openDispute(input));
      if (opening.outcome === 'accepted' && opening.answer?.outcome === 'posted') met.add(name);
      if (opening.outcome === 'accepted' && opening.answer !== undefined) return;
    }
    for (;;) {
      const dispute = await operator.stores.disputes.get(dispute_id);
      if (dispute === null) return;
      const { version, transition } = dispute;
      const call = { dispute_id, at, report, version, transition };
      const answer = await retryUntilDone(() => records.disputes.recordDisputeReport(call));
      if (answer.stale !== undefined) continue;
      if (answer.outcome !== 'refused') met.add(name);
      return;
    }
  }

  /** A dispute that has been recorded shuts out every refund that is requested after it. */
  async function refund(
    { records, openRefund }: WorkerProcess,
    { refund, payment, amount }: Extract<Step, { kind: 'refund' }>,
  ): Promise<void> {
    const requested = of(refunds, refund);
    // An id belongs to the payment that it was first used for, as an idempotency record has it.
    requested.payment ??= of(payments, payment);
    const facts = requested.payment;
    const isDisputed = disputed.has(facts.payment_id) && !answered.has(facts.payment_id);
    const isShutOut = requested.calls === 0 && isDisputed;
    requested.calls += 1;
    const { opening } = await retryUntilDone(() =>
      openRefund(records, facts, amount, requested.id),
    );
    if (opening.outcome === 'refused') requested.calls -= 1;
    if (!isShutOut) return;
    expect(opening.outcome).toBe('refused');
    if (opening.outcome === 'refused') met.add(opening.code);
  }

  async function stored(payment_id: string) {
    const payment = await operator.stores.payments.get(payment_id);
    if (payment === null) throw new Error('The payment is not there.');
    return payment;
  }

  /** Holds the book, and what payments say, against its entries; gives their kinds, and rare states. */
  async function expectWhole(): Promise<string[]> {
    const expectPayment = async ({ payment_id }: PaymentFacts) => {
      const filter = { account_id, livemode: false, payment_id, limit: 100 };
      const [payment, disputes, came, moved, all] = await Promise.all([
        stored(payment_id),
        operator.stores.disputes.forPayment(payment_id),
        listMovements(operator.stores, payment_id),
        operator.stores.movements.forResource(payment_id),
        operator.stores.refunds.list(filter),
      ]);
      const { refunded, audit, status, disputed = 0 } = payment;
      const settled = [{ amount: AMOUNT, applied: AMOUNT }];
      expect(came).toMatchObject(status === 'settled' ? settled : []);
      const taken = moved
        .filter(({ dispute }) => dispute !== undefined)
        .map(({ direction, amount }) => Number(amount) * (direction === 'in' ? -1 : 1));
      expect(taken.reduce((sum, amount) => sum + amount, 0)).toBe(disputed);
      expect(disputed).toBe(disputes.reduce((sum, { amount }) => sum + amount, 0));
      const parts = disputes.filter(({ kind }) => kind === 'clawed_back');
      const live = all.filter((refund) => refund.status !== 'failed');
      expect(refunded).toBe(live.reduce((sum, { amount }) => sum + amount, 0));
      expect(refunded).toBeLessThanOrEqual(status === 'settled' ? AMOUNT : 0);
      expect(audit).toHaveLength(parts.length);
      expect(disputed).toBeLessThanOrEqual(AMOUNT);
      if (parts.length > 0) return;
      expect(refunded + disputed).toBeLessThanOrEqual(AMOUNT);
    };
    const listAll = (some: readonly PaymentFacts[]) =>
      Promise.all(some.map(({ payment_id }) => listMovements(operator.stores, payment_id)));
    const [book, movements, came] = await Promise.all([
      expectWholeBook(operator, account_id),
      listAll(late),
      listAll(payments),
      ...payments.map(expectPayment),
    ]);
    expect(BigInt(book.sum('suspense.late'))).toBe(sumRests(movements.flat()));
    const credited = movements.flat().flatMap(({ resolutions }) => resolutions);
    const fees = credited.reduce((sum, { fee = 0 }) => sum + fee, sumFees(came.flat()));
    const disputes = await Promise.all(
      payments.map(({ payment_id }) => operator.stores.disputes.forPayment(payment_id)),
    );
    const borne = disputes
      .flat()
      .flatMap(({ transfers }) => transfers)
      .reduce((sum, each) => sum + computeBorneFee(each) * (each.direction === 'in' ? -1 : 1), 0);
    expect(book.sum('income.acquirer_fees')).toBe(fees + borne);
    if (fees > 0) met.add('fees');
    if (book.sum('receivable.merchant') < 0) met.add('owed');
    return [...book.kinds, ...met];
  }

  return { run, expectWhole };
}

const now = () => new Date().toISOString();

const about = (resource_id: string) => ({ kind: 'payment', resource_id, at: now() }) as const;

function many<T>(length: number, one: () => Promise<T>): Promise<T[]> {
  return Promise.all(Array.from({ length }, one));
}

function of<T>(all: readonly T[], index: number): T {
  const found = all[index];
  if (found === undefined) throw new Error(`There is no ${index}.`);
  return found;
}

/** Reports on a refund; refused for one that is not there, or has ended otherwise. */
async function report(
  { records, transitionRefund }: WorkerProcess,
  { id, payment }: Refund,
  to: 'settled' | 'failed',
): Promise<void> {
  if (payment === undefined) return;
  await retryUntilDone(async () => {
    await transitionRefund(records, payment, id, to).catch((error: unknown) => {
      if (!String(error).includes('is not at version')) throw error;
    });
  });
}

const REFUSALS = [
  ...['insufficient_balance', 'not_reversible', 'nothing_owed', 'operation_id_used'],
  'operation_not_found',
];

/** Runs an operator's command; a refusal has posted nothing. */
async function asOperator(command: () => Promise<unknown>): Promise<void> {
  const refusal = (error: unknown) => {
    if (error instanceof ServiceError && REFUSALS.includes(error.code)) return;
    throw error;
  };
  await retryUntilDone(() => command().catch(refusal));
}
