import { ActivityCancellationType, proxyActivities } from '@temporalio/workflow';
import type {
  ConnectorActivities,
  RefundAnswer,
  RefundInstruction,
} from '../../connectors/contract/activities';
import { isFinalRefund } from '../../src/domain/refund';
import { connectorQueue } from '../../src/domain/task-queues';
import { instruct, stoppable } from '../shared/bank-instruction';
import { factsOf } from '../shared/life';
import type { RefundLife } from './life';
import { tell } from './view';

/**
 * Tells the bank to send the money; its answer goes into the inbox.
 * @param again an earlier run may have done so
 */
export async function instructRefund(life: RefundLife, again = false): Promise<void> {
  const { connector, refund_id } = factsOf(life);
  const taskQueue = connectorQueue(connector);
  // One attempt, since a second could pass the first; and no limit to how long it may wait for a
  // connector, since what waits there was not sent.
  const { sendRefund } = proxyActivities<ConnectorActivities>({
    taskQueue,
    startToCloseTimeout: '30s',
    retry: { maximumAttempts: 1 },
    // One that a connector has begun is waited for: only its end tells what became of it.
    cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    summary: 'Send the refund to the bank',
  });
  const { lookUpRefund } = proxyActivities<ConnectorActivities>({
    taskQueue,
    startToCloseTimeout: '30s',
    retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '2 minutes' },
    summary: 'Ask the bank what it knows of the refund',
  });
  life.instruction += 1;
  const { instruction } = life;
  let over = Promise.resolve();
  over = instruct<RefundAnswer>(
    {
      name: 'refund',
      send: () =>
        stoppable(
          life,
          () => over,
          () => sendRefund(instructionOf(life)),
        ),
      lookUp: () => lookUpRefund({ refund_id }),
      isOver: () => instruction !== life.instruction || isFinalRefund(life.status),
      tell: (line) => tell(life, line),
      answered: (answer) => life.inbox.push({ kind: 'answer', answer }),
    },
    again,
  );
  await over;
}

function instructionOf(life: RefundLife): RefundInstruction {
  const { refund_id, payment_id, payment_bank_reference, ...facts } = factsOf(life);
  const { amount, currency, method, livemode } = facts;
  return { refund_id, payment_id, payment_bank_reference, amount, currency, method, livemode };
}
