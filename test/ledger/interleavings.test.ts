import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { retryTransient } from '../support/eventually';
import { reconcile } from '../support/reconcile';
import {
  authorizedPayment,
  openRecords,
  openRefund,
  type PaymentFacts,
  type Records,
  settle,
  transitionRefund,
} from '../support/records';
import { expectWholeBook } from './whole-books';

/**
 * Holds that the books stay whole in any order of settlements, refunds, failures and late reports,
 * one by one or at once and each perhaps twice.
 */
let records: Records;
beforeAll(async () => {
  records = await openRecords();
});
afterAll(async () => records?.close());

const PAYMENTS = 2;
const AMOUNT = 1_000;
const REFUNDS = 6;

type Step =
  | { kind: 'settle'; payment: number }
  /** null: whatever remains. */
  | { kind: 'refund'; refund: number; payment: number; amount: number | null }
  | { kind: 'report'; refund: number; to: 'settled' | 'failed' };

const index = (length: number) => fc.nat({ max: length - 1 });
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constant('settle' as const), payment: index(PAYMENTS) }),
  fc.record({
    kind: fc.constant('refund' as const),
    refund: index(REFUNDS),
    payment: index(PAYMENTS),
    amount: fc.option(fc.integer({ min: 1, max: AMOUNT + 100 }), { freq: 4 }),
  }),
  fc.record({
    kind: fc.constant('report' as const),
    refund: index(REFUNDS),
    to: fc.constantFrom('settled' as const, 'failed' as const),
  }),
);
/** Batches run at once; those of one batch may hold the same step twice. */
const program = fc.array(fc.array(step, { minLength: 1, maxLength: 4 }), {
  minLength: 4,
  maxLength: 10,
});

interface World {
  payments: PaymentFacts[];
  refunds: { id: string; payment: PaymentFacts | undefined }[];
}

async function run(world: World, taken: Step): Promise<void> {
  if (taken.kind === 'settle') {
    const facts = world.payments[taken.payment];
    if (facts) await retryTransient(() => settle(records, facts));
    return;
  }
  const refund = world.refunds[taken.refund];
  if (refund === undefined) return;
  if (taken.kind === 'refund') {
    // An id belongs to the payment that it was first used for, as an idempotency record has it.
    refund.payment ??= world.payments[taken.payment];
    if (refund.payment) await openRefund(records, refund.payment, taken.amount, refund.id);
  } else if (refund.payment) {
    // A report on a refund that is not there, or that has ended otherwise, is refused.
    const { id, payment } = refund;
    await retryTransient(() => transitionRefund(records, payment, id, taken.to)).catch(
      expectWrongState,
    );
  }
}

function expectWrongState(error: unknown): void {
  expect(String(error)).toMatch(/is not at version/);
}

async function expectWhole({ payments }: World, account_id: string): Promise<void> {
  await expectWholeBook(records, account_id);
  for (const { payment_id } of payments) {
    const payment = await records.stores.payments.get(payment_id);
    const refunds = await records.stores.refunds.list({
      account_id,
      livemode: false,
      payment_id,
      limit: 100,
    });
    const live = refunds.filter(({ status }) => status !== 'failed');
    const total = live.reduce((sum, { amount }) => sum + amount, 0);
    expect(payment?.refunded).toBe(total);
    expect(total).toBeLessThanOrEqual(payment?.status === 'settled' ? AMOUNT : 0);
  }
}

test('any interleaving keeps balances and remainders exact, and nothing below zero', async () => {
  await fc.assert(
    fc.asyncProperty(program, async (batches) => {
      const account_id = `acct_${randomUUID()}`;
      const one = () => authorizedPayment(records, { account_id, amount: AMOUNT });
      const payments = await Promise.all(Array.from({ length: PAYMENTS }, one));
      const refunds = Array.from({ length: REFUNDS }, () => ({
        id: randomUUID(),
        payment: undefined,
      }));
      const world: World = { payments, refunds };
      for (const batch of batches) {
        await Promise.all(batch.map((taken) => run(world, taken)));
        await expectWhole(world, account_id);
      }
    }),
    { numRuns: 60, endOnFailure: true },
  );
  expect(await reconcile(records)).toBeGreaterThan(0);
}, 600_000);
