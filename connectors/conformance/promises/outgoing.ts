import { isDeepStrictEqual } from 'node:util';
import type {
  DisputeInstruction,
  PayoutInstruction,
  RefundInstruction,
} from '../../contract/activities';
import type { ActivityName, Answer } from '../instructor';
import type { ContractPromise } from '../promise';
import { assertSeen, Broken, NotApplicable, need } from '../verdict';
import { assertEffects, assertMoney, needBank, type World } from '../world';

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

export interface Sending {
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
  const row = (what: string, promise: string, check: ContractPromise['check']) => ({
    ...{ id: `${name}.${what}`, promise, check },
  });
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
export async function recover(
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
