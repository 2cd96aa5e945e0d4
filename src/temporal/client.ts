import {
  WithStartWorkflowOperation,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
} from '@temporalio/client';
import type { Workflow } from '@temporalio/common';
import type { ClockStart, ClockTarget } from '../domain/account/clock';
import type { CryptoPaymentInput, CryptoSettlementInput } from '../domain/crypto/workflow';
import { ServiceError, unavailable } from '../domain/errors';
import { type CancelledBy, isCancellable, paymentWorkflowId } from '../domain/payment/payment';
import type {
  CancelInput,
  PaymentInput,
  PaymentOpened,
  PaymentState,
} from '../domain/payment/workflow';
import type { PayoutInput } from '../domain/payout/workflow';
import type { RefundInput } from '../domain/refund/workflow';
import type { RequestHashes } from '../encryption/request-fingerprint';
import { LIFECYCLES } from '../lifecycles';
import type { PaymentDocument } from '../store/payments';
import { startAdvance } from './clock';
import { getFailureCode, withinLimit } from './deadline';
import { type OpeningDeps, openOrRefuse, openPayout } from './open';
import { assertNotBehind } from './reopening';
import { nextRun } from './start';

export type TemporalClient = ReturnType<typeof createTemporalClient>;

export interface TemporalClientDeps extends OpeningDeps {
  now: () => Date;
}

const HEALTH_TIMEOUT_MS = 1_500;

/** Each call throws Refusal `temporarily_unavailable` while its outcome is unknown. */
export function createTemporalClient(deps: TemporalClientDeps) {
  const { client } = deps;
  return {
    /** @returns undefined if its workflow has ended */
    openPayment: (input: PaymentInput, memo?: RequestHashes) =>
      withinLimit(client, () =>
        openOrRefuse<PaymentOpened>(deps, 'payment', input.payment_id, input, memo),
      ),
    /** @throws Refusal 422 or 404: nothing is stored */
    openRefund: (input: RefundInput, memo?: RequestHashes) =>
      withinLimit(client, () => openOrRefuse(deps, 'refund', input.refund_id, input, memo)),
    /**
     * Waits up to 5 seconds until the bank has sent the payout.
     * @throws Refusal 422 if it is refused, 503 if it was not accepted in time: nothing is stored
     * and no money moves
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
    /** Returns no state: read it from MongoDB. */
    cancelPayment: (payment: Cancellable, by: CancelledBy) =>
      withinLimit(client, () => cancelPayment(deps, payment, by)),
    startAdvance: (clock: ClockStart, target: ClockTarget) => startAdvance(deps, clock, target),
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

type Cancellable = Pick<PaymentDocument, '_id' | 'version'>;

async function cancelPayment(
  deps: OpeningDeps,
  { _id: paymentId, version }: Cancellable,
  by: CancelledBy,
): Promise<void> {
  // Temporal answers an id once: what was refused in one state may be possible in the next.
  const updateId = `cancel:${version}`;
  const options = { updateId, args: [{ by }] as [CancelInput] };
  const handle = deps.client.workflow.getHandle(paymentWorkflowId(paymentId));
  try {
    await handle.executeUpdate<PaymentState, [CancelInput]>('cancel', options);
  } catch (error) {
    if (wasNotCancelled(error)) return;
    if (!(error instanceof WorkflowNotFoundError)) throw error;
    await cancelInNewRun(deps, paymentId, options);
  }
}

/** The workflow was ended from outside. */
async function cancelInNewRun(
  { client, stores, lifecycleQueue }: OpeningDeps,
  paymentId: string,
  options: { updateId: string; args: [CancelInput] },
): Promise<void> {
  const payment = await stores.payments.get(paymentId);
  if (payment === null || !isCancellable(payment.status)) return;
  try {
    await assertNotBehind({ temporal: client, stores }, 'payment', payment);
  } catch (error) {
    if (error instanceof ServiceError) throw unavailable('Its state is being restored.', error);
    throw error;
  }
  const startWorkflowOperation = new WithStartWorkflowOperation(LIFECYCLES.payment.workflowType, {
    ...nextRun('payment', payment, lifecycleQueue, `cancel-${paymentId}`),
    workflowIdConflictPolicy: 'USE_EXISTING',
  });
  try {
    await client.workflow.executeUpdateWithStart<Workflow, PaymentState, [CancelInput]>('cancel', {
      ...options,
      startWorkflowOperation,
    });
  } catch (error) {
    if (!wasNotCancelled(error)) throw error;
  }
}

function wasNotCancelled(error: unknown): boolean {
  return error instanceof WorkflowUpdateFailedError && getFailureCode(error) === 'cannot_cancel';
}
