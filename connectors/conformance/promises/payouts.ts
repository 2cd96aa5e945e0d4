import { setTimeout as sleep } from 'node:timers/promises';
import { assertSeen, Broken, NotApplicable } from '../verdict';
import { assertEffects, type ContractPromise, type World } from '../world';
import { assertHas, assertTaken, keepPrivate, makeTaken, PAYOUT } from './outgoing';

export const PAYOUT_PROMISES: readonly ContractPromise[] = [
  {
    id: 'payout.cancel_first',
    promise: 'A payout that was cancelled before it arrived is refused, and not sent.',
    check: async (world) => {
      const { id, input } = await PAYOUT.make(world);
      const { outcome } = await world.instructor.read('cancelPayout', { payout_id: id });
      if (outcome === 'unknown') throw new NotApplicable('The connector cannot cancel a payout.');
      assertSeen(outcome === 'cancelled', `cancelPayout answered ${outcome} before the payout`);
      const sent = await world.instructor.read('sendPayout', input);
      assertSeen(sent.outcome === 'refused', `sendPayout answered ${sent.outcome} after cancelled`);
      return `cancelled, then refused; ${await assertEffects(world, id, 'none')}`;
    },
  },
  {
    id: 'payout.cancel_late',
    promise: '`cancelled` promises that nothing is sent; what the bank holds is `too_late`.',
    check: async (world) => {
      const { id } = await makeTaken(PAYOUT, world);
      const { outcome } = await world.instructor.read('cancelPayout', { payout_id: id });
      const effects = await assertEffects(world, id, outcome === 'cancelled' ? 'none' : 'once');
      return `${outcome}, ${effects}`;
    },
  },
  {
    id: 'payout.frozen',
    promise: 'Nothing is sent for an account that is frozen.',
    check: async (world) => {
      await assertHas(PAYOUT, world);
      const input = await world.documents.makePayout(undefined, { isFrozen: true });
      const outcome = await world.instructor.ask('sendPayout', input);
      assertSeen(!('answer' in outcome), 'it was answered');
      return `an exception; ${await assertEffects(world, input.payout_id, 'none')}`;
    },
  },
  {
    id: 'payout.deleted',
    promise: 'A payout to a deleted recipient is refused.',
    check: async (world) => {
      await assertHas(PAYOUT, world);
      const input = await world.documents.makePayout(undefined, { isDeleted: true });
      const { outcome } = await world.instructor.read('sendPayout', input);
      assertSeen(outcome === 'refused', `answered ${outcome}`);
      return `refused; ${await assertEffects(world, input.payout_id, 'none')}`;
    },
  },
  keepPrivate(PAYOUT, 'a recipient'),
];

const HOUR_MS = 3_600_000;
const POLL_MS = 200;

/** @see docs/connectors.md#after-a-restore */
export const RESTORE_PROMISES: readonly ContractPromise[] = [
  {
    id: 'payout.restored',
    promise: 'After a restore of MongoDB nothing is sent until an operator releases the connector.',
    // It stops the connector.
    alone: true,
    check: async (world) => {
      await assertHas(PAYOUT, world);
      const epoch = new Date();
      await world.documents.setEpoch(epoch);
      await makeTaken(PAYOUT, world);
      const { id, input, question } = await PAYOUT.make(world);
      await world.documents.setEpoch(new Date(epoch.getTime() - HOUR_MS));
      try {
        await assertThrows(world, 'sendPayout', input);
        await assertThrows(world, 'lookUpPayout', question);
        // A stopped connector writes no file in which the check could look.
        if (world.files === undefined) await assertEffects(world, id, 'none');
        await release(world);
      } finally {
        await world.documents.setEpoch(epoch);
      }
      const answer = await world.instructor.readAtLast('sendPayout', input);
      assertTaken(PAYOUT, answer);
      return `an exception, and after the release ${await assertEffects(world, id, 'once')}`;
    },
  },
];

async function assertThrows(
  { instructor }: World,
  activity: 'sendPayout' | 'lookUpPayout',
  input: object,
): Promise<void> {
  const outcome = await instructor.ask(activity, input);
  const answer = 'answer' in outcome ? outcome.answer.outcome : undefined;
  assertSeen(answer === undefined, `${activity} answered ${answer} after a restore`);
}

/** @throws Broken if the connector does not report that it is stopped */
async function release(world: World): Promise<void> {
  const end = Date.now() + world.waitMs;
  for (;;) {
    const report = await world.stores.capabilities.get(world.connector);
    if (report?.stopped) return await world.documents.release(report.stopped.id);
    if (Date.now() > end) throw new Broken('it does not report that it is stopped');
    await sleep(POLL_MS);
  }
}
