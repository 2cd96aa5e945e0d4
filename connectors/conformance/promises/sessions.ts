import type { SessionInstruction } from '../../contract/activities';
import { assertSeen, NotApplicable } from '../verdict';
import {
  assertEffects,
  type ContractPromise,
  openSession,
  type World,
  waitForSignals,
} from '../world';
import { reportEach } from './callbacks';
import { assertSame } from './outgoing';

async function open(world: World, amount?: number) {
  const { input, answer } = await openSession(world, amount);
  assertSeen(answer.outcome === 'opened', `openSession answered ${answer.outcome}`);
  return { input, answer, payment_id: input.payment_id };
}

/** @throws Broken unless the session is closed each time, and is not opened again */
async function close({ instructor }: World, input: SessionInstruction, times: readonly string[]) {
  const { payment_id } = input;
  for (const time of times) {
    const { outcome } = await instructor.read('closeSession', { payment_id });
    assertSeen(outcome === 'closed', `the ${time} closeSession answered ${outcome}`);
  }
  const { outcome } = await instructor.read('openSession', input);
  assertSeen(outcome === 'declined', `openSession answered ${outcome} after closed`);
}

async function makeLate(world: World) {
  const { input, answer } = await openSession(world);
  const { payment_id: resource_id } = input;
  // A bank that sends back only what has come has the money first.
  await world.desk?.report({ resource: 'payment', resource_id, name: 'settled' });
  return await world.documents.endLate(input.payment_id, String(answer.bank_reference));
}

async function voidAfter(world: World, names: readonly string[]): Promise<string> {
  const { input, payment_id } = await open(world, world.quietAmounts?.payment);
  const had = await reportEach(world, { resource: 'payment', id: payment_id }, names);
  if (had.length < names.length) {
    throw new NotApplicable(`The bank’s desk lacks an event of ${names.join(', ')}.`);
  }
  await waitForSignals(world, 'payment', payment_id, names);
  const instruction = { payment_id, instruction_id: `void:${payment_id}` };
  const first = await world.instructor.readAtLast('voidPayment', instruction);
  assertSame(first, await world.instructor.readAtLast('voidPayment', instruction), 'a repeat');
  const { outcome, amount = input.amount, currency = input.currency } = first;
  assertSeen(
    amount === input.amount && currency === input.currency,
    `voidPayment answered ${amount} ${currency}, not ${input.amount} ${input.currency}`,
  );
  return outcome;
}

export const SESSION_PROMISES: readonly ContractPromise[] = [
  {
    id: 'session.repeat',
    promise: 'A repeated or concurrent openSession answers the same session.',
    check: async (world) => {
      const { input, answer } = await open(world);
      const repeats = [1, 2, 3].map(() => world.instructor.read('openSession', input));
      for (const repeat of await Promise.all(repeats)) assertSame(answer, repeat, 'a repeat');
      return `four times ${String(answer.bank_reference)}`;
    },
  },
  {
    id: 'session.close_first',
    promise: 'A session that was closed before it was opened stays closed.',
    check: async (world) => {
      await close(world, await world.documents.makePayment(), ['first']);
      return 'closed, then declined';
    },
  },
  {
    id: 'session.close',
    promise: 'A session is closed as often as it is asked, and is not opened again.',
    check: async (world) => {
      await close(world, (await open(world)).input, ['first', 'second']);
      return 'closed twice, then declined';
    },
  },
  {
    id: 'session.void',
    promise: 'A repeated voidPayment answers the same, and money that has settled is never voided.',
    check: async (world) => {
      const released = await voidAfter(world, ['authorized']);
      const settled = await voidAfter(world, ['authorized', 'settled']);
      assertSeen(settled !== 'voided', 'money that had settled was answered voided');
      return `${released} after authorized, ${settled} after settled`;
    },
  },
  {
    id: 'reversal.repeat',
    promise: 'A repeated or concurrent reversePayment answers the same, and moves money once.',
    check: async (world) => {
      const input = await makeLate(world);
      const answer = await world.instructor.readAtLast('reversePayment', input);
      if (answer['code'] === 'not_supported')
        throw new NotApplicable('The bank sends nothing back.');
      assertSeen(answer.outcome === 'accepted', `answered ${answer.outcome}`);
      const repeats = [1, 2].map(() => world.instructor.readAtLast('reversePayment', input));
      for (const repeat of await Promise.all(repeats)) assertSame(answer, repeat, 'a repeat');
      return `accepted, ${await assertEffects(world, input.instruction_id, 'once')}`;
    },
  },
  {
    id: 'reversal.differs',
    promise: 'Late funds go back only in the amount that the document says.',
    check: async (world) => {
      const input = await makeLate(world);
      const wrong = { ...input, amount: input.amount + 1 };
      const outcome = await world.instructor.ask('reversePayment', wrong);
      const isSent = 'answer' in outcome && outcome.answer.outcome === 'accepted';
      assertSeen(!isSent, 'another amount was sent back');
      return `not sent; ${await assertEffects(world, input.instruction_id, 'none')}`;
    },
  },
];
