import { isDeepStrictEqual } from 'node:util';
import type { PayoutInstruction, RefundInstruction } from '../../contract/activities';
import type { Answer } from '../instructor';
import type { ContractPromise } from '../promise';
import { assertSeen, Broken, NotApplicable, need } from '../verdict';
import { assertEffects, assertMoney, needBank, type World } from '../world';

export interface Outgoing {
  resource: 'refund' | 'payout';
  send: 'sendRefund' | 'sendPayout';
  lookUp: 'lookUpRefund' | 'lookUpPayout';
  taken: readonly string[];
  make: (world: World, amount?: number) => Promise<Sending>;
}

export interface Sending {
  id: string;
  input: RefundInstruction | PayoutInstruction;
}

export const REFUND: Outgoing = {
  ...{ resource: 'refund', send: 'sendRefund', lookUp: 'lookUpRefund', taken: ['accepted'] },
  make: async ({ documents }, amount) => {
    const input = await documents.makeRefund(amount);
    return { id: input.refund_id, input };
  },
};

export const PAYOUT: Outgoing = {
  ...{ resource: 'payout', send: 'sendPayout', lookUp: 'lookUpPayout' },
  taken: ['submitted', 'sent'],
  make: async ({ documents }, amount) => {
    const input = await documents.makePayout(amount);
    return { id: input.payout_id, input };
  },
};

/** @throws NotApplicable if the connector sends no such money; Broken if it is refused */
export function assertTaken({ resource, taken }: Outgoing, answer: Answer): void {
  if (answer['code'] === 'not_supported') {
    throw new NotApplicable(`The connector has no ${resource}s.`);
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
  const { id } = await outgoing.make(world);
  const outcome = await world.instructor.ask(outgoing.lookUp, buildId(outgoing, id));
  if ('answer' in outcome && outcome.answer['code'] === 'not_supported') {
    throw new NotApplicable(`The connector has no ${outgoing.resource}s.`);
  }
}

export const buildId = ({ resource }: Outgoing, id: string) => ({ [`${resource}_id`]: id });

export function listOutgoing(outgoing: Outgoing): ContractPromise[] {
  const { resource, send, lookUp } = outgoing;
  const about = (id: string) => buildId(outgoing, id);
  const repeat = async (world: World) => {
    const { id, input, answer } = await makeTaken(outgoing, world);
    for (const what of ['the second', 'the third']) {
      assertSame(answer, await world.instructor.read(send, input), what);
    }
    assertSame(answer, await world.instructor.read(lookUp, about(id)), 'the look-up');
    return `three times ${answer.outcome}, ${await assertEffects(world, id, 'once')}`;
  };
  const money = async (world: World) => {
    need(world.desk, 'It needs the bank’s desk.');
    const { id, input } = await makeTaken(outgoing, world, 1_237);
    return `${await assertMoney(world, id, input)} at the bank`;
  };
  const race = async (world: World) => {
    const { id, input } = await outgoing.make(world);
    const outcomes = await Promise.all(
      [1, 2, 3, 4, 5].map(() => world.instructor.ask(send, input)),
    );
    const answers = outcomes.flatMap((each) => ('answer' in each ? [each.answer] : []));
    const [first = await world.instructor.readAtLast(send, input), ...rest] = answers;
    assertTaken(outgoing, first);
    for (const each of rest) assertSame(first, each, 'another one');
    assertSame(first, await world.instructor.readAtLast(send, input), 'a repeat');
    return `${answers.length} of 5 answered, ${await assertEffects(world, id, 'once')}`;
  };
  const early = async (world: World) => {
    await assertHas(outgoing, world);
    const { id, input } = await outgoing.make(world);
    const found = await world.instructor.read(lookUp, about(id));
    assertSeen(found.outcome === 'not_found', `a look-up before it answered ${found.outcome}`);
    const answer = await world.instructor.read(send, input);
    assertTaken(outgoing, answer);
    return `not_found, then ${answer.outcome}`;
  };
  const duringAttempt = async (world: World) => {
    const bank = needBank(world);
    await assertHas(outgoing, world);
    const { id, input } = await outgoing.make(world);
    const held = bank.hold(id);
    const sending = world.instructor.ask(send, input);
    await Promise.race([held.reached, sending]);
    const outcome = await world.instructor.ask(lookUp, about(id)).finally(held.release);
    const sent = await sending;
    const isLost = 'answer' in outcome && outcome.answer.outcome === 'not_found';
    assertSeen(!isLost, 'not_found while the attempt ran');
    const answer = 'answer' in sent ? sent.answer : await world.instructor.readAtLast(send, input);
    assertTaken(outgoing, answer);
    return `no not_found while it ran, ${await assertEffects(world, id, 'once')}`;
  };
  const differs = async (world: World) => {
    await assertHas(outgoing, world);
    const changes = { amount: 1_001, currency: 'CHF', method: 'another', livemode: true };
    for (const [name, value] of Object.entries(changes)) {
      const { id, input } = await outgoing.make(world);
      const outcome = await world.instructor.ask(send, { ...input, [name]: value });
      const isTaken = 'answer' in outcome && outgoing.taken.includes(outcome.answer.outcome);
      assertSeen(!isTaken, `sent with another ${name} than its document`);
      await assertEffects(world, id, 'none');
    }
    const { id, input } = await outgoing.make(world);
    const unknown = { ...input, ...about(`${id.slice(0, -12)}000000000000`) };
    const outcome = await world.instructor.ask(send, unknown);
    assertSeen(!('answer' in outcome), 'one without a document was answered');
    return `${Object.keys(changes).join(', ')} and a missing document: not sent`;
  };
  const outdated = async (world: World) => {
    await assertHas(outgoing, world);
    for (const change of [{ transition: 2 }, { status: 'failed' }]) {
      const { id, input } = await outgoing.make(world);
      await world.documents.change(resource, id, change);
      const answer = await world.instructor.read(send, input);
      assertSeen(answer.outcome === 'outdated', `answered ${answer.outcome}`);
      await assertEffects(world, id, 'none');
    }
    return 'outdated, nothing at the bank';
  };
  const firstAnswer = async (world: World) => {
    const desk = need(world.desk, 'It needs the bank’s desk.');
    const { id, answer } = await makeTaken(outgoing, world, world.quietAmounts?.[resource]);
    const event = { resource, resource_id: id, name: 'failed' };
    if (!(await desk.report(event))) throw new NotApplicable('The bank has no such event.');
    assertSame(answer, await world.instructor.readAtLast(lookUp, about(id)), 'the look-up');
    return `still ${answer.outcome} after it failed`;
  };
  const row = (name: string, promise: string, check: ContractPromise['check']) => ({
    ...{ id: `${resource}.${name}`, promise, check },
  });
  return [
    row('repeat', `A repeated ${send} answers the same and has one effect.`, repeat),
    row('money', `${send} instructs the bank with the amount and currency that it says.`, money),
    row('race', `Concurrent attempts of one ${send} have one effect.`, race),
    row('look_up_first', `A look-up before the instruction answers not_found.`, early),
    row('look_up_early', `not_found is never answered while an attempt may arrive.`, duringAttempt),
    row('first_answer', `The look-up answers what the bank answered first.`, firstAnswer),
    row('differs', `What its document does not say is not sent.`, differs),
    row('outdated', `What is final or newer is answered outdated, and not sent.`, outdated),
  ];
}

/** Recovers as the service does: looks up, and sends again if never arrived. */
export async function recover(
  outgoing: Outgoing,
  world: World,
  { id, input }: Sending,
): Promise<Answer> {
  const found = await world.instructor.readAtLast(outgoing.lookUp, buildId(outgoing, id));
  if (found.outcome !== 'not_found') return found;
  const answer = await world.instructor.readAtLast(outgoing.send, input);
  if (!outgoing.taken.includes(answer.outcome)) throw new Broken(`answered ${answer.outcome}`);
  return answer;
}
