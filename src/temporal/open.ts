import {
  type Client,
  WithStartWorkflowOperation,
  WorkflowExecutionAlreadyStartedError,
  WorkflowFailedError,
} from '@temporalio/client';
import type { Workflow } from '@temporalio/common';
import { type AccountTime, readAccountTime } from '../domain/account/clock';
import type { CallbackResource } from '../domain/callback/callback';
import { isErrorCode, Refusal, unavailable } from '../domain/errors';
import type { Refused } from '../domain/lifecycle';
import { ACCEPT_WITHIN_MS } from '../domain/payout/accept-within';
import type { PayoutInput } from '../domain/payout/workflow';
import type { RequestHashes } from '../encryption/request-fingerprint';
import { LIFECYCLES, type ResourceStores } from '../lifecycles';
import type { Stores } from '../store';
import { isTimeout } from './deadline';
import type { LabeledFacts } from './labels';
import { firstRun } from './start';

export interface OpeningDeps {
  client: Client;
  lifecycleQueue: string;
  stores: ResourceStores & Pick<Stores, 'accounts' | 'idempotency'>;
}

type WorkflowResult = { status: string } | Refused<string>;

/** Waits for the bank, then for an acceptance or a refusal. */
const PAYOUT_WAITS_MS = [ACCEPT_WITHIN_MS, 1_000];

/** Returns once the payout is stored if the bank is slow. */
export async function openPayout(
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
export async function openOrRefuse<Result>(
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

/** Adds the account's time, where its sandbox clock was moved. */
async function addClock<F extends LabeledFacts>(
  { accounts }: Pick<Stores, 'accounts'>,
  facts: F,
): Promise<F & { clock?: AccountTime }> {
  if (facts.livemode) return facts;
  const account = await accounts.getCached(facts.account_id);
  const clock = readAccountTime(facts.livemode, account?.clock);
  return clock.offset_ms === 0 ? facts : { ...facts, clock };
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
  const startWorkflowOperation = new WithStartWorkflowOperation(LIFECYCLES[kind].workflowType, {
    ...firstRun(kind, id, await addClock(stores, input), lifecycleQueue, idempotencyMemo),
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
