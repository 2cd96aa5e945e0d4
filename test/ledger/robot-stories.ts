import type { BankResource, CallbackName } from '../../src/domain/banks/callback';
import type { Direction } from '../../src/domain/banks/movement';
import { disputeId } from '../../src/store/disputes';
import { eventually } from '../support/eventually';
import { idealPayment } from '../support/http';
import type { Random } from '../support/random';
import type { Account } from '../support/service';
import { type About, buildCharge, type ModelBank } from './robot-bank';

export interface Story {
  account: Pick<Account, 'post' | 'get'>;
  bank: ModelBank;
  random: Random;
  recipient_id: string;
  /** Lets an operator follow a reason before it comes by itself, after days. */
  follow: (about: About, reason: string) => Promise<void>;
  done: string[];
  created: About[];
}
export async function read({ account }: Pick<Story, 'account'>, { resource, id }: About) {
  return (await account.get(`/v1/${resource}s/${id}`)).body;
}

type Facts = About & { amount: number };
/** Stories of a resource, of which a seed picks by the place. */
type Ends = Record<string, (about: Facts) => Promise<unknown>>;

interface Money {
  amount: number;
  currency?: string;
  name?: string;
}

interface Taken {
  amount: number;
  fee: number;
  /** By movements that are reported apart. */
  isApart: boolean;
}

const DISPUTE = { dispute_id: 'dispute_1' };

/**
 * Runs what happens to one to three resources, each from its own end.
 * @param isRefunded begins with a payment that is refunded, since few others are
 * @param isDisputed ends with a payment that is disputed, since few others are
 */
export async function runStories(
  story: Story,
  { isRefunded, isDisputed }: { isRefunded: boolean; isDisputed: boolean },
): Promise<void> {
  const { account, bank, random, recipient_id, follow, done, created } = story;
  const { report } = bank;

  const create = async (resource: BankResource, body: object): Promise<About | undefined> => {
    const answer = await account.post(`/v1/${resource}s`, body);
    const { id } = answer.body;
    done.push(`${resource} ${id ?? answer.body.error.code} ${JSON.stringify(body)}`);
    if (answer.status !== 201) return undefined;
    created.push({ resource, id });
    return { resource, id };
  };
  const reaches = (about: About, ...statuses: string[]) =>
    eventually(`${about.resource} ${about.id} to be ${statuses}`, async () =>
      statuses.includes((await read(story, about)).status),
    );
  const run = async (ends: Ends, about: Facts, end = random.pick(Object.keys(ends))) => {
    done.push(`${about.resource} ${about.id} ${end}`);
    await ends[end]?.(about);
  };
  const chooseOther = (amount: number) => amount + random.pick([-1, 1]) * random.integer(1, 900);

  /** Lets all of the money come for a payment, or a different amount, and reports it. */
  const settle = async (about: Facts, money: Partial<Money> = {}) => {
    const moved = bank.transferWithCharge(about, 'in', { amount: about.amount, ...money });
    await report(about, 'settled', moved);
    return moved;
  };
  /** Sends all of the money of a refund or payout, or a different amount, and reports it. */
  const send = async (
    about: Facts,
    event: 'settled' | 'completed' | 'sent',
    money: Partial<Money> = {},
  ) => {
    const moved = bank.transferWithCharge(about, 'out', { amount: about.amount, ...money });
    await report(about, event, moved);
    return moved;
  };
  const comeBack = async (about: Facts, money: Partial<Money> = {}) =>
    await report(about, 'returned', bank.transfer(about, 'in', { amount: about.amount, ...money }));
  /** Reports what has never moved. */
  const misreport = (about: Facts, event: CallbackName, amount = about.amount) =>
    report(about, event, { amount, name: bank.name() });
  const fail = async (about: Facts) => {
    await report(about, 'failed', about);
    await reaches(about, 'failed');
  };
  const bothOrders = async (reports: (() => Promise<void>)[]) => {
    if (random.chance(0.3)) reports.reverse();
    for (const each of reports) await each();
  };

  /** Reports a dispute and its money, apart in any order. */
  async function reportInParts(
    about: About,
    event: CallbackName,
    transfer: CallbackName,
    { isApart, ...money }: Taken & { name: string },
  ): Promise<void> {
    if (!isApart) return await report(about, event, { ...DISPUTE, ...money });
    await bothOrders([
      () => report(about, event, { ...DISPUTE, amount: 0 }),
      () => report(about, transfer, { ...DISPUTE, ...money }),
    ]);
  }

  /** Lets the merchant answer the bank, which may have refused it. */
  async function answerDispute({ id }: About): Promise<void> {
    const evidence = ['evidence', { explanation: 'It was delivered.' }] as const;
    const [act, body] = random.pick([evidence, ['accept', {}] as const]);
    const path = `/v1/disputes/${disputeId(id, DISPUTE.dispute_id)}`;
    await eventually('a dispute to be there', async () => (await account.get(path)).status === 200);
    const { status, body: answer } = await account.post(`${path}/${act}`, body);
    done.push(`${act} of the dispute of ${id}: ${answer.error?.code ?? status}`);
  }

  /** Lets a dispute take money, and perhaps the merchant answer. */
  async function dispute(about: Facts): Promise<Taken> {
    const fee = random.pick([0, 1_500]);
    const taken = { amount: random.integer(1, about.amount), fee, isApart: random.chance(0.5) };
    const moved = bank.dispute(about, { amount: taken.amount, fee });
    const { name } = moved;
    await reportInParts(about, 'dispute_opened', 'dispute_withdrawn', { ...taken, name });
    // Some banks report the same money by both.
    if (fee === 0 && random.chance(0.4)) await report(about, 'clawed_back', moved);
    if (random.chance(0.5)) await answerDispute(about);
    const status = { ...DISPUTE, dispute_status: 'under_review' } as const;
    if (random.chance(0.3)) await report(about, 'dispute_updated', status);
    return taken;
  }
  async function win(about: Facts, taken: Taken): Promise<void> {
    const amount = random.pick([taken.amount, random.integer(1, taken.amount)]);
    const fee = random.pick([0, taken.fee]);
    const { name } = bank.transfer(about, 'in', { amount, ...buildCharge(-fee) });
    const back = { ...taken, amount, fee, name };
    await reportInParts(about, 'dispute_won', 'dispute_reinstated', back);
  }
  const lose = async (about: Facts, { amount }: Pick<Taken, 'amount'>) =>
    await report(about, 'dispute_lost', { ...DISPUTE, amount });

  const DISPUTE_ENDS: Ends = {
    /** Takes nothing. */
    inquired: async (about) => {
      await report(about, 'dispute_opened', { ...DISPUTE, amount: 0 });
      await answerDispute(about);
      await lose(about, { amount: random.pick([0, about.amount]) });
    },
    /** Takes what refunds have given back, too. */
    after_refunds: async (about) => {
      await refundParts(about);
      const { amount, name } = bank.reverse(about, about.amount);
      await report(about, 'dispute_opened', { ...DISPUTE, amount, name });
    },
    open: dispute,
    lost: async (about) => await lose(about, await dispute(about)),
    lost_otherwise: async (about) =>
      await lose(about, { amount: (await dispute(about)).amount + 1 }),
    won: async (about) => await win(about, await dispute(about)),
    lost_then_won: async (about) => {
      const taken = await dispute(about);
      await lose(about, taken);
      await win(about, taken);
    },
  };

  const PAYMENT_ENDS: Ends = {
    declined: (about) => report(about, 'failed', about),
    settled: async (about) => {
      await settle(about);
      await reaches(about, 'settled');
      await refundParts(about);
    },
    wrong_amount: (about) => settle(about, { amount: chooseOther(about.amount) }),
    wrong_currency: (about) => settle(about, { currency: 'USD' }),
    split: async (about) => {
      const reference = bank.name();
      const half = about.amount / 2;
      const first = Math.ceil(random.chance(0.3) ? half : random.integer(1, about.amount - 1));
      await settle(about, { amount: first, name: `${reference}#1.1` });
      await settle(about, { amount: about.amount - first, name: `${reference}#1.2` });
    },
    twice: async (about) => {
      await settle(about);
      await settle(about, random.chance(0.5) ? {} : { amount: chooseOther(about.amount) });
    },
    again_unreported: async (about) => {
      await settle(about);
      bank.receiveUnreported(about, random.integer(1, about.amount));
    },
    wrong_report: (about) => misreport(about, 'settled', chooseOther(about.amount)),
    corrected_report: async (about) => {
      await misreport(about, 'settled', chooseOther(about.amount));
      await settle(about);
    },
    back_unreported: async (about) => {
      bank.undo(await settle(about, { amount: chooseOther(about.amount) }));
    },
    late: async (about) => {
      if (random.chance(0.3)) bank.refuseReversals();
      await fail(about);
      const amount = random.chance(0.5) ? about.amount : chooseOther(about.amount);
      await settle(about, { amount, currency: random.chance(0.2) ? 'USD' : 'EUR' });
    },
    charged_back: async (about) => {
      await settle(about);
      await reaches(about, 'settled');
      const amount = random.chance(0.5) ? about.amount : random.integer(1, about.amount);
      const isTrue = random.chance(0.8);
      const taken = isTrue ? bank.reverse(about, amount) : { amount, name: bank.name() };
      await report(about, random.pick(['clawed_back', 'failed', 'reversed']), taken);
    },
    disputed: async (about) => {
      await settle(about);
      await reaches(about, 'settled');
      await run(DISPUTE_ENDS, about);
    },
  };

  const REFUND_ENDS: Ends = {
    settled: (about) => send(about, 'settled'),
    failed: (about) => report(about, 'failed', about),
    failed_then_settled: async (about) => {
      await fail(about);
      await send(about, 'settled');
    },
    /** As if it had settled after all; nothing moved. */
    failed_then_misreported: async (about) => {
      await fail(about);
      await misreport(about, 'settled', about.amount + random.integer(1, 900));
    },
    otherwise: (about) => send(about, 'settled', { amount: chooseOther(about.amount) }),
    foreign: async (about) => {
      const sent = await send(about, 'settled', { currency: 'USD' });
      if (random.chance(0.5)) bank.undo(sent);
    },
    twice: async (about) => {
      await send(about, 'settled');
      await reaches(about, 'settled');
      const again = await send(about, 'settled');
      if (random.chance(0.4)) bank.undo(again);
    },
    /** An operator asks before the bank reports it. */
    found_out_first: async (about) => {
      const sent = bank.transferWithCharge(about, 'out', { amount: about.amount });
      await follow(about, 'refund_overdue');
      await report(about, 'settled', sent);
    },
    came_back: async (about) => {
      await send(about, 'settled');
      await reaches(about, 'settled');
      const { amount } = about;
      if (!random.chance(0.7)) return await misreport(about, 'failed');
      await report(about, 'failed', bank.transfer(about, 'in', { amount }));
    },
  };

  async function runPayment(end?: string): Promise<void> {
    const amount = random.integer(1_000, 50_000);
    const about = await create('payment', idealPayment({ amount }));
    if (about === undefined) throw new Error('The payment was refused.');
    if (random.chance(0.3)) await report(about, 'authorized', { amount });
    await run(PAYMENT_ENDS, { ...about, amount }, end);
  }

  async function refundParts(payment: Facts): Promise<void> {
    for (let left = payment.amount; left > 1_000 && random.chance(0.7); ) {
      const amount = random.integer(1_000, left);
      left -= amount;
      const about = await create('refund', { payment_id: payment.id, amount });
      if (about === undefined) return;
      await run(REFUND_ENDS, { ...about, amount });
    }
  }

  /** Lets the bank correct what it has booked; sometimes it books it again at once. */
  async function correct(
    about: Facts,
    direction: Direction,
    event: 'debit_reversed' | 'return_reversed',
  ): Promise<void> {
    const taken = bank.correct(about, direction, about.amount);
    if (random.chance(0.5)) return await report(about, event, taken);
    const booked = bank.bookAgain(taken);
    await bothOrders([
      () => report(about, event, taken),
      () => report(about, direction === 'in' ? 'completed' : 'returned', booked),
    ]);
  }

  const complete = (about: Facts) =>
    report(about, 'completed', { amount: about.amount, name: bank.nameOf(about.id) });
  const returnAll = async (about: Facts) => {
    await comeBack(about);
    await reaches(about, 'returned');
  };

  /** The money of the payout has left already. */
  const SENT_ENDS: Ends = {
    completed: complete,
    returned: (about) => comeBack(about),
    returned_otherwise: (about) => comeBack(about, { amount: random.integer(1, about.amount - 1) }),
    /** First in another currency, then in its own, then again. */
    returned_thrice: async (about) => {
      await comeBack(about, { currency: 'USD' });
      await returnAll(about);
      await comeBack(about);
    },
    returned_twice: async (about) => {
      await returnAll(about);
      const isTrue = random.chance(0.5);
      if (isTrue) await comeBack(about);
      // Next to a true one, only its reference distinguishes a wrong one.
      if (!isTrue || about.amount % 2 !== 0) await misreport(about, 'returned');
    },
    twice: async (about) => {
      await complete(about);
      await reaches(about, 'completed');
      const again = await send(about, 'completed');
      if (random.chance(0.4)) bank.undo(again);
    },
    /** Only by `sent`, as a bank that reports nothing else of it. */
    sent_twice: async (about) => {
      await send(about, 'sent');
      await complete(about);
    },
    again_after_return: async (about) => {
      await returnAll(about);
      await send(about, 'completed');
    },
    debit_reversed: async (about) => {
      const isCompleted = random.chance(0.6);
      if (isCompleted) await complete(about);
      await reaches(about, isCompleted ? 'completed' : 'sent');
      await correct(about, 'in', 'debit_reversed');
    },
    return_reversed: async (about) => {
      await returnAll(about);
      await correct(about, 'out', 'return_reversed');
    },
    failed_after_completed: async (about) => {
      await complete(about);
      await reaches(about, 'completed');
      const { amount } = about;
      if (random.chance(0.6)) bank.transfer(about, 'in', { amount });
      await report(about, 'failed', { amount });
    },
  };

  const SUBMITTED_ENDS: Ends = {
    completed: (about) => send(about, 'completed'),
    failed: (about) => report(about, 'failed', about),
    reported_larger: async (about) => {
      const sent = bank.transfer(about, 'out', { amount: about.amount, isMisreported: true });
      const amount = about.amount + random.integer(1, 900);
      await report(about, 'completed', { amount, name: sent.name });
    },
    larger: (about) => send(about, 'completed', { amount: about.amount + random.integer(1, 900) }),
    foreign: (about) => send(about, 'completed', { currency: 'USD' }),
    /** An operator asks before the bank reports it. */
    found_out_first: async (about) => {
      const sent = bank.transferWithCharge(about, 'out', { amount: about.amount });
      await follow(about, 'not_sent');
      await report(about, 'completed', sent);
    },
    /** Before it is sent, also where nothing else reports that. */
    not_verified: async (about) => {
      const result = random.pick(['close_match', 'no_match', 'not_possible'] as const);
      const { amount } = about;
      const moved = random.chance(0.5) ? bank.transfer(about, 'out', { amount }) : undefined;
      await report(about, 'payee_verified', { result });
      if (random.chance(0.5)) await follow(about, 'payee_not_verified');
      if (moved !== undefined && random.chance(0.5)) await report(about, 'completed', moved);
    },
    failed_then_completed: async (about) => {
      await fail(about);
      const sent = await send(about, 'completed');
      if (random.chance(0.4)) bank.undo(sent);
    },
  };

  async function runPayout(): Promise<void> {
    const isSent = random.chance(0.6);
    bank.planPayout(isSent ? 'sent' : random.pick(['submitted', 'submitted', 'refused']));
    const amount = random.integer(1_000, 5_000);
    const facts = { recipient_id, amount, currency: 'EUR', method: 'sepa_instant' };
    const metadata = { balance_account: 'main' };
    const about = await create('payout', { ...facts, metadata });
    // While a merchant owes, payouts are refused.
    if (about === undefined) return;
    await reaches(about, 'submitted', 'sent', 'failed');
    const { status } = await read(story, about);
    if (status === 'failed') return;
    await run(status === 'sent' ? SENT_ENDS : SUBMITTED_ENDS, { ...about, amount });
  }

  if (isRefunded) await runPayment('settled');
  const count = random.integer(1, 3);
  for (let n = 0; n < count; n += 1) {
    if (random.chance(0.4)) await runPayout();
    else await runPayment();
    if (random.chance(0.2)) bank.charge(random.integer(1, 500), random.chance(0.5));
  }
  if (isDisputed) await runPayment('disputed');
}
