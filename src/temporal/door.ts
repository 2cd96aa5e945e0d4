import {
  type Client,
  isGrpcServiceError,
  WithStartWorkflowOperation,
  type WorkflowClient,
  WorkflowExecutionAlreadyStartedError,
  WorkflowFailedError,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from '@temporalio/client';
import { ApplicationFailure, type Workflow } from '@temporalio/common';
import type { CallbackResource } from '../domain/callback';
import { isErrorCode, Refusal, unavailable } from '../domain/errors';
import { type CancelledBy, paymentWorkflowId } from '../domain/payment';
import type {
  CancelInput,
  PaymentInput,
  PaymentOpened,
  PaymentState,
} from '../domain/payment-workflow';
import type { PayoutInput, PayoutResult } from '../domain/payout-workflow';
import type { RefundInput, RefundResult } from '../domain/refund-workflow';
import type { ClaimMark } from '../keys/claim-mark';
import { LIFECYCLES } from '../lifecycles';
import type { Stores } from '../store';
import {
  type CallbackDeps,
  deliverCallback,
  type InboxStores,
  type ResourceCallback,
} from './bank-callbacks';
import { firstRun } from './start';

/** The API's only door to Temporal. */
export type TemporalDoor = ReturnType<typeof createTemporalDoor>;

export interface TemporalDoorDeps {
  client: Client;
  lifecycleQueue: string;
  stores: InboxStores & Pick<Stores, 'idempotency'>;
  now: () => Date;
  log?: CallbackDeps['log'];
}

/** Request limit, after which the caller is told to come back with the same key. */
const CALL_TIMEOUT_MS = 8_000;
const HEALTH_TIMEOUT_MS = 1_500;

export function createTemporalDoor(deps: TemporalDoorDeps) {
  const { client, lifecycleQueue, stores, now, log } = deps;
  const inbox = { stores, temporal: client, lifecycleQueue, now, log };
  return {
    /**
     * Starts the payment's workflow, or joins the one that this id has, and waits until it is
     * stored: an answer means *stored*.
     * @returns undefined where its workflow has ended
     * @throws Refusal `temporarily_unavailable`: outcome unknown
     */
    openPayment: (input: PaymentInput, mark?: ClaimMark) =>
      withinLimit(client, () =>
        openOrRefuse<PaymentOpened>(deps, 'payment', input.payment_id, input, mark),
      ),
    /**
     * Starts the refund's workflow, or joins the one that this id has, and waits until it is
     * reserved and stored.
     * @throws Refusal 422 or 404 when it is refused, and nothing is stored; `temporarily_unavailable`:
     *   outcome unknown
     */
    openRefund: (input: RefundInput, mark?: ClaimMark) =>
      withinLimit(client, () => openOrRefuse(deps, 'refund', input.refund_id, input, mark)),
    /**
     * Starts the payout's workflow, or joins the one that this id has, and waits until the bank has
     * sent it, or 5 seconds.
     * @throws Refusal 422 when it is refused, 503 when it was not accepted in time: nothing is stored
     *   and no money moves; else `temporarily_unavailable`: outcome unknown
     */
    openPayout: (input: PayoutInput, mark?: ClaimMark) =>
      withinLimit(client, () => openOrRefuse(deps, 'payout', input.payout_id, input, mark)),
    /**
     * Asks the payment's workflow to cancel it; its new state stands in MongoDB.
     * @throws Refusal `temporarily_unavailable`: outcome unknown
     */
    cancelPayment: (paymentId: string, by: CancelledBy) =>
      withinLimit(client, () => cancelPayment(client.workflow, paymentId, by)),
    /**
     * Receives a bank's callback. Safe to repeat with the same `callback_id`.
     * @throws Refusal `temporarily_unavailable`: outcome unknown
     */
    deliverCallback: (callback: ResourceCallback) =>
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

/** Opens a resource; one whose workflow has ended without storing it is refused. */
async function openOrRefuse<Opened>(
  deps: TemporalDoorDeps,
  kind: CallbackResource,
  id: string,
  input: PaymentInput | RefundInput | PayoutInput,
  mark: ClaimMark | undefined,
): Promise<Opened | undefined> {
  const opened = await open<Opened>(deps, kind, id, input, mark);
  if (opened !== 'ended') return opened;
  if ((await LIFECYCLES[kind].get(deps.stores, id)) !== null) return undefined;
  throw await refusalOfEnded(deps, kind, id);
}

/**
 * Refusal of a resource that is not stored. Its key is released only when the workflow says that
 * nothing was accepted, or was ended from outside: a result without a document means that the
 * database lost one, and with its key free the money would move a second time.
 */
async function refusalOfEnded(
  { client, stores }: TemporalDoorDeps,
  kind: CallbackResource,
  id: string,
): Promise<Refusal> {
  const ended: Promise<PaymentState | RefundResult | PayoutResult> = client.workflow
    .getHandle(LIFECYCLES[kind].workflowId(id))
    .result();
  try {
    const result = await ended;
    if (!('code' in result)) {
      const lost = new Error(
        `${kind} ${id} is ${result.status}, and the database does not hold it.`,
      );
      return unavailable('It is not known what became of it.', lost);
    }
    await stores.idempotency.release(id);
    const { code, message } = result;
    if (isErrorCode(code)) return new Refusal(code, message);
    return unavailable('It was ended before it was accepted.', new Error(message));
  } catch (error) {
    if (!(error instanceof WorkflowFailedError)) throw error;
    await stores.idempotency.release(id);
    return unavailable('It was ended before it was accepted.', error);
  }
}

/**
 * Starts the workflow, or joins it, and waits until the resource is open. Update-with-start is not
 * atomic, so the workflow's main function creates; `open` waits for it.
 * @returns `ended`: the workflow of this id has ended before
 */
async function open<Opened>(
  { client, lifecycleQueue }: TemporalDoorDeps,
  kind: CallbackResource,
  id: string,
  input: PaymentInput | RefundInput | PayoutInput,
  mark: ClaimMark | undefined,
): Promise<Opened | 'ended'> {
  const startWorkflowOperation = new WithStartWorkflowOperation(LIFECYCLES[kind].workflowType, {
    ...firstRun(kind, id, input, lifecycleQueue, mark),
    workflowIdConflictPolicy: 'USE_EXISTING',
    workflowIdReusePolicy: 'REJECT_DUPLICATE',
  });
  try {
    const once = { updateId: 'open', startWorkflowOperation };
    return await client.workflow.executeUpdateWithStart<Workflow, Opened, []>('open', once);
  } catch (error) {
    if (error instanceof WorkflowExecutionAlreadyStartedError) return 'ended';
    throw error;
  }
}

async function cancelPayment(
  workflow: WorkflowClient,
  paymentId: string,
  by: CancelledBy,
): Promise<void> {
  try {
    await workflow
      .getHandle(paymentWorkflowId(paymentId))
      .executeUpdate<PaymentState, [CancelInput]>('cancel', { updateId: 'cancel', args: [{ by }] });
  } catch (error) {
    // The payment refused it, or its workflow has ended.
    if (error instanceof WorkflowUpdateFailedError) {
      if (codeOf(error) === 'cannot_cancel') return;
    } else if (error instanceof WorkflowNotFoundError) return;
    throw error;
  }
}

/** `ApplicationFailure.type` of a refused update. */
function codeOf({ cause }: WorkflowUpdateFailedError): string | undefined {
  return cause instanceof ApplicationFailure ? (cause.type ?? undefined) : undefined;
}

/** Calls within the request limit, and turns Temporal's errors into the API's. */
async function withinLimit<T>(client: Client, call: () => Promise<T>): Promise<T> {
  try {
    return await client.withDeadline(Date.now() + CALL_TIMEOUT_MS, call);
  } catch (error) {
    throw refusalOf(error) ?? error;
  }
}

/** Refusal that an error of Temporal stands for: a refused update by its code, or an outage. */
function refusalOf(error: unknown): Refusal | undefined {
  if (error instanceof WorkflowUpdateFailedError) {
    const code = codeOf(error);
    return code !== undefined && isErrorCode(code)
      ? new Refusal(code, causeText(error))
      : undefined;
  }
  if (error instanceof WorkflowUpdateRPCTimeoutOrCancelledError || isServiceError(error)) {
    return unavailable('The payment engine did not answer in time.', error);
  }
  return undefined;
}

function causeText({ cause, message }: WorkflowUpdateFailedError): string {
  return cause instanceof Error ? cause.message : message;
}

function isServiceError(error: unknown): boolean {
  if (isGrpcServiceError(error)) return true;
  return error instanceof Error && error.cause !== undefined && isServiceError(error.cause);
}
