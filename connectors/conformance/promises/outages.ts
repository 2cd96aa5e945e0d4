import type { Fault } from '../faults';
import type { ActivityName } from '../instructor';
import type { ContractPromise } from '../promise';
import { assertSeen, NotApplicable } from '../verdict';
import { assertEffects, needBank, type World } from '../world';
import {
  assertHas,
  assertSame,
  assertTaken,
  buildId,
  makeTaken,
  type Outgoing,
  recover,
} from './outgoing';

const OUTAGES: readonly Fault[] = ['unavailable', 'limited', 'garbage', 'cut_before'];
const LATER: readonly Fault[] = ['cut_after', 'fails_after'];

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
  const { resource, send, lookUp } = outgoing;
  const outage = async (world: World) => {
    needBank(world);
    await assertHas(outgoing, world);
    const faults = await Promise.all(
      OUTAGES.map(async (fault) => {
        const { id, input } = await outgoing.make(world);
        return await askDuring(world, fault, { activity: send, input, ids: [id], of: 'writes' });
      }),
    );
    const { id, answer } = await makeTaken(outgoing, world);
    const ids = [id, String(answer.bank_reference)];
    for (const fault of OUTAGES) {
      await askDuring(world, fault, {
        activity: lookUp,
        input: buildId(outgoing, id),
        ids,
        of: 'all',
      });
    }
    return `${send} and ${lookUp} failed at ${faults.join(', ')}`;
  };
  const before = async (world: World) => {
    needBank(world);
    await assertHas(outgoing, world);
    const sending = await outgoing.make(world);
    const { id, input } = sending;
    await askDuring(world, 'cut_before', { activity: send, input, ids: [id], of: 'writes' });
    await assertEffects(world, id, 'none');
    const answer = await recover(outgoing, world, sending);
    return `looked up, sent again: ${answer.outcome}, ${await assertEffects(world, id, 'once')}`;
  };
  const after = async (world: World) => {
    const bank = needBank(world);
    await assertHas(outgoing, world);
    const loseAnswer = async (fault: Fault): Promise<void> => {
      const sending = await outgoing.make(world);
      const { id, input } = sending;
      const armed = bank.arm(fault, { ids: [id], of: 'writes' });
      const outcome = await world.instructor.ask(send, input).finally(armed.clear);
      // A connector may look it up by itself.
      if ('answer' in outcome) assertTaken(outgoing, outcome.answer);
      const answer = await recover(outgoing, world, sending);
      assertTaken(outgoing, answer);
      assertSame(answer, await world.instructor.readAtLast(send, input), 'a repeat');
      await assertEffects(world, id, 'once');
    };
    // Each may wait for the end of its attempt.
    await Promise.all(LATER.map(loseAnswer));
    return `looked up after ${LATER.join(', ')}: once at the bank`;
  };
  const row = (name: string, promise: string, check: ContractPromise['check']) => ({
    ...{ id: `${resource}.${name}`, promise, check },
  });
  return [
    row('outage', 'An outage of the bank is an exception, never an answer.', outage),
    row('cut_before', 'An instruction that never arrived is sent again, once.', before),
    row('cut_after', 'An answer that got lost is looked up, and nothing sent again.', after),
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
