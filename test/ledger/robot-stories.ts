import type { BankResource, CallbackName } from '../../src/domain/banks/callback';
import type { Direction } from '../../src/domain/banks/movement';
import { disputeId } from '../../src/store/disputes';
import { eventually, idealPayment } from '../support/http';
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
  /** Describes what happened. */
  done: string[];
  /** Resources of the seed. */
  created: About[];
}

const PATHS: Record<BankResource, string> = {
  payment: '/v1/payments',
  refund: '/v1/refunds',
  payout: '/v1/payouts',
};

/** Reads a resource as its merchant does. */
export async function read({ account }: Pick<Story, 'account'>, { resource, id }: About) {
  return (await account.get(`${PATHS[resource]}/${id}`)).body;
}

async function create(
  story: Story,
  resource: BankResource,
  body: object,
): Promise<About | undefined> {
  const answer = await story.account.post(PATHS[resource], body);
  story.done.push(
    `${resource} ${answer.body.id ?? answer.body.error.code} ${JSON.stringify(body)}`,
  );
  if (answer.status !== 201) return undefined;
  const about = { resource, id: answer.body.id };
  story.created.push(about);
  return about;
}

async function reaches(story: Story, about: About, ...statuses: string[]): Promise<void> {
  await eventually(`${about.resource} ${about.id} to be ${statuses}`, async () =>
    statuses.includes((await read(story, about)).status),
  );
}

/**
 * Runs what happens to one to three resources, each from its own end.
 * @param isRefunded begins with a payment that is refunded, since few others are
 * @param isDisputed ends with a payment that is disputed, since few others are
 */
export async function runStories(
  story: Story,
  { isRefunded, isDisputed }: { isRefunded: boolean; isDisputed: boolean },
): Promise<void> {
  const { random } = story;
  if (isRefunded) await runPayment(story, 'settled');
  const count = random.integer(1, 3);
  for (let n = 0; n < count; n += 1) {
    if (random.chance(0.4)) await runPayout(story);
    else await runPayment(story);
    if (random.chance(0.2)) story.bank.charge(random.integer(1, 500), random.chance(0.5));
  }
  if (isDisputed) await runPayment(story, 'disputed');
}

type Ends<Facts> = Record<string, (story: Story, facts: Facts) => Promise<unknown>>;
type Facts = About & { amount: number };

async function run(
  story: Story,
  ends: Ends<Facts>,
  facts: Facts,
  end = story.random.pick(Object.keys(ends)),
): Promise<void> {
  story.done.push(`${facts.resource} ${facts.id} ${end}`);
  await ends[end]?.(story, facts);
}

async function runPayment(story: Story, end?: string): Promise<void> {
  const amount = story.random.integer(1_000, 50_000);
  const about = await create(story, 'payment', idealPayment({ amount }));
  if (about === undefined) throw new Error('The payment was refused.');
  if (story.random.chance(0.3)) await story.bank.report(about, 'authorized', { amount });
  await run(story, PAYMENT_ENDS, { ...about, amount }, end);
}

/** Lets money come for a payment, and reports it. */
async function settle({ bank }: Pick<Story, 'bank'>, about: About, money: Money) {
  const moved = bank.transferWithCharge(about, 'in', money);
  await bank.report(about, 'settled', moved);
  return moved;
}

interface Money {
  amount: number;
  currency?: string;
  name?: string;
}

const other = (random: Random, amount: number) =>
  amount + random.pick([-1, 1]) * random.integer(1, 900);

const PAYMENT_ENDS: Ends<Facts> = {
  declined: ({ bank }, about) => bank.report(about, 'failed', about),
  settled: async (story, about) => {
    await settle(story, about, { amount: about.amount });
    await reaches(story, about, 'settled');
    await runRefunds(story, about);
  },
  wrong_amount: (story, about) =>
    settle(story, about, { amount: other(story.random, about.amount) }),
  wrong_currency: (story, about) => settle(story, about, { amount: about.amount, currency: 'USD' }),
  /** Has both parts in one statement entry. */
  split: async (story, about) => {
    const reference = story.bank.name();
    const first = story.random.chance(0.3)
      ? about.amount / 2
      : story.random.integer(1, about.amount - 1);
    const parts = [Math.ceil(first), about.amount - Math.ceil(first)];
    for (const [at, amount] of parts.entries()) {
      await settle(story, about, { amount, name: `${reference}#1.${at + 1}` });
    }
  },
  twice: async (story, about) => {
    await settle(story, about, { amount: about.amount });
    const amount = story.random.chance(0.5) ? about.amount : other(story.random, about.amount);
    await settle(story, about, { amount });
  },
  again_unreported: async (story, about) => {
    await settle(story, about, { amount: about.amount });
    story.bank.receiveUnreported(about, story.random.integer(1, about.amount));
  },
  wrong_report: async ({ bank, random }, about) => {
    const amount = other(random, about.amount);
    await bank.report(about, 'settled', { amount, name: bank.name() });
  },
  corrected_report: async (story, about) => {
    const amount = other(story.random, about.amount);
    await story.bank.report(about, 'settled', { amount, name: story.bank.name() });
    await settle(story, about, { amount: about.amount });
  },
  back_unreported: async (story, about) => {
    const moved = await settle(story, about, { amount: other(story.random, about.amount) });
    story.bank.undo(moved);
  },
  late: async (story, about) => {
    if (story.random.chance(0.3)) story.bank.refuseReversals();
    await story.bank.report(about, 'failed', about);
    await reaches(story, about, 'failed');
    const isExact = story.random.chance(0.5);
    await settle(story, about, {
      amount: isExact ? about.amount : other(story.random, about.amount),
      currency: story.random.chance(0.2) ? 'USD' : 'EUR',
    });
  },
  charged_back: async (story, about) => {
    const { bank, random } = story;
    await settle(story, about, { amount: about.amount });
    await reaches(story, about, 'settled');
    const amount = random.chance(0.5) ? about.amount : random.integer(1, about.amount);
    const isTrue = random.chance(0.8);
    const taken = isTrue ? bank.reverse(about, amount) : { amount, name: bank.name() };
    await bank.report(about, random.pick(['clawed_back', 'failed', 'reversed']), taken);
  },
  disputed: async (story, about) => {
    await settle(story, about, { amount: about.amount });
    await reaches(story, about, 'settled');
    await run(story, DISPUTE_ENDS, about);
  },
};

const DISPUTE = { dispute_id: 'dispute_1' };

interface Taken {
  amount: number;
  fee: number;
  /** By movements that are reported apart. */
  isApart: boolean;
}

const DISPUTE_ENDS: Ends<Facts> = {
  /** Takes nothing. */
  inquired: async (story, about) => {
    const { bank, random } = story;
    await bank.report(about, 'dispute_opened', { ...DISPUTE, amount: 0 });
    await answerDispute(story, about);
    const amount = random.pick([0, about.amount]);
    await bank.report(about, 'dispute_lost', { ...DISPUTE, amount });
  },
  /** Takes what refunds have given back, too. */
  after_refunds: async (story, about) => {
    await runRefunds(story, about);
    const { amount, name } = story.bank.reverse(about, about.amount);
    await story.bank.report(about, 'dispute_opened', { ...DISPUTE, amount, name });
  },
  open: runDispute,
  lost: async (story, about) => {
    const { amount } = await runDispute(story, about);
    await story.bank.report(about, 'dispute_lost', { ...DISPUTE, amount });
  },
  lost_otherwise: async (story, about) => {
    const { amount } = await runDispute(story, about);
    await story.bank.report(about, 'dispute_lost', { ...DISPUTE, amount: amount + 1 });
  },
  won: async (story, about) => await winDispute(story, about, await runDispute(story, about)),
  lost_then_won: async (story, about) => {
    const taken = await runDispute(story, about);
    await story.bank.report(about, 'dispute_lost', { ...DISPUTE, amount: taken.amount });
    await winDispute(story, about, taken);
  },
};

/** Lets a dispute take money, and perhaps the merchant answer. */
async function runDispute(story: Story, about: Facts): Promise<Taken> {
  const { bank, random } = story;
  const fee = random.pick([0, 1_500]);
  const taken = { amount: random.integer(1, about.amount), fee, isApart: random.chance(0.5) };
  const moved = bank.dispute(about, { amount: taken.amount, fee });
  const events = { event: 'dispute_opened', transfer: 'dispute_withdrawn' } as const;
  await reportInParts(story, about, events, { ...taken, name: moved.name });
  // Some banks report the same money by both.
  if (fee === 0 && random.chance(0.4)) await bank.report(about, 'clawed_back', moved);
  if (random.chance(0.5)) await answerDispute(story, about);
  if (random.chance(0.3)) {
    const status = { ...DISPUTE, dispute_status: 'under_review' } as const;
    await bank.report(about, 'dispute_updated', status);
  }
  return taken;
}

/** Lets money of a dispute come back. */
async function winDispute(story: Story, about: Facts, taken: Taken): Promise<void> {
  const { bank, random } = story;
  const amount = random.pick([taken.amount, random.integer(1, taken.amount)]);
  const fee = random.pick([0, taken.fee]);
  const { name } = bank.transfer(about, 'in', { amount, ...buildCharge(-fee) });
  const events = { event: 'dispute_won', transfer: 'dispute_reinstated' } as const;
  await reportInParts(story, about, events, { ...taken, amount, fee, name });
}

/** Reports a dispute and its money, apart in any order. */
async function reportInParts(
  { bank, random }: Story,
  about: About,
  { event, transfer }: Record<'event' | 'transfer', CallbackName>,
  { isApart, ...money }: Taken & { name: string },
): Promise<void> {
  if (!isApart) return await bank.report(about, event, { ...DISPUTE, ...money });
  const reports = [
    () => bank.report(about, event, { ...DISPUTE, amount: 0 }),
    () => bank.report(about, transfer, { ...DISPUTE, ...money }),
  ];
  if (random.chance(0.3)) reports.reverse();
  for (const report of reports) await report();
}

/** Lets the merchant answer the bank, which may have refused it. */
async function answerDispute({ account, random, done }: Story, { id }: About): Promise<void> {
  const [act, body] = random.pick([
    ['evidence', { explanation: 'It was delivered.' }],
    ['accept', {}],
  ] as const);
  const path = `/v1/disputes/${disputeId(id, DISPUTE.dispute_id)}`;
  await eventually('a dispute to be there', async () => (await account.get(path)).status === 200);
  const { status, body: answer } = await account.post(`${path}/${act}`, body);
  done.push(`${act} of the dispute of ${id}: ${answer.error?.code ?? status}`);
}

async function runRefunds(story: Story, payment: Facts): Promise<void> {
  for (let left = payment.amount; left > 1_000 && story.random.chance(0.7); ) {
    const amount = story.random.integer(1_000, left);
    left -= amount;
    const about = await create(story, 'refund', { payment_id: payment.id, amount });
    if (about === undefined) return;
    await run(story, REFUND_ENDS, { ...about, amount });
  }
}

/** Sends money of a refund or payout, and reports it. */
async function send(
  { bank }: Story,
  about: About,
  event: 'settled' | 'completed' | 'sent',
  money: Money,
) {
  const moved = bank.transferWithCharge(about, 'out', money);
  await bank.report(about, event, moved);
  return moved;
}

const REFUND_ENDS: Ends<Facts> = {
  settled: (story, about) => send(story, about, 'settled', { amount: about.amount }),
  failed: ({ bank }, about) => bank.report(about, 'failed', about),
  failed_then_settled: async (story, about) => {
    await story.bank.report(about, 'failed', about);
    await reaches(story, about, 'failed');
    await send(story, about, 'settled', { amount: about.amount });
  },
  /** As if it had settled after all; nothing moved. */
  failed_then_misreported: async ({ bank, random, ...story }, about) => {
    await bank.report(about, 'failed', about);
    await reaches({ bank, random, ...story }, about, 'failed');
    const amount = about.amount + random.integer(1, 900);
    await bank.report(about, 'settled', { amount, name: bank.name() });
  },
  otherwise: (story, about) =>
    send(story, about, 'settled', { amount: other(story.random, about.amount) }),
  foreign: async (story, about) => {
    const sent = await send(story, about, 'settled', { amount: about.amount, currency: 'USD' });
    if (story.random.chance(0.5)) story.bank.undo(sent);
  },
  twice: async (story, about) => {
    await send(story, about, 'settled', { amount: about.amount });
    await reaches(story, about, 'settled');
    const again = await send(story, about, 'settled', { amount: about.amount });
    if (story.random.chance(0.4)) story.bank.undo(again);
  },
  /** An operator asks before the bank reports it. */
  found_out_first: async (story, about) => {
    const sent = story.bank.transferWithCharge(about, 'out', { amount: about.amount });
    await story.follow(about, 'refund_overdue');
    await story.bank.report(about, 'settled', sent);
  },
  came_back: async (story, about) => {
    await send(story, about, 'settled', { amount: about.amount });
    await reaches(story, about, 'settled');
    const isTrue = story.random.chance(0.7);
    const { amount } = about;
    const back = isTrue
      ? story.bank.transfer(about, 'in', { amount })
      : { amount, name: story.bank.name() };
    await story.bank.report(about, 'failed', back);
  },
};

async function runPayout(story: Story): Promise<void> {
  const { random, recipient_id, bank } = story;
  const isSent = random.chance(0.6);
  bank.planPayout(isSent ? 'sent' : random.pick(['submitted', 'submitted', 'refused']));
  const amount = random.integer(1_000, 5_000);
  const about = await create(story, 'payout', {
    ...{ recipient_id, amount, currency: 'EUR', method: 'sepa_instant' },
    metadata: { balance_account: 'main' },
  });
  // While a merchant owes, payouts are refused.
  if (about === undefined) return;
  await reaches(story, about, 'submitted', 'sent', 'failed');
  const { status } = await read(story, about);
  if (status === 'failed') return;
  await run(story, status === 'sent' ? SENT_ENDS : SUBMITTED_ENDS, { ...about, amount });
}

/** Lets a payout come back, and reports it. */
async function comeBack({ bank }: Story, about: About, amount: number) {
  const moved = bank.transfer(about, 'in', { amount });
  await bank.report(about, 'returned', moved);
  return moved;
}

interface Correction {
  direction: Direction;
  event: 'debit_reversed' | 'return_reversed';
}

/** Lets the bank correct what it has booked; sometimes it books it again at once. */
async function correct(
  { bank, random }: Story,
  about: Facts,
  { direction, event }: Correction,
): Promise<void> {
  const { amount } = about;
  const taken = bank.correct(about, direction, amount);
  if (random.chance(0.5)) return await bank.report(about, event, taken);
  const again = direction === 'in' ? 'completed' : 'returned';
  const booked = bank.bookAgain(taken);
  const reports = [() => bank.report(about, event, taken), () => bank.report(about, again, booked)];
  if (random.chance(0.3)) reports.reverse();
  for (const report of reports) await report();
}

/** The money of the payout has left already. */
const SENT_ENDS: Ends<Facts> = {
  completed: (story, about) =>
    story.bank.report(about, 'completed', {
      amount: about.amount,
      name: story.bank.nameOf(about.id),
    }),
  returned: (story, about) => comeBack(story, about, about.amount),
  returned_otherwise: (story, about) =>
    comeBack(story, about, story.random.integer(1, about.amount - 1)),
  /** First in another currency, then in its own, then again. */
  returned_thrice: async (story, about) => {
    const { bank } = story;
    const { amount } = about;
    await bank.report(about, 'returned', bank.transfer(about, 'in', { amount, currency: 'USD' }));
    await comeBack(story, about, amount);
    await reaches(story, about, 'returned');
    await comeBack(story, about, amount);
  },
  returned_twice: async (story, about) => {
    await comeBack(story, about, about.amount);
    await reaches(story, about, 'returned');
    const isTrue = story.random.chance(0.5);
    if (isTrue) await comeBack(story, about, about.amount);
    // Next to a true one, only its reference distinguishes a wrong one.
    if (isTrue && about.amount % 2 === 0) return;
    const wrong = { amount: about.amount, name: story.bank.name() };
    await story.bank.report(about, 'returned', wrong);
  },
  twice: async (story, about) => {
    await SENT_ENDS['completed']?.(story, about);
    await reaches(story, about, 'completed');
    const again = await send(story, about, 'completed', { amount: about.amount });
    if (story.random.chance(0.4)) story.bank.undo(again);
  },
  /** Only by `sent`, as a bank that reports nothing else of it. */
  sent_twice: async (story, about) => {
    await send(story, about, 'sent', { amount: about.amount });
    await SENT_ENDS['completed']?.(story, about);
  },
  again_after_return: async (story, about) => {
    await comeBack(story, about, about.amount);
    await reaches(story, about, 'returned');
    await send(story, about, 'completed', { amount: about.amount });
  },
  debit_reversed: async (story, about) => {
    const isCompleted = story.random.chance(0.6);
    if (isCompleted) await SENT_ENDS['completed']?.(story, about);
    await reaches(story, about, isCompleted ? 'completed' : 'sent');
    await correct(story, about, { direction: 'in', event: 'debit_reversed' });
  },
  return_reversed: async (story, about) => {
    await comeBack(story, about, about.amount);
    await reaches(story, about, 'returned');
    await correct(story, about, { direction: 'out', event: 'return_reversed' });
  },
  failed_after_completed: async (story, about) => {
    await SENT_ENDS['completed']?.(story, about);
    await reaches(story, about, 'completed');
    if (story.random.chance(0.6)) story.bank.transfer(about, 'in', { amount: about.amount });
    await story.bank.report(about, 'failed', { amount: about.amount });
  },
};

const SUBMITTED_ENDS: Ends<Facts> = {
  completed: (story, about) => send(story, about, 'completed', { amount: about.amount }),
  failed: ({ bank }, about) => bank.report(about, 'failed', about),
  /** More than it has sent. */
  reported_larger: async ({ bank, random }, about) => {
    const sent = bank.transfer(about, 'out', { amount: about.amount, isMisreported: true });
    const amount = about.amount + random.integer(1, 900);
    await bank.report(about, 'completed', { amount, name: sent.name });
  },
  larger: (story, about) =>
    send(story, about, 'completed', { amount: about.amount + story.random.integer(1, 900) }),
  foreign: (story, about) =>
    send(story, about, 'completed', { amount: about.amount, currency: 'USD' }),
  /** An operator asks before the bank reports it. */
  found_out_first: async (story, about) => {
    const sent = story.bank.transferWithCharge(about, 'out', { amount: about.amount });
    await story.follow(about, 'not_sent');
    await story.bank.report(about, 'completed', sent);
  },
  /** Before it is sent, also where nothing else reports that. */
  not_verified: async (story, about) => {
    const { bank, random, follow } = story;
    const result = random.pick(['close_match', 'no_match', 'not_possible'] as const);
    const isSent = random.chance(0.5);
    const moved = isSent ? bank.transfer(about, 'out', { amount: about.amount }) : undefined;
    await bank.report(about, 'payee_verified', { result });
    if (random.chance(0.5)) await follow(about, 'payee_not_verified');
    if (moved !== undefined && random.chance(0.5)) await bank.report(about, 'completed', moved);
  },
  failed_then_completed: async (story, about) => {
    await story.bank.report(about, 'failed', about);
    await reaches(story, about, 'failed');
    const sent = await send(story, about, 'completed', { amount: about.amount });
    if (story.random.chance(0.4)) story.bank.undo(sent);
  },
};
