import {
  condition,
  defineSignal,
  defineUpdate,
  proxyActivities,
  proxyLocalActivities,
  setHandler,
} from '@temporalio/workflow';
import type { FloorActivities } from './activities';
import {
  type CallbackMove,
  FLOOR_BANK_QUEUE,
  FLOOR_OPEN,
  type FloorBank,
  type FloorPost,
} from './contract';

const openUpdate = defineUpdate<void>(FLOOR_OPEN);
const authorizedSignal = defineSignal('authorized');
const settledSignal = defineSignal('settled');

const { recordMove, post } = proxyLocalActivities<FloorActivities>({
  startToCloseTimeout: '3s',
});

/** The bank is another process, on a queue of its own. */
const { openSession } = proxyActivities<FloorBank>({
  taskQueue: FLOOR_BANK_QUEUE,
  startToCloseTimeout: '30s',
});

/**
 * Does the least durable work that a payment's facts need: a session of the bank, and one write per
 * move, in order, each told by a post of its own. `docs/benchmark.md` lists all that it leaves out against the product.
 */
export async function floorPayment(payment_id: string): Promise<void> {
  const inbox: CallbackMove[] = [];
  let stored = false;
  // The main function creates and the update waits for it, as in the product.
  setHandler(openUpdate, () => condition(() => stored));
  setHandler(authorizedSignal, () => void inbox.push('authorized'));
  setHandler(settledSignal, () => void inbox.push('settled'));
  const { session_url } = await openSession({ payment_id });
  await recordMove({ payment_id, move: 'awaiting_customer', session_url });
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
