import {
  type Client,
  isGrpcServiceError,
  WithStartWorkflowOperation,
  type WorkflowClient,
  WorkflowExecutionAlreadyStartedError,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from '@temporalio/client';
import {
  ApplicationFailure,
  defineSearchAttributeKey,
  TypedSearchAttributes,
} from '@temporalio/common';
import { deliverCallback, type PaymentCallback } from '../connectors/contract/callbacks';
import { isErrorCode, Refusal, unavailable } from './domain/errors';
import { formatMoney } from './domain/money';
import { type CancelledBy, paymentWorkflowId } from './domain/payment';
import type { CancelInput, PaymentInput, PaymentState } from './domain/payment-workflow';
import type { Stores } from './store';

/** The API's only door to Temporal. */
export type TemporalDoor = ReturnType<typeof createTemporalDoor>;

export interface TemporalDoorDeps {
  client: Client;
  lifecycleQueue: string;
  stores: Pick<Stores, 'callbacks' | 'payments'>;
  now: () => Date;
}

/** The request limit: past it the caller is told to come back with the same key. */
const CALL_TIMEOUT_MS = 8_000;
const HEALTH_TIMEOUT_MS = 1_500;

export function createTemporalDoor({ client, lifecycleQueue, stores, now }: TemporalDoorDeps) {
  const inbox = { ...stores, temporal: client, lifecycleQueue, now };
  return {
    /**
     * Starts the payment's workflow, or joins the one that this id has, and waits until it is
     * stored: an answer means *stored*.
     * @throws Refusal `temporarily_unavailable`: outcome unknown
     */
    openPayment: (input: PaymentInput) =>
      withinLimit(client, () => openPayment(client.workflow, lifecycleQueue, input)),
    /**
     * Undefined when the payment's life has ended: what it came to stands in MongoDB.
     * @throws Refusal `cannot_cancel`, `temporarily_unavailable`
     */
    cancelPayment: (paymentId: string, by: CancelledBy) =>
      withinLimit(client, () => cancelPayment(client.workflow, paymentId, by)),
    /**
     * Takes in what a bank said. Safe to repeat with the same `callback_id`.
     * @throws Refusal `temporarily_unavailable`: outcome unknown
     */
    deliverCallback: (callback: PaymentCallback) =>
      withinLimit(client, () => deliverCallback(inbox, callback)),
    /** Whether the server answers. */
    answers: async (): Promise<boolean> => {
      try {
        const { namespace } = client.options;
        await client.withDeadline(Date.now() + HEALTH_TIMEOUT_MS, () =>
          client.workflowService.describeNamespace({ namespace }),
        );
        return true;
      } catch {
        return false;
      }
    },
  };
}

const attribute = {
  resource: defineSearchAttributeKey('ServiceResource', 'KEYWORD'),
  status: defineSearchAttributeKey('ServiceStatus', 'KEYWORD'),
  method: defineSearchAttributeKey('ServiceMethod', 'KEYWORD'),
  account: defineSearchAttributeKey('ServiceAccount', 'KEYWORD'),
  connector: defineSearchAttributeKey('ServiceConnector', 'KEYWORD'),
  currency: defineSearchAttributeKey('ServiceCurrency', 'KEYWORD'),
  livemode: defineSearchAttributeKey('ServiceLivemode', 'BOOL'),
  amount: defineSearchAttributeKey('ServiceAmount', 'INT'),
};

function paymentAttributes(input: PaymentInput): TypedSearchAttributes {
  return new TypedSearchAttributes([
    { key: attribute.resource, value: 'payment' },
    { key: attribute.status, value: 'created' },
    { key: attribute.method, value: input.method },
    { key: attribute.account, value: input.account_id },
    { key: attribute.connector, value: input.connector },
    { key: attribute.currency, value: input.currency },
    { key: attribute.livemode, value: input.livemode },
    { key: attribute.amount, value: input.amount },
  ]);
}

/** Update-with-start is not atomic, so the workflow's main function creates; `open` waits for it. */
async function openPayment(
  workflow: WorkflowClient,
  taskQueue: string,
  input: PaymentInput,
): Promise<void> {
  const { amount, currency, method, livemode } = input;
  const environment = livemode ? 'live' : 'sandbox';
  const startWorkflowOperation = new WithStartWorkflowOperation('payment', {
    workflowId: paymentWorkflowId(input.payment_id),
    taskQueue,
    args: [input],
    workflowIdConflictPolicy: 'USE_EXISTING',
    workflowIdReusePolicy: 'REJECT_DUPLICATE',
    typedSearchAttributes: paymentAttributes(input),
    staticSummary: `payment ${formatMoney(amount, currency)} ${method} (${environment})`,
  });
  try {
    await workflow.executeUpdateWithStart('open', {
      updateId: 'open',
      startWorkflowOperation,
    });
  } catch (error) {
    // Its life has ended already, so it was stored.
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
  }
}

async function cancelPayment(
  workflow: WorkflowClient,
  paymentId: string,
  by: CancelledBy,
): Promise<PaymentState | undefined> {
  try {
    return await workflow
      .getHandle(paymentWorkflowId(paymentId))
      .executeUpdate<PaymentState, [CancelInput]>('cancel', { updateId: 'cancel', args: [{ by }] });
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return undefined;
    throw error;
  }
}

/** Ends by the deadline, and speaks the API's errors. */
async function withinLimit<T>(client: Client, call: () => Promise<T>): Promise<T> {
  try {
    return await client.withDeadline(Date.now() + CALL_TIMEOUT_MS, call);
  } catch (error) {
    throw refusalOf(error) ?? error;
  }
}

/** `ApplicationFailure.type` is the code; an outage of Temporal is the caller's to wait out. */
function refusalOf(error: unknown): Refusal | undefined {
  if (error instanceof WorkflowUpdateFailedError) {
    const { cause } = error;
    if (cause instanceof ApplicationFailure && cause.type && isErrorCode(cause.type)) {
      return new Refusal(cause.type, cause.message);
    }
    return undefined;
  }
  if (error instanceof WorkflowUpdateRPCTimeoutOrCancelledError || isServiceError(error)) {
    return unavailable('The payment engine did not answer in time.', error);
  }
  return undefined;
}

function isServiceError(error: unknown): boolean {
  if (isGrpcServiceError(error)) return true;
  return error instanceof Error && error.cause !== undefined && isServiceError(error.cause);
}
