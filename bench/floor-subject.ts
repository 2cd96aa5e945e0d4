import { randomUUID } from 'node:crypto';
import type { Client } from '@temporalio/client';
import { Pool } from 'undici';
import { z } from 'zod';
import {
  FLOOR_POST_QUEUE,
  FLOOR_POST_WORKFLOW,
  FLOOR_QUEUE,
  type FloorPost,
  floorPostWorkflowId,
  floorWorkflowId,
} from './floor/contract';
import { type Subject, TOLD_ALONE } from './subject';

const Answer = z.object({ id: z.uuid() });

/** The floor as the load generator sees it. */
export function createFloor(deps: { url: string; temporal: Client; concurrency: number }): Subject {
  const pool = new Pool(deps.url, { connections: deps.concurrency });
  return {
    name: 'floor',
    async create() {
      const { statusCode, body } = await pool.request({ method: 'POST', path: '/', body: '{}' });
      const text = await body.text();
      if (statusCode !== 201) throw new Error(`the floor answered ${statusCode}: ${text}`);
      return Answer.parse(JSON.parse(text)).id;
    },
    deliveries: async (count) =>
      Array.from({ length: count }, () => {
        const input: FloorPost = { payment_id: randomUUID(), move: TOLD_ALONE };
        const workflowId = floorPostWorkflowId(input.payment_id, input.move);
        const start = async () => {
          const options = { workflowId, taskQueue: FLOOR_POST_QUEUE, args: [input] };
          await deps.temporal.workflow.start(FLOOR_POST_WORKFLOW, options);
        };
        return { paymentId: input.payment_id, workflowId, start };
      }),
    // The floor's front waits as long as it takes.
    slowCreates: () => ({ asked_again: 0, answered_created: 0 }),
    async callback(paymentId, move) {
      await deps.temporal.workflow.getHandle(floorWorkflowId(paymentId)).signal(move);
    },
    // The floor's event ids are its posts' workflow ids.
    workflowIds: (paymentId, eventIds) => [floorWorkflowId(paymentId), ...eventIds],
    taskQueues: [FLOOR_QUEUE, FLOOR_POST_QUEUE],
    close: () => pool.close(),
  };
}
