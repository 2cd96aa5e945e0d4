import { ActivityCancellationType, proxyActivities } from '@temporalio/workflow';
import type {
  ConnectorActivities,
  PayoutAnswer,
  PayoutInstruction,
  PayoutLookup,
} from '../../connectors/contract/activities';
import { connectorQueue } from '../../src/domain/task-queues';
import { instruct, stoppable } from '../shared/bank-instruction';
import { factsOf } from '../shared/life';
import { isUnsent, type PayoutLife } from './life';
import { tell } from './view';

/**
 * Tells the bank to pay out; its answer goes into the inbox. An instruction given earlier in this
 * run no longer counts, so that an operator need not wait for its next turn.
 * @param again an earlier instruction may have arrived
 */
export async function instructPayout(life: PayoutLife, again = false): Promise<void> {
  const { connector, payout_id } = factsOf(life);
  const { sendPayout, lookUpPayout } = bankOf(connector);
  life.instruction += 1;
  const { instruction } = life;
  let over = Promise.resolve();
  over = instruct<PayoutAnswer>(
    {
      name: 'payout',
      send: async () => {
        const send = () => sendPayout(instructionOf(life));
        return remember(life, await stoppable(life, () => over, send));
      },
      lookUp: async () => remember(life, await lookUpPayout({ payout_id })),
      isOver: () => instruction !== life.instruction || !isUnsent(life),
      tell: (line) => tell(life, line),
      answered: (answer) => life.inbox.push({ kind: 'answer', answer }),
    },
    again,
  );
  await over;
}

function bankOf(connector: string) {
  const taskQueue = connectorQueue(connector);
  // One attempt, since a second could pass the first; and no limit to how long it may wait for a
  // connector, since what waits there was not sent.
  const { sendPayout } = proxyActivities<ConnectorActivities>({
    taskQueue,
    startToCloseTimeout: '30s',
    retry: { maximumAttempts: 1 },
    // One that a connector has begun is waited for: only its end tells what became of it.
    cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    summary: 'Send the payout to the bank',
  });
  const { lookUpPayout } = proxyActivities<ConnectorActivities>({
    taskQueue,
    startToCloseTimeout: '30s',
    retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '2 minutes' },
    summary: 'Ask the bank what it knows of the payout',
  });
  return { sendPayout, lookUpPayout };
}

/** A callback may overtake the answer; the bank's own name for the payout is kept all the same. */
function remember<Answer extends PayoutLookup>(life: PayoutLife, answer: Answer): Answer {
  const heard: PayoutLookup = answer;
  if ('bank_reference' in heard) life.bankReference = heard.bank_reference;
  return answer;
}

function instructionOf(life: PayoutLife): PayoutInstruction {
  const { payout_id, recipient_id, amount, currency, method, livemode } = factsOf(life);
  return { payout_id, recipient_id, amount, currency, method, livemode };
}
