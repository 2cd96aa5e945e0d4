import {
  type Client,
  WithStartWorkflowOperation,
  WorkflowExecutionAlreadyStartedError,
  WorkflowFailedError,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
} from '@temporalio/client';
import type { Workflow } from '@temporalio/common';
import type { CallbackResource } from '../domain/banks/callback';
import type { CryptoPaymentInput, CryptoSettlementInput } from '../domain/crypto/workflow';
import type { DisputeAnswer } from '../domain/dispute/dispute';
import type { DisputeResponse, RespondInput } from '../domain/dispute/workflow';
import { isErrorCode, Refusal, ServiceError, unavailable } from '../domain/errors';
import type { Refused } from '../domain/lifecycle';
import { type ClockStart, type ClockTarget, readAccountTime } from '../domain/merchants/clock';
import {
  type CancelInput,
  type CancelledBy,
  isCancellable,
  type PaymentInput,
  type PaymentOpened,
  type PaymentState,
  paymentWorkflowId,
} from '../domain/payment/payment';
import { ACCEPT_WITHIN_MS, type PayoutInput } from '../domain/payout/payout';
import type { RefundInput } from '../domain/refund/refund';
import type { RequestHashes } from '../encryption/request-fingerprint';
import { LIFECYCLES, type ResourceStores } from '../lifecycles';
import type { Stores } from '../store';
import type { DisputeDocument } from '../store/disputes';
import type { PaymentDocument } from '../store/payments';
import { startAdvance, stopAdvance } from './clock';
import { getFailureCode, isTimeout, withinLimit } from './deadline';
import { assertNotBehind, firstRun, type LabeledFacts, nextRun } from './start';

export type TemporalClient = ReturnType<typeof createTemporalClient>;

interface TemporalClientDeps extends OpeningDeps {
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
    /** Waits up to 5 seconds until the bank has it. @throws Refusal 422 `dispute_closed` */
    respond: (dispute: DisputeDocument, answer: DisputeAnswer) =>
      withinLimit(client, () => respond(deps, dispute, answer)),
    startAdvance: (clock: ClockStart, target: ClockTarget) => startAdvance(deps, clock, target),
    stopAdvance: (clock: ClockStart) => stopAdvance(deps, clock),
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

const RESPOND_WAIT_MS = 5_000;

async function respond(
  { client, stores, lifecycleQueue }: OpeningDeps,
  dispute: DisputeDocument,
  answer: DisputeAnswer,
): Promise<void> {
  const startWorkflowOperation = new WithStartWorkflowOperation(LIFECYCLES.dispute.workflowType, {
    ...nextRun('dispute', dispute, lifecycleQueue, `respond-${dispute._id}`),
    workflowIdConflictPolicy: 'USE_EXISTING',
  });
  try {
    await assertNotBehind({ temporal: client, stores }, 'dispute', dispute);
    await client.withDeadline(Date.now() + RESPOND_WAIT_MS, () =>
      client.workflow.executeUpdateWithStart<Workflow, DisputeResponse, [RespondInput]>('respond', {
        args: [{ with: answer }],
        startWorkflowOperation,
      }),
    );
  } catch (error) {
    if (error instanceof ServiceError) throw unavailable('Its state is being restored.', error);
    // The caller reads what has been begun.
    if (isTimeout(error)) return;
    throw error;
  }
}

interface OpeningDeps {
  client: Client;
  lifecycleQueue: string;
  stores: ResourceStores & Pick<Stores, 'accounts' | 'idempotency'>;
}

type WorkflowResult = { status: string } | Refused<string>;

/** Waits for the bank, then for an acceptance or a refusal. */
const PAYOUT_WAITS_MS = [ACCEPT_WITHIN_MS, 1_000];

/** Returns once the payout is stored if the bank is slow. */
async function openPayout(
  deps: OpeningDeps,
  input: PayoutInput,
  idempotencyMemo: RequestHashes | undefined,
): Promise<void> {
  const { client, stores } = deps;
  const { payout_id } = input;
  for (const wait of PAYOUT_WAITS_MS) {
    const openAttempt = () => openOrRefuse(deps, 'payout', payout_id, input, idempotencyMemo);
    try {
      await client.withDeadline(Date.now() + wait, openAttempt);
      return;
    } catch (error) {
      if (!isTimeout(error)) throw error;
      if ((await stores.payouts.get(payout_id)) !== null) return;
    }
  }
  const cause = new Error(`The payout ${payout_id} is neither accepted nor refused.`);
  throw unavailable('It is not known yet whether the payout was accepted.', cause);
}

/** @throws Refusal if the workflow has ended without storing the resource */
async function openOrRefuse<Result>(
  deps: OpeningDeps,
  kind: CallbackResource,
  id: string,
  input: LabeledFacts,
  idempotencyMemo: RequestHashes | undefined,
): Promise<Result | undefined> {
  const result = await open<Result>(deps, kind, id, input, idempotencyMemo);
  if (result !== 'ended') return result;
  if ((await LIFECYCLES[kind].get(deps.stores, id)) !== null) return undefined;
  throw await buildRefusal(deps, kind, id);
}

/**
 * Releases the idempotency key only if the workflow accepted nothing, or was ended from outside. A
 * successful result without a document means that the database lost it: with a released key, the
 * money would move twice.
 */
async function buildRefusal(
  { client, stores }: OpeningDeps,
  kind: CallbackResource,
  id: string,
): Promise<Refusal> {
  const pendingResult: Promise<WorkflowResult> = client.workflow
    .getHandle(LIFECYCLES[kind].workflowId(id))
    .result();
  try {
    const result = await pendingResult;
    if (!('code' in result)) {
      const cause = new Error(`${kind} ${id} is ${result.status}, but it is not in the database.`);
      return unavailable('The outcome is unknown.', cause);
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
 * Starts or joins the workflow. Update-with-start is not atomic, so the workflow's main function
 * creates the resource, and `open` waits for it.
 * @returns `ended` if the workflow with this id has ended
 */
async function open<Result>(
  { client, lifecycleQueue, stores }: OpeningDeps,
  kind: CallbackResource,
  id: string,
  input: LabeledFacts,
  idempotencyMemo: RequestHashes | undefined,
): Promise<Result | 'ended'> {
  const account = input.livemode ? null : await stores.accounts.getCached(input.account_id);
  const clock = readAccountTime(input.livemode, account?.clock);
  // The account's time, where its sandbox clock was moved.
  const facts = clock.offset_ms === 0 ? input : { ...input, clock };
  const startWorkflowOperation = new WithStartWorkflowOperation(LIFECYCLES[kind].workflowType, {
    ...firstRun(kind, id, facts, lifecycleQueue, idempotencyMemo),
    workflowIdConflictPolicy: 'USE_EXISTING',
    workflowIdReusePolicy: 'REJECT_DUPLICATE',
  });
  try {
    const updateOptions = { updateId: 'open', startWorkflowOperation };
    return await client.workflow.executeUpdateWithStart<Workflow, Result, []>(
      'open',
      updateOptions,
    );
  } catch (error) {
    if (error instanceof WorkflowExecutionAlreadyStartedError) return 'ended';
    throw error;
  }
}
