import { randomUUID } from 'node:crypto';
import type { Client } from '@temporalio/client';
import { Pool } from 'undici';
import { z } from 'zod';
import { DELIVERED, type Subject } from '../subject';
import {
  FLOOR_POST_QUEUE,
  FLOOR_POST_WORKFLOW,
  FLOOR_QUEUE,
  type FloorPost,
  floorPostWorkflowId,
  floorWorkflowId,
} from './contract';

const Created = z.object({ id: z.uuid() });

export function createFloor(deps: { url: string; temporal: Client; concurrency: number }): Subject {
  const pool = new Pool(deps.url, { connections: deps.concurrency });
  const { workflow } = deps.temporal;
  return {
    name: 'floor',
    payments: {
      async create() {
        const { statusCode, body } = await pool.request({ method: 'POST', path: '/', body: '{}' });
        const text = await body.text();
        if (statusCode !== 201) throw new Error(`the floor responded ${statusCode}: ${text}`);
        return Created.parse(JSON.parse(text)).id;
      },
      webhooks: { before: [], after: ['awaiting_customer'] },
      reported: ['authorized', 'settled'],
      report: (id, transition) => workflow.getHandle(floorWorkflowId(id)).signal(transition),
      // The floor's event IDs are the workflow IDs of its posts.
      workflowIds: (id, eventIds) => [floorWorkflowId(id), ...eventIds],
    },
    prepareDeliveries: async (count) =>
      Array.from({ length: count }, () => {
        const input: FloorPost = { payment_id: randomUUID(), transition: DELIVERED };
        const workflowId = floorPostWorkflowId(input.payment_id, input.transition);
        const start = async () => {
          const options = { workflowId, taskQueue: FLOOR_POST_QUEUE, args: [input] };
          await workflow.start(FLOOR_POST_WORKFLOW, options);
        };
        return { id: input.payment_id, workflowId, start };
      }),
    taskQueues: [FLOOR_QUEUE, FLOOR_POST_QUEUE],
    close: () => pool.close(),
  };
}
