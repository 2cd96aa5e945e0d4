import { assertNever } from '../../src/domain/assert';
import type { BankResource } from '../../src/domain/callback/callback';
import type { Outcome } from '../../src/domain/movement/movement';
import type { BankDecision } from '../../src/domain/sandbox/movement';
import { bankReference } from '../../src/service/banks/sandbox-bank/movements';
import { idealPayment } from '../support/http';
import { createRandom, type Random } from '../support/random';

interface DisputeFacts {
  dispute_id: string;
  /** Minor units that the bank takes or returns besides. */
  fee: number;
}

interface ActFacts {
  amount?: number;
  as?: Outcome;
}

/** Acts of a history on the product; each call ends once it has done so. */
export interface HistoryWorld {
  create: (path: string, key: string, body: object) => Promise<string | undefined>;
  /** The bank decides, and reports it; a report that is sent again is received once. */
  decide: (decision: BankDecision, callback_id: string, dispute?: DisputeFacts) => Promise<void>;
  /** Waits until the resource has one of the states, or an attention reason about its money. */
  reaches: (resource: BankResource, id: string, ...states: string[]) => Promise<void>;
  /** Waits until money of the resource is in suspense. */
  holds: (id: string) => Promise<void>;
  /** An operator acts; an act that the state does not allow does nothing. */
  act: (resource: BankResource, id: string, what: string, facts?: ActFacts) => Promise<void>;
  recipient_id: string;
}

const PAYMENT_ENDS = [
  ...(['settled', 'settled', 'settled', 'settled', 'declined', 'wrong_amount'] as const),
  ...(['wrong_currency', 'late', 'late', 'twice', 'charged_back', 'failed_after'] as const),
  ...(['disputed', 'disputed', 'disputed'] as const),
] as const;
const REFUND_ENDS = [
  ...(['settled', 'failed', 'failed_then_settled', 'smaller', 'larger', 'twice'] as const),
  'foreign_then_failed',
] as const;
const PAYOUT_ENDS = [
  ...(['completed', 'failed', 'returned', 'returned_in_part', 'twice'] as const),
  ...(['failed_after_completed', 'failed_then_completed', 'completed_otherwise'] as const),
] as const;

const PAYMENT_MAX = 50_000;
const PAYOUT_MAX = 2_000;

/**
 * Runs the history of a seed: a payment with its refunds, or a payout, and all reports of its bank,
 * perhaps twice, late, in a different amount or in contradiction.
 * @returns what it did, in words
 */
export async function runHistory(world: HistoryWorld, seed: number): Promise<string[]> {
  const random = createRandom(seed);
  const history = createHistory(world, seed, random);
  if (random.chance(0.3)) await livePayout(history);
  else await livePayment(history);
  return history.done;
}

type History = ReturnType<typeof createHistory>;

function createHistory(world: HistoryWorld, seed: number, random: Random) {
  const done: string[] = [];
  let reports = 0;
  let creates = 0;
  return {
    world,
    random,
    done,
    /** @returns its id; undefined where it was refused */
    create: async (path: string, body: object): Promise<string | undefined> => {
      creates += 1;
      const id = await world.create(path, `history-${seed}-${creates}`, body);
      done.push(`${path} ${id} ${JSON.stringify(body)}`);
      return id;
    },
    /** Reports once, or twice; the bank's own reference by default. */
    report: async (
      resource: BankResource,
      resource_id: string,
      name: BankDecision['name'],
      money: { amount: number; currency?: string; isOther?: boolean; dispute?: DisputeFacts },
    ): Promise<void> => {
      reports += 1;
      const callback_id = `history_${seed}_${reports}`;
      const { amount, currency = 'EUR', isOther = false, dispute } = money;
      const bank_reference = bankReference(isOther ? callback_id : resource_id);
      const decision = { resource, resource_id, name, bank_reference, amount, currency };
      const times = random.chance(0.3) ? 2 : 1;
      done.push(`${name} ${amount} ${currency} ${bank_reference} ${times} times`);
      for (let time = 0; time < times; time += 1) {
        await world.decide(decision, callback_id, dispute);
      }
    },
    act: async (resource: BankResource, id: string, what: string, facts: ActFacts = {}) => {
      done.push(`${what} ${Object.values(facts)}`);
      await world.act(resource, id, what, facts);
    },
  };
}

async function livePayment(history: History): Promise<void> {
  const { world, random, create, report, act } = history;
  const amount = random.integer(1_000, PAYMENT_MAX);
  const id = await create('/v1/payments', idealPayment({ amount }));
  if (id === undefined) throw new Error('The payment was refused.');
  const end = random.pick(PAYMENT_ENDS);
  const other = random.integer(1, 2 * amount);
  if (random.chance(0.5)) await report('payment', id, 'authorized', { amount });
  switch (end) {
    case 'declined':
      return await report('payment', id, 'failed', { amount });
    case 'wrong_amount':
      await report('payment', id, 'settled', { amount: other });
      if (other === amount || random.chance(0.5)) return;
      await world.reaches('payment', id);
      return await act('payment', id, 'mark_settled');
    case 'wrong_currency':
      return await report('payment', id, 'settled', { amount: other, currency: 'USD' });
    case 'late': {
      await report('payment', id, 'failed', { amount });
      await world.reaches('payment', id, 'failed');
      const came = random.chance(0.5) ? amount : other;
      await report('payment', id, 'settled', { amount: came, isOther: random.chance(0.5) });
      return await report('payment', id, 'reversed', { amount: came, isOther: true });
    }
    case 'twice':
      await report('payment', id, 'settled', { amount });
      return await report('payment', id, 'settled', { amount, isOther: true });
    case 'charged_back':
    case 'failed_after': {
      await report('payment', id, 'settled', { amount });
      await world.reaches('payment', id, 'settled');
      const isPart = end === 'charged_back' && random.chance(0.5);
      const back = isPart ? random.integer(1, amount) : amount;
      const name = end === 'charged_back' ? 'clawed_back' : 'failed';
      await report('payment', id, name, { amount: back, isOther: true });
      return await act('payment', id, 'claw_back', { amount: back });
    }
    case 'disputed':
      await report('payment', id, 'settled', { amount });
      await world.reaches('payment', id, 'settled');
      return await liveDisputes(history, id, amount);
    case 'settled': {
      await report('payment', id, 'settled', { amount });
      if (random.chance(0.3)) await report('payment', id, 'authorized', { amount });
      if (random.chance(0.3)) await report('payment', id, 'expired', { amount });
      await world.reaches('payment', id, 'settled');
      for (let left = amount; left > 1 && random.chance(0.6); ) {
        const part = random.integer(1, left);
        await liveRefund(history, id, part);
        left -= part;
      }
      return;
    }
    default:
      return assertNever(end);
  }
}

/** Disputes in parts; each is won, lost or left open, and perhaps reported in the wrong order. */
async function liveDisputes(
  { random, report }: History,
  payment_id: string,
  amount: number,
): Promise<void> {
  for (let left = amount, n = 1; left > 1 && (n === 1 || random.chance(0.4)); n += 1) {
    const part = random.integer(1, left);
    const dispute = { dispute_id: `dispute_${n}`, fee: random.pick([0, 1_500]) };
    const opened = { amount: part, isOther: true, dispute };
    const won = { ...opened, dispute: { ...dispute, fee: random.pick([0, dispute.fee]) } };
    if (random.chance(0.2)) await report('payment', payment_id, 'dispute_lost', opened);
    await report('payment', payment_id, 'dispute_opened', opened);
    left -= part;
    if (random.chance(0.4)) await report('payment', payment_id, 'dispute_won', won);
    else if (random.chance(0.5)) await report('payment', payment_id, 'dispute_lost', opened);
  }
}

async function liveRefund(
  { world, random, create, report, act }: History,
  payment_id: string,
  amount: number,
): Promise<void> {
  const id = await create('/v1/refunds', { payment_id, amount });
  if (id === undefined) return;
  const end = random.pick(REFUND_ENDS);
  switch (end) {
    case 'settled':
      return await report('refund', id, 'settled', { amount });
    case 'failed':
      return await report('refund', id, 'failed', { amount });
    case 'failed_then_settled':
      await report('refund', id, 'failed', { amount });
      await world.reaches('refund', id, 'failed');
      return await report('refund', id, 'settled', { amount });
    case 'smaller': {
      const sent = random.integer(1, amount);
      await report('refund', id, 'settled', { amount: sent });
      if (sent === amount) return;
      await world.reaches('refund', id);
      return await act('refund', id, 'mark_settled', { amount: sent });
    }
    case 'larger':
      await report('refund', id, 'settled', { amount: amount + random.integer(1, amount) });
      await world.reaches('refund', id);
      return await act('refund', id, 'mark_settled');
    case 'foreign_then_failed':
      await report('refund', id, 'settled', { amount, currency: 'USD' });
      await world.reaches('refund', id);
      // The bank reverses what it sent.
      return await report('refund', id, 'failed', { amount, currency: 'USD' });
    case 'twice':
      await report('refund', id, 'settled', { amount });
      await world.reaches('refund', id, 'settled');
      return await report('refund', id, 'settled', { amount, isOther: true });
    default:
      return assertNever(end);
  }
}

async function livePayout({ world, random, create, report, act }: History): Promise<void> {
  const amount = random.integer(2, PAYOUT_MAX);
  const { recipient_id } = world;
  const id = await create('/v1/payouts', {
    ...{ recipient_id, amount, currency: 'EUR', method: 'sepa_instant' },
    metadata: { balance_account: 'main' },
  });
  if (id === undefined) return;
  await world.reaches('payout', id, 'sent');
  const end = random.pick(PAYOUT_ENDS);
  if (end === 'failed') return await report('payout', id, 'failed', { amount });
  if (end === 'failed_then_completed') {
    await report('payout', id, 'failed', { amount });
    await world.reaches('payout', id, 'failed');
    await report('payout', id, 'completed', { amount });
    if (random.chance(0.5)) await report('payout', id, 'failed', { amount });
    return;
  }
  if (end === 'completed_otherwise') {
    // It was sent, which is all that moves money: another amount is a wrong report.
    await report('payout', id, 'completed', { amount: amount - 1 });
    await world.holds(id);
    await act('payout', id, 'mark_completed');
    return await act('payout', id, 'resolve_movement', { as: 'never_happened' });
  }
  await report('payout', id, 'completed', { amount });
  if (random.chance(0.3)) await report('payout', id, 'sent', { amount });
  await world.reaches('payout', id, 'completed');
  switch (end) {
    case 'completed':
      return;
    case 'returned':
      return await report('payout', id, 'returned', { amount });
    case 'returned_in_part': {
      const back = random.integer(1, amount - 1);
      await report('payout', id, 'returned', { amount: back });
      await world.reaches('payout', id, 'returned');
      return await act('payout', id, 'mark_returned', { amount: back });
    }
    case 'twice':
      return await report('payout', id, 'completed', { amount, isOther: true });
    case 'failed_after_completed':
      await report('payout', id, 'failed', { amount });
      await world.reaches('payout', id, 'failed');
      return await act('payout', id, 'mark_returned');
    default:
      return assertNever(end);
  }
}
