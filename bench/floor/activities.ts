import { Agent, request } from 'node:http';
import type { Client } from '@temporalio/client';
import type { Db } from 'mongodb';
import {
  FLOOR_POST_QUEUE,
  FLOOR_POST_WORKFLOW,
  type FloorPost,
  type FloorWrite,
  floorPostWorkflowId,
  type Transition,
} from './contract';

export interface FloorActivityDeps {
  db: Db;
  temporal: Client;
  receiverUrl: string;
}

interface FloorPayment {
  _id: string;
  status: Transition;
  session_url?: string | undefined;
}

export type FloorActivities = ReturnType<typeof createFloorActivities>;

export function createFloorActivities({ db, temporal, receiverUrl }: FloorActivityDeps) {
  const payments = db.collection<FloorPayment>('payments');
  const agent = new Agent({ keepAlive: true });
  return {
    /** Makes one plain write, without transaction or condition, then starts its post. */
    writeTransition: async ({ payment_id: _id, transition: status, session_url }: FloorWrite) => {
      if (status === 'awaiting_customer') await payments.insertOne({ _id, status, session_url });
      else await payments.updateOne({ _id }, { $set: { status } });
      const input: FloorPost = { payment_id: _id, transition: status };
      await temporal.workflow.start(FLOOR_POST_WORKFLOW, {
        workflowId: floorPostWorkflowId(_id, status),
        taskQueue: FLOOR_POST_QUEUE,
        args: [input],
        // As for the product's deliveries: the first task comes with the response to the start.
        requestEagerStart: true,
      });
    },
    /** Posts unsigned, over an open connection, without a record of the attempt. */
    post: ({ payment_id, transition }: FloorPost): Promise<void> => {
      const id = floorPostWorkflowId(payment_id, transition);
      return postOnce(
        agent,
        receiverUrl,
        JSON.stringify({ id, type: `payment.${transition}`, data: { payment_id } }),
      );
    },
  };
}

function postOnce(agent: Agent, url: string, body: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const headers = { 'Content-Type': 'application/json', 'Content-Length': String(body.length) };
    const post = request(url, { method: 'POST', agent, headers }, (response) => {
      response.resume();
      response.on('end', () => {
        if (response.statusCode === 200) resolve();
        else reject(new Error(`the receiver answered ${response.statusCode}`));
      });
    });
    post.on('error', reject);
    post.end(body);
  });
}
