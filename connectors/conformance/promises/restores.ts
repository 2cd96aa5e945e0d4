import { setTimeout as sleep } from 'node:timers/promises';
import type { ContractPromise } from '../promise';
import { assertSeen, Broken } from '../verdict';
import { assertEffects, type World } from '../world';
import { assertHas, assertTaken, makeTaken, PAYOUT } from './outgoing';

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
