import { randomUUID } from 'node:crypto';
import { readTrialBalance } from '../../../src/ledger-check/trial-balance';
import { importMade } from '../../../src/service/banks/statements/import';
import { reconcileAccounts } from '../../../src/service/banks/statements/reconciliation';
import { disputeId } from '../../../src/store/disputes';
import { openCommandLine, useCommands } from '../../cli/cli';
import { createOperator } from '../../ledger/robot-operator';
import { operatorsAudit } from '../../support/audit';
import { readBalances } from '../../support/book';
import { eventually } from '../../support/eventually';
import { buildAccount, buildPayment } from '../../support/factories';
import { useFixture } from '../../support/fixture';
import { noteForFailure } from '../../support/quiet';
import { createRandom } from '../../support/random';
import { useService } from '../../support/service';
import { ACCOUNT, type Fault } from './fake';
import { becomesLate, startStripeWorld } from './product';

/** The robot of `test/ledger/robot.test.ts` at Stripe; `ROBOT_SEED=7` repeats a seed. */
const SEED = Number(process.env['ROBOT_SEED'] ?? 30);
const DAY_MS = 86_400_000;
/** Faults after which one repeat is enough: each waits until what was lost can no longer arrive. */
const FAULTS: readonly Fault[] = ['stored_500_after', 'cut_before', 'cut_after', 'limited'];
/** A repeat may be lost, too. */
const REPEATED_MS_MAX = 120_000;

const prefix = `stripe-${randomUUID().slice(0, 8)}`;
const ROUTES = 'stripe=visa|mastercard|ideal|multibanco';
// A product of its own, whose books are compared as a whole.
const service = useService({ alone: true, live: { connectors: '', prefix }, tests: ROUTES });
// A refund of what is not available yet needs funds.
const account = useFixture(() => buildAccount(service, { funds: 1_000_000 }));
const world = useFixture(
  () => startStripeWorld({ service, prefix }),
  ({ stop }) => stop(),
);
const commands = useCommands(service);
const commandLine = useFixture(
  async () => {
    const place = { SANDBOX_CONNECTORS: ROUTES, TASK_QUEUE_PREFIX: prefix };
    return openCommandLine({ ...commands.env, ...place });
  },
  ({ close }) => close(),
);

const becomes = (...wanted: Parameters<typeof service.becomes>) => becomesLate(service, ...wanted);
const random = createRandom(SEED);
const done: string[] = [];
const created: { resource: 'payment' | 'refund'; id: string }[] = [];
const disputes = new Set<string>();

/** A payment, and what its customer and merchant do. */
interface Plan {
  end: keyof typeof ENDS;
  amount: number;
  /** Part that is refunded or disputed. */
  part: number;
  /** Whether the money comes, or stays. */
  isLucky: boolean;
  fault: Fault | undefined;
  /** Whether webhooks get lost from now on. */
  isSilent: boolean;
}

const drawPlan = (end: Plan['end'], isFaulty: boolean): Plan => {
  const amount = random.integer(1_000, 20_000);
  const fault = isFaulty && random.chance(0.6) ? random.pick(FAULTS) : undefined;
  const [isLucky, isSilent] = [random.chance(0.5), isFaulty && random.chance(0.4)];
  return { end, amount, part: random.integer(1, amount), isLucky, fault, isSilent };
};

const open = async (method: string, { amount }: Plan): Promise<string> => {
  const country = method === 'multibanco' ? 'PT' : 'NL';
  const customer = { email: 'ada@example.com' };
  const { id } = await buildPayment(account, { amount, method, country, customer });
  created.push({ resource: 'payment', id });
  return id;
};
const settle = async (plan: Plan, method = 'visa', details?: Record<string, unknown>) => {
  const id = await open(method, plan);
  const charge = await world.bank.pay(id, details && { details });
  // The reason follows the settlement by a write of its own.
  const reason = details && { attention: 'method_differs' };
  await becomes('payments', id, { status: 'settled', ...reason });
  const { bank_reference, attention } = (await service.stores.payments.get(id)) ?? {};
  const expected = { bank_reference: charge['balance_transaction'], attention: null, ...reason };
  expect({ bank_reference, attention }).toEqual(expected);
  return { id, charge };
};
const makeRefund = async (payment_id: string, amount: number, fault?: Fault) => {
  if (fault !== undefined) world.bank.failNext(fault);
  const { status, body } = await account.post('/v1/refunds', { payment_id, amount });
  expect({ status, error: body.error }).toEqual({ status: 201, error: undefined });
  created.push({ resource: 'refund', id: body.id });
  const made = await eventually(
    'a refund',
    async () => world.bank.listRefunds(body.id)[0],
    REPEATED_MS_MAX,
  );
  return { id: body.id, made };
};
const openDispute = async (plan: Plan, isInquiry = false) => {
  const { id, charge } = await settle(plan);
  const made = await world.bank.dispute(charge, { isInquiry });
  const name = disputeId(id, made.id);
  disputes.add(name);
  const is = (status: string) => becomes('disputes', name, { status });
  await is('needs_response');
  return { made, is, path: `/v1/disputes/${name}` };
};

const ENDS = {
  paid: (plan: Plan) => settle(plan),
  paid_by_another_brand: (plan: Plan) =>
    settle(plan, 'visa', { type: 'card', card: { brand: 'mastercard' } }),
  voucher: async (plan: Plan) => {
    const id = await open('multibanco', plan);
    await world.bank.complete(id, 'requires_action');
    if (plan.isLucky) await world.bank.pay(id);
    else await world.bank.fail(id, 'payment_intent_payment_attempt_expired');
    await becomes('payments', id, { status: plan.isLucky ? 'settled' : 'failed' });
  },
  debit: async (plan: Plan) => {
    const id = await open('ideal', plan);
    await world.bank.complete(id, 'processing');
    await becomes('payments', id, { status: 'authorized' });
    if (plan.isLucky) await world.bank.pay(id);
    else await world.bank.fail(id, 'card_declined');
    await becomes('payments', id, { status: plan.isLucky ? 'settled' : 'failed' });
  },
  paid_after_cancellation: async (plan: Plan) => {
    const id = await open('ideal', plan);
    expect((await account.post(`/v1/payments/${id}/cancel`)).status).toBe(200);
    await becomes('payments', id, { status: 'cancelled' });
    // A fault of another plan may meet the call that closes it.
    const isClosed = async () => world.bank.findSession(id)['status'] === 'expired';
    await eventually('a closed session', isClosed, REPEATED_MS_MAX);
    if (plan.fault !== undefined) world.bank.failNext(plan.fault);
    await world.bank.pay(id);
    const find = async () => world.bank.listRefunds(`reversal:${id}`)[0];
    await world.bank.settleRefund(await eventually('a reversal', find, REPEATED_MS_MAX));
    const attention = 'late_settlement_reversed';
    await becomes('payments', id, { status: 'cancelled', attention });
  },
  refunded: async (plan: Plan) => {
    const { id } = await settle(plan, 'mastercard');
    const first = await makeRefund(id, plan.part, plan.fault);
    if (plan.isLucky) await world.bank.settleRefund(first.made);
    else await world.bank.failRefund(first.made);
    const status = plan.isLucky ? 'settled' : 'failed';
    await becomes('refunds', first.id, { status });
  },
  refund_that_comes_back: async (plan: Plan) => {
    const { id, made } = await makeRefund((await settle(plan)).id, plan.part, plan.fault);
    await world.bank.settleRefund(made);
    await becomes('refunds', id, { status: 'settled' });
    await world.bank.failRefund(made, 'expired_or_canceled_card');
    await becomes('refunds', id, { attention: 'failed_after_settled' });
  },
  refund_that_fails_after_its_money_left: async (plan: Plan) => {
    const { id, made } = await makeRefund((await settle(plan)).id, plan.part, plan.fault);
    world.bank.takeRefund(made);
    await world.bank.failRefund(made);
    await becomes('refunds', id, { attention: 'failed_after_settled' });
  },
  answered_dispute: async (plan: Plan) => {
    const { made, is, path } = await openDispute(plan);
    await world.bank.withdraw(made, plan.part);
    if (plan.fault !== undefined) world.bank.failNext(plan.fault);
    await account.post(`${path}/evidence`, { explanation: 'Signed for.' });
    const isUnderReview = async () => made['status'] === 'under_review';
    await eventually('the evidence', isUnderReview, REPEATED_MS_MAX);
    await world.bank.decide(made, plan.isLucky ? 'won' : 'lost');
    if (plan.isLucky) await world.bank.reinstate(made, plan.part, 2_000);
    await is(plan.isLucky ? 'won' : 'lost');
  },
  accepted_dispute: async (plan: Plan) => {
    const { made, is, path } = await openDispute(plan);
    await world.bank.withdraw(made);
    await account.post(`${path}/accept`);
    await is('accepted');
  },
  inquiry: async (plan: Plan) => {
    const { made, is } = await openDispute(plan, true);
    await world.bank.decide(made, 'warning_closed');
    await is('won');
  },
};

test('books of payments, refunds and disputes at Stripe agree with its balance, whatever gets lost', async () => {
  noteForFailure(`ROBOT_SEED=${SEED}`);
  const begun = Date.now();
  const faults: string[] = [];
  const { bank } = world;
  const { cli } = commandLine;
  /** Operator who asks Stripe what the remedies say. */
  const operator = createOperator({
    ...{ cli, seed: SEED, connector: 'stripe', account_id: account.account_id },
    ...{ created, accounts: new Map(), done },
    chain: { ids: new Set(), answer: async () => undefined },
    bank: {
      disputes,
      answer: (_question, _id, held) => {
        const booked = held?.names.map((name) => bank.things.get(name)).find(Boolean);
        if (booked === undefined) return { if: 'never' };
        const amount = Math.abs(booked['amount']);
        return { if: booked['amount'] > 0 ? 'came' : 'sent', amount };
      },
      explain: () => undefined,
      findMissing: () => ({ if: 'none' }),
    },
  });
  const place = ['--connector', 'stripe', '--env', 'sandbox'];
  const own = ['--account-id', ACCOUNT, '--currency', 'EUR'];
  const { bank_account_id } = await operator.print('bank-account', 'add', ...place, ...own);

  const source = { connector: 'stripe', livemode: false };
  const { mongo, stores } = service;
  const now = () => new Date(bank.now() * 1_000);
  const deps = { mongo, stores, now, audit: operatorsAudit(stores) };
  const ends = Object.keys(ENDS) as Plan['end'][];
  // At once, since what was lost waits for half a minute.
  const plans = [false, true, true].flatMap((isFaulty) =>
    ends.map((end) => drawPlan(end, isFaulty)),
  );
  const follow = async (plan: Plan) => {
    bank.state.isSilent = plan.isSilent;
    if (plan.fault !== undefined && plan.end === 'paid') bank.failNext(plan.fault);
    const name = JSON.stringify(plan);
    await ENDS[plan.end](plan).catch((error: unknown) => faults.push(`${name}: ${error}`));
    done.push(`${Date.now() - begun} ms: ${name}`);
  };
  await Promise.all(plans.map(follow));
  noteForFailure(done.join('\n'));
  expect(faults).toEqual([]);
  // By three o’clock of the next day, its statement can be made.
  bank.advance(DAY_MS - ((bank.now() * 1_000) % DAY_MS) + DAY_MS / 8);
  await world.makeStatements();
  await importMade(deps, source);
  await eventually('an operator with nothing left to do', async () => {
    const { attention, suspense } = await operator.work();
    return attention.length + suspense.length === 0;
  });

  expect(await reconcileAccounts(deps, source)).toMatchObject([
    { closed: true, closing: bank.balance('eur'), findings: [], ours_only: [], theirs_only: [] },
  ]);
  const { rows, findings } = await readTrialBalance(mongo, service.database, deps);
  expect(findings).toEqual([]);
  const isOpen = /^((suspense|transit)\.|receivable\.bank$|platform\.in_transit$)/;
  expect(rows.filter((row) => isOpen.test(row.account) && Number(row.balance) !== 0)).toEqual([]);
  const cash = await readBalances(stores, `${bank_account_id}:sandbox:EUR`);
  expect(cash('cash')).toBe(-bank.balance('eur'));
  await commands.json('ledger', 'verify');
  const refunds = [...bank.things.values()].filter(({ object }) => object === 'refund');
  const instructions = refunds.map(({ metadata }) => metadata.instruction_id);
  expect(new Set(instructions).size).toBe(refunds.length);
}, 300_000);
