import {
  type WorkflowClient,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
} from '@temporalio/client';
import type { CryptoPaymentInput, CryptoSettlementInput } from '../domain/crypto/workflow';
import { type CancelledBy, paymentWorkflowId } from '../domain/payment/payment';
import type {
  CancelInput,
  PaymentInput,
  PaymentOpened,
  PaymentState,
} from '../domain/payment/workflow';
import type { PayoutInput } from '../domain/payout/workflow';
import type { RefundInput } from '../domain/refund/workflow';
import type { RequestHashes } from '../encryption/request-fingerprint';
import { type OpeningDeps, openOrRefuse, openPayout } from './open';
import { getFailureCode, withinLimit } from './within-limit';

export type TemporalClient = ReturnType<typeof createTemporalClient>;

export interface TemporalClientDeps extends OpeningDeps {
  now: () => Date;
}

const HEALTH_TIMEOUT_MS = 1_500;

/** Each call throws Refusal `temporarily_unavailable` while its outcome is unknown. */
export function createTemporalClient(deps: TemporalClientDeps) {
  const { client } = deps;
  return {
    /** Opens a payment; undefined if its workflow has ended. */
    openPayment: (input: PaymentInput, memo?: RequestHashes) =>
      withinLimit(client, () =>
        openOrRefuse<PaymentOpened>(deps, 'payment', input.payment_id, input, memo),
      ),
    /** @throws Refusal 422 or 404: nothing is stored */
    openRefund: (input: RefundInput, memo?: RequestHashes) =>
      withinLimit(client, () => openOrRefuse(deps, 'refund', input.refund_id, input, memo)),
    /**
     * Opens a payout, and waits up to 5 seconds until the bank has sent it.
     * @throws Refusal 422 if it is refused, 503 if it was not accepted in time: nothing is stored
     *   and no money moves
     */
    openPayout: (input: PayoutInput, memo?: RequestHashes) =>
      withinLimit(client, () => openPayout(deps, { ...input, caller_waits: true }, memo)),
    /** @throws Refusal 422 if no connector returns a rate and an address */
    openCryptoPayment: (input: CryptoPaymentInput, memo?: RequestHashes) =>
      withinLimit(client, () =>
        openOrRefuse(deps, 'crypto_payment', input.crypto_payment_id, input, memo),
      ),
    /** @throws Refusal 422: no money moved */
    openCryptoSettlement: (input: CryptoSettlementInput, memo?: RequestHashes) =>
      withinLimit(client, () =>
        openOrRefuse(deps, 'crypto_settlement', input.crypto_settlement_id, input, memo),
      ),
    /** Cancels a payment; read the new state from MongoDB. */
    cancelPayment: (paymentId: string, by: CancelledBy) =>
      withinLimit(client, () => cancelPayment(client.workflow, paymentId, by)),
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
      if (getFailureCode(error) === 'cannot_cancel') return;
    } else if (error instanceof WorkflowNotFoundError) return;
    throw error;
  }
}
