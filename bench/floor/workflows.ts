import {
  condition,
  defineSignal,
  defineUpdate,
  proxyLocalActivities,
  setHandler,
} from '@temporalio/workflow';
import type { FloorActivities } from './activities';
import { type CallbackMove, FLOOR_OPEN, type FloorPost } from './contract';

const openUpdate = defineUpdate<void>(FLOOR_OPEN);
const authorizedSignal = defineSignal('authorized');
const settledSignal = defineSignal('settled');

const { recordMove, post } = proxyLocalActivities<FloorActivities>({
  startToCloseTimeout: '3s',
});

/**
 * Does the least durable work that a payment's facts need: one write per move, in order, each told
 * by a post of its own. `docs/benchmark.md` lists all that it leaves out against the product.
 */
export async function floorPayment(payment_id: string): Promise<void> {
  const inbox: CallbackMove[] = [];
  let stored = false;
  // The main function creates and the update waits for it, as in the product.
  setHandler(openUpdate, () => condition(() => stored));
  setHandler(authorizedSignal, () => void inbox.push('authorized'));
  setHandler(settledSignal, () => void inbox.push('settled'));
  await recordMove({ payment_id, move: 'awaiting_customer' });
  stored = true;
  for (let moves = 0; moves < 2; moves += 1) {
    await condition(() => inbox.length > 0);
    const move = inbox.shift();
    if (move !== undefined) await recordMove({ payment_id, move });
  }
}

/** Posts once; a local activity is enough where nothing is retried for a day. */
export async function floorPost(input: FloorPost): Promise<void> {
  await post(input);
}
