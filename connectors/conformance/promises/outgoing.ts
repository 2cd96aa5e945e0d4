import { isDeepStrictEqual } from 'node:util';
import type {
  DisputeInstruction,
  PayoutInstruction,
  RefundInstruction,
} from '../../contract/activities';
import { PERSONAL } from '../documents';
import type { Fault } from '../faults';
import type { ActivityName, Answer } from '../instructor';
import { assertSeen, Broken, NotApplicable, need } from '../verdict';
import { assertEffects, assertMoney, type ContractPromise, needBank, type World } from '../world';

/** Kind of instruction, which the bank may get once. */
export interface Outgoing {
  /** Begins the names of its promises. */
  name: string;
  resource: 'refund' | 'payout' | 'dispute';
  /** Names what a connector lacks without it. */
  noun: string;
  send: ActivityName;
  lookUp: ActivityName;
  taken: readonly string[];
  /** Values that its document does not have. */
  others: Record<string, unknown>;
  /** Status after which nothing is sent. */
  ended: string;
  make: (world: World, amount?: number) => Promise<Sending>;
}

interface Sending {
  /** ID of the document. */
  id: string;
  instruction_id: string;
  /** Names in calls of the bank. */
  ids: string[];
  input: RefundInstruction | PayoutInstruction | DisputeInstruction;
  /** Input of its look-up. */
  question: object;
}

const MONEY = { amount: 1_001, currency: 'CHF', method: 'another', livemode: true };

export const REFUND: Outgoing = {
  ...{ name: 'refund', resource: 'refund', noun: 'refunds', taken: ['accepted'], others: MONEY },
  ...{ send: 'sendRefund', lookUp: 'lookUpRefund', ended: 'failed' },
  make: async ({ documents }, amount) => {
    const input = await documents.makeRefund(amount);
    const { refund_id: id } = input;
    return { id, instruction_id: id, ids: [id], input, question: { refund_id: id } };
  },
};

export const PAYOUT: Outgoing = {
  ...{ name: 'payout', resource: 'payout', noun: 'payouts', taken: ['submitted', 'sent'] },
  ...{ send: 'sendPayout', lookUp: 'lookUpPayout', others: MONEY, ended: 'failed' },
  make: async ({ documents }, amount) => {
    const input = await documents.makePayout(amount);
    const { payout_id: id } = input;
    return { id, instruction_id: id, ids: [id], input, question: { payout_id: id } };
  },
};

/** @throws NotApplicable if the connector sends no such money; Broken if it is refused */
export function assertTaken({ noun, taken }: Outgoing, answer: Answer): void {
  if (answer['code'] === 'not_supported') {
    throw new NotApplicable(`The connector has no ${noun}.`);
  }
  assertSeen(taken.includes(answer.outcome), `answered ${answer.outcome}`);
}

/** Accepts `sent` after `submitted`. */
export function assertSame(first: Answer, later: Answer, what: string): void {
  const isLater = first.outcome === 'submitted' && later.outcome === 'sent';
  const expected = isLater ? { ...first, outcome: 'sent' } : first;
  assertSeen(
    isDeepStrictEqual(expected, later),
    `${what} answered ${describe(later)}, the first one ${describe(first)}`,
  );
}

function describe({ outcome, bank_reference, code }: Answer): string {
  return [outcome, bank_reference ?? code].filter((part) => part !== undefined).join(' ');
}

export async function makeTaken(outgoing: Outgoing, world: World, amount?: number) {
  const sending = await outgoing.make(world, amount);
  const answer = await world.instructor.read(outgoing.send, sending.input);
  assertTaken(outgoing, answer);
  return { ...sending, answer };
}

/** @throws NotApplicable if the connector does not have the resource */
export async function assertHas(outgoing: Outgoing, world: World): Promise<void> {
  const { question } = await outgoing.make(world);
  const outcome = await world.instructor.ask(outgoing.lookUp, question);
  if ('answer' in outcome && outcome.answer['code'] === 'not_supported') {
    throw new NotApplicable(`The connector has no ${outgoing.noun}.`);
  }
}

/** @returns function that builds a promise whose name begins so */
export const nameRows =
  (prefix: string) =>
  (what: string, promise: string, check: ContractPromise['check']): ContractPromise => ({
    ...{ id: `${prefix}.${what}`, promise, check },
  });

/** Lists the promises of every instruction. */
export function listOutgoing(outgoing: Outgoing): ContractPromise[] {
  const { name, resource, send, lookUp } = outgoing;
  const repeat = async (world: World) => {
    const { instruction_id, input, question, answer } = await makeTaken(outgoing, world);
    for (const what of ['the second', 'the third']) {
      assertSame(answer, await world.instructor.read(send, input), what);
    }
    assertSame(answer, await world.instructor.read(lookUp, question), 'the look-up');
    return `three times ${answer.outcome}, ${await assertEffects(world, instruction_id, 'once')}`;
  };
  const race = async (world: World) => {
    const { instruction_id, input } = await outgoing.make(world);
    const outcomes = await Promise.all(
      [1, 2, 3, 4, 5].map(() => world.instructor.ask(send, input)),
    );
    const answers = outcomes.flatMap((each) => ('answer' in each ? [each.answer] : []));
    const [first = await world.instructor.readAtLast(send, input), ...rest] = answers;
    assertTaken(outgoing, first);
    for (const each of rest) assertSame(first, each, 'another one');
    assertSame(first, await world.instructor.readAtLast(send, input), 'a repeat');
    const effects = await assertEffects(world, instruction_id, 'once');
    return `${answers.length} of 5 answered, ${effects}`;
  };
  const early = async (world: World) => {
    await assertHas(outgoing, world);
    const { input, question } = await outgoing.make(world);
    const found = await world.instructor.read(lookUp, question);
    assertSeen(found.outcome === 'not_found', `a look-up before it answered ${found.outcome}`);
    const answer = await world.instructor.read(send, input);
    assertTaken(outgoing, answer);
    return `not_found, then ${answer.outcome}`;
  };
  const duringAttempt = async (world: World) => {
    const bank = needBank(world);
    await assertHas(outgoing, world);
    const { instruction_id, ids, input, question } = await outgoing.make(world);
    const held = bank.hold(ids);
    const sending = world.instructor.ask(send, input);
    await Promise.race([held.reached, sending]);
    const outcome = await world.instructor.ask(lookUp, question).finally(held.release);
    const sent = await sending;
    const isLost = 'answer' in outcome && outcome.answer.outcome === 'not_found';
    assertSeen(!isLost, 'not_found while the attempt ran');
    const answer = 'answer' in sent ? sent.answer : await world.instructor.readAtLast(send, input);
    assertTaken(outgoing, answer);
    return `no not_found while it ran, ${await assertEffects(world, instruction_id, 'once')}`;
  };
  const differs = async (world: World) => {
    await assertHas(outgoing, world);
    for (const [field, value] of Object.entries(outgoing.others)) {
      const { instruction_id, input } = await outgoing.make(world);
      const outcome = await world.instructor.ask(send, { ...input, [field]: value });
      const isTaken = 'answer' in outcome && outgoing.taken.includes(outcome.answer.outcome);
      assertSeen(!isTaken, `sent with another ${field} than its document`);
      await assertEffects(world, instruction_id, 'none');
    }
    const { id, input } = await outgoing.make(world);
    const unknown = { ...input, [`${resource}_id`]: `${id.slice(0, -12)}000000000000` };
    const outcome = await world.instructor.ask(send, unknown);
    assertSeen(!('answer' in outcome), 'one without a document was answered');
    return `${Object.keys(outgoing.others).join(', ')} and a missing document: not sent`;
  };
  const outdated = async (world: World) => {
    await assertHas(outgoing, world);
    for (const change of [{ transition: 2 }, { status: outgoing.ended }]) {
      const { id, instruction_id, input } = await outgoing.make(world);
      await world.documents.change(resource, id, change);
      const answer = await world.instructor.read(send, input);
      assertSeen(answer.outcome === 'outdated', `answered ${answer.outcome}`);
      await assertEffects(world, instruction_id, 'none');
    }
    return 'outdated, nothing at the bank';
  };
  const money = async (world: World) => {
    need(world.desk, 'It needs the bank’s desk.');
    const { instruction_id, input } = await makeTaken(outgoing, world, 1_237);
    if (!('amount' in input)) throw new NotApplicable('It moves no money.');
    return `${await assertMoney(world, instruction_id, input)} at the bank`;
  };
  const firstAnswer = async (world: World) => {
    const desk = need(world.desk, 'It needs the bank’s desk.');
    if (resource === 'dispute') throw new NotApplicable('The bank has no such event.');
    const amount = world.quietAmounts?.[resource];
    const { id, question, answer } = await makeTaken(outgoing, world, amount);
    const event = { resource, resource_id: id, name: 'failed' };
    if (!(await desk.report(event))) throw new NotApplicable('The bank has no such event.');
    assertSame(answer, await world.instructor.readAtLast(lookUp, question), 'the look-up');
    return `still ${answer.outcome} after it failed`;
  };
  const row = nameRows(name);
  const isMoney = resource !== 'dispute';
  const ofMoney = `${send} instructs the bank with the amount and currency that it says.`;
  const ofFirst = 'The look-up answers what the bank answered first.';
  return [
    row('repeat', `A repeated ${send} answers the same and has one effect.`, repeat),
    ...(isMoney ? [row('money', ofMoney, money)] : []),
    row('race', `Concurrent attempts of one ${send} have one effect.`, race),
    row('look_up_first', `A look-up before the instruction answers not_found.`, early),
    row('look_up_early', `not_found is never answered while an attempt may arrive.`, duringAttempt),
    ...(isMoney ? [row('first_answer', ofFirst, firstAnswer)] : []),
    row('differs', `What its document does not say is not sent.`, differs),
    row('outdated', `What is final or newer is answered outdated, and not sent.`, outdated),
  ];
}

/** Recovers as the service does: looks up, and sends again if never arrived. */
async function recover(
  outgoing: Outgoing,
  world: World,
  { input, question }: Sending,
): Promise<Answer> {
  const found = await world.instructor.readAtLast(outgoing.lookUp, question);
  if (found.outcome !== 'not_found') return found;
  const answer = await world.instructor.readAtLast(outgoing.send, input);
  if (!outgoing.taken.includes(answer.outcome)) throw new Broken(`answered ${answer.outcome}`);
  return answer;
}

const OUTAGES: readonly Fault[] = ['unavailable', 'limited', 'garbage', 'cut_before'];
const LATER: readonly Fault[] = ['cut_after', 'fails_after'];
/** A connector that passes on what the bank answers, or throws, quotes the request. */
const QUOTING: readonly Fault[] = [
  ...(['quotes', 'quotes_code', 'garbage', 'unavailable'] as const),
  ...(['fails_after', 'cut_before'] as const),
];

interface Instruction {
  activity: ActivityName;
  input: object;
  ids: string[];
  of: 'all' | 'writes';
}

/** @throws Broken if it is answered as if the bank had decided */
async function askDuring(
  world: World,
  fault: Fault,
  { activity, input, ...calls }: Instruction,
): Promise<string> {
  const armed = needBank(world).arm(fault, calls);
  const outcome = await world.instructor.ask(activity, input).finally(armed.clear);
  if (armed.hits() === 0) throw new NotApplicable(`${activity} does not call the bank.`);
  const answered = 'answer' in outcome ? outcome.answer.outcome : undefined;
  assertSeen(
    answered === undefined,
    `${activity} answered ${answered} while the bank was away (${fault})`,
  );
  return fault;
}

export function listOutages(outgoing: Outgoing): ContractPromise[] {
  const { name, send, lookUp } = outgoing;
  const outage = async (world: World) => {
    needBank(world);
    await assertHas(outgoing, world);
    const faults = await Promise.all(
      OUTAGES.map(async (fault) => {
        const { ids, input } = await outgoing.make(world);
        return await askDuring(world, fault, { activity: send, input, ids, of: 'writes' });
      }),
    );
    const { ids, question: input, answer } = await makeTaken(outgoing, world);
    const all = answer.bank_reference === undefined ? ids : [...ids, String(answer.bank_reference)];
    for (const fault of OUTAGES) {
      await askDuring(world, fault, { activity: lookUp, input, ids: all, of: 'all' });
    }
    return `${send} and ${lookUp} failed at ${faults.join(', ')}`;
  };
  const before = async (world: World) => {
    needBank(world);
    await assertHas(outgoing, world);
    const sending = await outgoing.make(world);
    const { instruction_id, ids, input } = sending;
    await askDuring(world, 'cut_before', { activity: send, input, ids, of: 'writes' });
    await assertEffects(world, instruction_id, 'none');
    const { outcome } = await recover(outgoing, world, sending);
    const effects = await assertEffects(world, instruction_id, 'once');
    return `looked up, sent again: ${outcome}, ${effects}`;
  };
  const after = async (world: World) => {
    const bank = needBank(world);
    await assertHas(outgoing, world);
    const loseAnswer = async (fault: Fault): Promise<void> => {
      const sending = await outgoing.make(world);
      const { instruction_id, ids, input } = sending;
      const armed = bank.arm(fault, { ids, of: 'writes' });
      const outcome = await world.instructor.ask(send, input).finally(armed.clear);
      // A connector may look it up by itself.
      if ('answer' in outcome) assertTaken(outgoing, outcome.answer);
      const answer = await recover(outgoing, world, sending);
      assertTaken(outgoing, answer);
      assertSame(answer, await world.instructor.readAtLast(send, input), 'a repeat');
      await assertEffects(world, instruction_id, 'once');
    };
    // Each may wait for the end of its attempt.
    await Promise.all(LATER.map(loseAnswer));
    return `looked up after ${LATER.join(', ')}: once at the bank`;
  };
  const row = nameRows(name);
  return [
    row('outage', 'An outage of the bank is an exception, never an answer.', outage),
    row('cut_before', 'An instruction that never arrived is sent again, once.', before),
    row('cut_after', 'An answer that got lost is looked up, and nothing sent again.', after),
  ];
}

/** @param what whose data the instruction brings to the bank */
export function keepPrivate(outgoing: Outgoing, what: string): ContractPromise {
  const check = async (world: World) => {
    const bank = needBank(world);
    await assertHas(outgoing, world);
    for (const fault of QUOTING) {
      const { ids, input } = await outgoing.make(world);
      const armed = bank.arm(fault, { ids, of: 'writes' });
      const outcome = await world.instructor.ask(outgoing.send, input).finally(armed.clear);
      const text = JSON.stringify(outcome);
      const isQuoted = PERSONAL.some((word) => text.includes(word));
      assertSeen(!isQuoted, `the answer quotes ${what} where the bank’s has the fault ${fault}`);
    }
    return `nothing in what Temporal stores, at ${QUOTING.join(', ')}`;
  };
  return nameRows(outgoing.name)(
    'private',
    `Nothing of ${what} is in an answer or an error.`,
    check,
  );
}

export const SESSION_OUTAGE: ContractPromise = {
  id: 'session.outage',
  promise: 'An outage while a session is opened or closed is an exception.',
  check: async (world) => {
    needBank(world);
    const opened = await world.documents.makePayment();
    const answer = await world.instructor.read('openSession', opened);
    const ids = [opened.payment_id, String(answer.bank_reference)];
    for (const fault of OUTAGES) {
      const input = await world.documents.makePayment();
      await askDuring(world, fault, {
        activity: 'openSession',
        input,
        ids: [input.payment_id],
        of: 'all',
      });
      const { payment_id } = opened;
      await askDuring(world, fault, {
        activity: 'closeSession',
        input: { payment_id },
        ids,
        of: 'all',
      });
    }
    const closed = await world.instructor.read('closeSession', { payment_id: opened.payment_id });
    assertSeen(closed.outcome === 'closed', `closed after the outage: ${closed.outcome}`);
    return `openSession and closeSession failed at ${OUTAGES.join(', ')}`;
  },
};
