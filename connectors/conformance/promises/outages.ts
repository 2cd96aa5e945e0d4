import { PERSONAL } from '../documents';
import type { Fault } from '../faults';
import type { ActivityName } from '../instructor';
import type { ContractPromise } from '../promise';
import { assertSeen, NotApplicable } from '../verdict';
import { assertEffects, needBank, type World } from '../world';
import { assertHas, assertSame, assertTaken, makeTaken, type Outgoing, recover } from './outgoing';

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
  const row = (what: string, promise: string, check: ContractPromise['check']) => ({
    ...{ id: `${name}.${what}`, promise, check },
  });
  return [
    row('outage', 'An outage of the bank is an exception, never an answer.', outage),
    row('cut_before', 'An instruction that never arrived is sent again, once.', before),
    row('cut_after', 'An answer that got lost is looked up, and nothing sent again.', after),
  ];
}

/** @param what whose data the instruction brings to the bank */
export function listPrivate(outgoing: Outgoing, what: string): ContractPromise[] {
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
  return [
    {
      id: `${outgoing.name}.private`,
      promise: `Nothing of ${what} is in an answer or an error.`,
      check,
    },
  ];
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
