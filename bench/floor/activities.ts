import { Agent, request } from 'node:http';
import type { Client } from '@temporalio/client';
import type { Db } from 'mongodb';
import {
  FLOOR_POST_QUEUE,
  FLOOR_POST_WORKFLOW,
  type FloorMove,
  type FloorPost,
  floorPostWorkflowId,
  type Move,
} from './contract';

export interface FloorActivityDeps {
  db: Db;
  temporal: Client;
  receiverUrl: string;
}

interface FloorPayment {
  _id: string;
  status: Move;
  session_url?: string | undefined;
}

export type FloorActivities = ReturnType<typeof createFloorActivities>;

export function createFloorActivities({ db, temporal, receiverUrl }: FloorActivityDeps) {
  const payments = db.collection<FloorPayment>('payments');
  const agent = new Agent({ keepAlive: true });
  return {
    /** Makes one plain write, without transaction or condition, then starts the move's post. */
    recordMove: async ({ payment_id: _id, move: status, session_url }: FloorMove) => {
      if (status === 'awaiting_customer') await payments.insertOne({ _id, status, session_url });
      else await payments.updateOne({ _id }, { $set: { status } });
      const input: FloorPost = { payment_id: _id, move: status };
      await temporal.workflow.start(FLOOR_POST_WORKFLOW, {
        workflowId: floorPostWorkflowId(_id, status),
        taskQueue: FLOOR_POST_QUEUE,
        args: [input],
        // The first task comes with the answer and nothing polls for it, as for the product's
        // deliveries.
        requestEagerStart: true,
      });
    },
    /** Posts unsigned, over a kept connection, without a record of the attempt. */
    post: ({ payment_id, move }: FloorPost): Promise<void> => {
      const id = floorPostWorkflowId(payment_id, move);
      return postOnce(
        agent,
        receiverUrl,
        JSON.stringify({ id, type: `payment.${move}`, data: { payment_id } }),
      );
    },
  };
}

function postOnce(agent: Agent, url: string, body: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const headers = { 'Content-Type': 'application/json', 'Content-Length': String(body.length) };
    const posting = request(url, { method: 'POST', agent, headers }, (response) => {
      response.resume();
      response.on('end', () => {
        if (response.statusCode === 200) resolve();
        else reject(new Error(`the receiver answered ${response.statusCode}`));
      });
    });
    posting.on('error', reject);
    posting.end(body);
  });
}
