import {
  type Client,
  isGrpcServiceError,
  WithStartWorkflowOperation,
  WorkflowExecutionAlreadyStartedError,
  WorkflowFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from '@temporalio/client';
import type { Workflow } from '@temporalio/common';
import type { CallbackResource } from '../domain/callback';
import type {
  CryptoPaymentInput,
  CryptoPaymentResult,
  CryptoSettlementInput,
  CryptoSettlementResult,
} from '../domain/crypto-workflow';
import { isErrorCode, Refusal, unavailable } from '../domain/errors';
import type { PaymentInput, PaymentState } from '../domain/payment-workflow';
import { ACCEPT_WITHIN_MS, type PayoutInput, type PayoutResult } from '../domain/payout-workflow';
import type { RefundInput, RefundResult } from '../domain/refund-workflow';
import type { ClaimMark } from '../keys/claim-mark';
import { LIFECYCLES, type ResourceStores } from '../lifecycles';
import type { Stores } from '../store';
import { firstRun } from './start';

export interface OpeningDeps {
  client: Client;
  lifecycleQueue: string;
  stores: ResourceStores & Pick<Stores, 'idempotency'>;
}

/** Input that a resource's workflow begins with. */
type OpeningInput =
  | PaymentInput
  | RefundInput
  | PayoutInput
  | CryptoPaymentInput
  | CryptoSettlementInput;

/** Result of a resource's workflow. */
type Ended =
  | PaymentState
  | RefundResult
  | PayoutResult
  | CryptoPaymentResult
  | CryptoSettlementResult;

/** gRPC's code. */
const DEADLINE_EXCEEDED = 4;

/** Waits for the bank, and then as much longer for an acceptance or a refusal to become known. */
const PAYOUT_WAITS_MS = [ACCEPT_WITHIN_MS, 1_000];

/** Opens a payout; where the bank is slow, it is left as it stands in the record. */
export async function openPayout(
  deps: OpeningDeps,
  input: PayoutInput,
  mark: ClaimMark | undefined,
): Promise<void> {
  const { client, stores } = deps;
  const { payout_id } = input;
  for (const wait of PAYOUT_WAITS_MS) {
    const waiting = () => openOrRefuse(deps, 'payout', payout_id, input, mark);
    try {
      await client.withDeadline(Date.now() + wait, waiting);
      return;
    } catch (error) {
      if (!isTimeout(error)) throw error;
      if ((await stores.payouts.get(payout_id)) !== null) return;
    }
  }
  const late = new Error(`The payout ${payout_id} is neither accepted nor refused.`);
  throw unavailable('It is not known yet whether the payout was accepted.', late);
}

/** Opens a resource; one whose workflow has ended without storing it is refused. */
export async function openOrRefuse<Opened>(
  deps: OpeningDeps,
  kind: CallbackResource,
  id: string,
  input: OpeningInput,
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
  { client, stores }: OpeningDeps,
  kind: CallbackResource,
  id: string,
): Promise<Refusal> {
  const ended: Promise<Ended> = client.workflow.getHandle(LIFECYCLES[kind].workflowId(id)).result();
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
  { client, lifecycleQueue }: OpeningDeps,
  kind: CallbackResource,
  id: string,
  input: OpeningInput,
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

/** Whether the time for a call was over before its answer came. */
function isTimeout(error: unknown): boolean {
  if (error instanceof WorkflowUpdateRPCTimeoutOrCancelledError) return true;
  if (isGrpcServiceError(error)) return error.code === DEADLINE_EXCEEDED;
  return error instanceof Error && error.cause !== undefined && isTimeout(error.cause);
}
