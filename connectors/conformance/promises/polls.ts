import { setTimeout as sleep } from 'node:timers/promises';
import type { ContractPromise } from '../promise';
import { NotApplicable } from '../verdict';
import { needBank, type World, waitForSignals } from '../world';
import { assertOnce, bringAny, reportOne, waitForMarkers } from './callbacks';

const NO_LIST = 'No list of the bank was read: none of its answers to a GET had the fact.';
const POLL_MS = 100;

/** @throws NotApplicable unless the bank's list is read again in time */
async function waitForRead(isRepeated: () => boolean, { waitMs }: World): Promise<void> {
  const end = Date.now() + waitMs;
  while (!isRepeated()) {
    if (Date.now() > end) throw new NotApplicable('The list of the bank was read only once.');
    await sleep(POLL_MS);
  }
}

export const POLL_PROMISES: readonly ContractPromise[] = [
  {
    id: 'poll.repeated',
    promise: 'A page of the bank’s list that is read twice reports its facts once.',
    // Later pages are read twice, too.
    alone: true,
    check: async (world) => {
      const bank = needBank(world);
      const subject = await bringAny(world);
      const { resource, id } = subject;
      // Without its webhook, the fact comes from the list.
      world.webhooks?.lose(id);
      const page = bank.repeatPage(id);
      try {
        const name = await reportOne(world, subject);
        await waitForSignals(world, resource, id, [name]).catch(() => {
          throw new NotApplicable(NO_LIST);
        });
        if (!page.isRead()) throw new NotApplicable(NO_LIST);
        await waitForRead(page.isRepeated, world);
        await waitForMarkers(world);
        await assertOnce(world, subject, [name]);
        return `${name} once, of a page that was read twice`;
      } finally {
        page.clear();
      }
    },
  },
];
