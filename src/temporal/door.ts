import {
  type Client,
  isGrpcServiceError,
  type WorkflowClient,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import type { CallbackMac } from '../domain/callback-mac';
import type { CryptoPaymentInput, CryptoSettlementInput } from '../domain/crypto-workflow';
import { isErrorCode, Refusal, unavailable } from '../domain/errors';
import { type CancelledBy, paymentWorkflowId } from '../domain/payment';
import type {
  CancelInput,
  PaymentInput,
  PaymentOpened,
  PaymentState,
} from '../domain/payment-workflow';
import type { PayoutInput } from '../domain/payout-workflow';
import type { RefundInput } from '../domain/refund-workflow';
import type { ClaimMark } from '../keys/claim-mark';
import type { Stores } from '../store';
import {
  CallbackConflict,
  type CallbackDeps,
  deliverCallback,
  type InboxStores,
  type ResourceCallback,
} from './bank-callbacks';
import { configFaultOf } from './fault';
import { type OpeningDeps, openOrRefuse, openPayout } from './open';

/** The API's only door to Temporal. */
export type TemporalDoor = ReturnType<typeof createTemporalDoor>;

export interface TemporalDoorDeps extends OpeningDeps {
  stores: InboxStores & Pick<Stores, 'idempotency'>;
  now: () => Date;
  log?: CallbackDeps['log'];
  meter?: CallbackDeps['meter'];
}

/** Request limit, after which the caller is told to come back with the same key. */
const CALL_TIMEOUT_MS = 8_000;
const HEALTH_TIMEOUT_MS = 1_500;

export function createTemporalDoor(deps: TemporalDoorDeps) {
  const { client, lifecycleQueue, stores, now, log, meter } = deps;
  const inbox = { stores, temporal: client, lifecycleQueue, now, log, meter };
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
      withinLimit(client, () => openPayout(deps, { ...input, caller_waits: true }, mark)),
    /**
     * Starts the crypto payment's workflow, or joins the one that this id has, and waits until rate
     * and address are given and stored.
     * @throws Refusal 422 when no connector gives them; `temporarily_unavailable`: outcome unknown
     */
    openCryptoPayment: (input: CryptoPaymentInput, mark?: ClaimMark) =>
      withinLimit(client, () =>
        openOrRefuse(deps, 'crypto_payment', input.crypto_payment_id, input, mark),
      ),
    /**
     * Starts the settlement's workflow, or joins the one that this id has, and waits until it is
     * reserved and stored.
     * @throws Refusal 422 when it is refused, and nothing moved; `temporarily_unavailable`: outcome
     *   unknown
     */
    openCryptoSettlement: (input: CryptoSettlementInput, mark?: ClaimMark) =>
      withinLimit(client, () =>
        openOrRefuse(deps, 'crypto_settlement', input.crypto_settlement_id, input, mark),
      ),
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
    /**
     * Receives a callback that came signed, from a caller who is told nothing else.
     * @param mac by the key that fitted
     * @throws Refusal `callback_conflict`; `temporarily_unavailable`: the same `callback_id` again
     */
    receiveCallback: (callback: ResourceCallback, mac: CallbackMac) =>
      withinLimit(client, () => deliverCallback({ ...inbox, everyFact: true }, callback, mac)),
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
    throw refusalOf(error) ?? configFaultOf(error) ?? error;
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
  // Fault that only an operator can mend: the caller is not told to try again.
  if (configFaultOf(error) !== undefined) return undefined;
  if (error instanceof CallbackConflict) return new Refusal('callback_conflict', error.message);
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
