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
  FLOOR_BANK_QUEUE,
  FLOOR_OPEN,
  type FloorBank,
  type FloorPost,
  type Reported,
} from './contract';

const openUpdate = defineUpdate<void>(FLOOR_OPEN);
const authorizedSignal = defineSignal('authorized');
const settledSignal = defineSignal('settled');

const { writeTransition, post } = proxyLocalActivities<FloorActivities>({
  startToCloseTimeout: '3s',
});

// The bank is another process, with its own queue.
const { openSession } = proxyActivities<FloorBank>({
  taskQueue: FLOOR_BANK_QUEUE,
  startToCloseTimeout: '30s',
});

/**
 * Does the least durable work that a payment needs: a session of the bank, and one write and one post
 * for each transition, in order. @see docs/benchmark.md#what-the-floor-leaves-out
 */
export async function floorPayment(payment_id: string): Promise<void> {
  const inbox: Reported[] = [];
  let stored = false;
  // As in the product, the main function creates the payment and the update waits for it.
  setHandler(openUpdate, () => condition(() => stored));
  setHandler(authorizedSignal, () => void inbox.push('authorized'));
  setHandler(settledSignal, () => void inbox.push('settled'));
  const { session_url } = await openSession({ payment_id });
  await writeTransition({ payment_id, transition: 'awaiting_customer', session_url });
  stored = true;
  for (let reports = 0; reports < 2; reports += 1) {
    await condition(() => inbox.length > 0);
    const transition = inbox.shift();
    if (transition !== undefined) await writeTransition({ payment_id, transition });
  }
}

/** Posts once; a local activity is enough where nothing is retried for a day. */
export async function floorPost(input: FloorPost): Promise<void> {
  await post(input);
}
