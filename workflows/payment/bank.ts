import { ActivityFailure, proxyActivities } from '@temporalio/workflow';
import type {
  CloseAnswer,
  ConnectorActivities,
  SessionAnswer,
  SessionInstruction,
} from '../../connectors/contract/activities';
import type { PaymentInput } from '../../src/domain/payment-workflow';
import { connectorQueue } from '../../src/domain/task-queues';
import { factsOf, note } from '../shared/life';
import type { PaymentLife } from './life';

/** A bank that takes longer lets the API answer `created`. Decided: within 5 s. */
const SESSION_QUICK = '4s';

function sessionInstruction(input: PaymentInput, expires_at: string): SessionInstruction {
  const { payment_id, amount, currency, method, country, livemode, return_url } = input;
  return { payment_id, amount, currency, method, country, livemode, return_url, expires_at };
}

/** Undefined when the bank is slow or away. */
export async function quickSession(
  input: PaymentInput,
  expires_at: string,
): Promise<SessionAnswer | undefined> {
  const { openSession } = proxyActivities<ConnectorActivities>({
    taskQueue: connectorQueue(input.connector),
    scheduleToCloseTimeout: SESSION_QUICK,
    retry: { initialInterval: '200ms', maximumAttempts: 3 },
    summary: 'Open a session at the bank',
  });
  try {
    return await openSession(sessionInstruction(input, expires_at));
  } catch (error) {
    if (error instanceof ActivityFailure) return undefined;
    throw error;
  }
}

/** Goes on asking, under the same instruction id, until the bank answers. */
export function patientSession(input: PaymentInput, expires_at: string): Promise<SessionAnswer> {
  const { openSession } = proxyActivities<ConnectorActivities>({
    taskQueue: connectorQueue(input.connector),
    startToCloseTimeout: '60s',
    retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '30s' },
    summary: 'Open a session at the bank (it was slow)',
  });
  return openSession(sessionInstruction(input, expires_at));
}

/** A bank that can't be asked in time is asked again later; a late authorisation is voided. */
export async function closeAtBank(
  life: PaymentLife,
  within: '3s' | '5 minutes',
): Promise<CloseAnswer['outcome'] | 'unreachable'> {
  const { closeSession } = proxyActivities<ConnectorActivities>({
    taskQueue: connectorQueue(factsOf(life).connector),
    scheduleToCloseTimeout: within,
    retry: { initialInterval: '200ms', backoffCoefficient: 2, maximumInterval: '10s' },
    summary: 'Close the session at the bank',
  });
  try {
    return (await closeSession({ payment_id: life.paymentId })).outcome;
  } catch (error) {
    if (!(error instanceof ActivityFailure)) throw error;
    note(life, 'The bank could not be asked to close the session.');
    return 'unreachable';
  }
}

/** Instructions at the bank that must happen in the end, however long it is away. */
export function insist(life: PaymentLife, summary: string) {
  return proxyActivities<ConnectorActivities>({
    taskQueue: connectorQueue(factsOf(life).connector),
    startToCloseTimeout: '60s',
    retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '10 minutes' },
    summary,
  });
}
