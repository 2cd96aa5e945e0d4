import { isDeepStrictEqual } from 'node:util';
import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import type { AnyCallback, CallbackName, CallbackResource } from '../domain/callback';
import { defined } from '../domain/defined';
import { SEARCH_KEYS } from '../domain/search-attributes';
import { ResourceCallback } from '../domain/wire/callback';
import { LIFECYCLES, type Resource, type ResourceStores } from '../lifecycles';
import type { Stores } from '../store';
import type { CallbackDocument } from '../store/callbacks';
import type { CallbackMemory } from './callback-memory';
import { nextRun } from './start';

export type { ResourceCallback };

/** Stores of the product that the inbox of callbacks uses. */
export type InboxStores = ResourceStores & Pick<Stores, 'callbacks'>;

/** Counter of callbacks, such as that of a process's figures. */
export interface CallbackMeter {
  received(about: {
    connector: string;
    resource: CallbackResource;
    name: CallbackName;
    /** `failed`: it is repeated. */
    receipt: CallbackReceipt | 'failed';
  }): void;
}

export interface CallbackDeps {
  stores: InboxStores;
  temporal: Client;
  /** Task queue of the lifecycles; tests have their own. */
  lifecycleQueue: string;
  now: () => Date;
  /** Memory of this process; each fact is read and written at once when not given. */
  memory?: CallbackMemory;
  /** Holds a repeat to every fact of the first; otherwise to the resource and the name alone. */
  everyFact?: true;
  /** Log that is told of a callback that is parked. */
  log?: { warn: (fields: object, message: string) => void };
  /** Counter of what became of each callback. */
  meter?: CallbackMeter;
}

/** Error of a `callback_id` that was used for another callback. */
export class CallbackConflict extends Error {
  override readonly name = 'CallbackConflict';
}

/** Outcome of a delivery. `parked`: no such resource at this connector; kept for an operator. */
export type CallbackReceipt = 'delivered' | 'duplicate' | 'parked';

/**
 * Receives a bank's callback: keeps it, then signals it to the resource's workflow, which is
 * started again when it has ended. Safe to repeat with the same `callback_id`: it counts once.
 * @param signed_by id of the connector's key that it came signed with
 * @throws ZodError on a malformed callback, connector or id; RangeError when the resource has no
 *   such callback; CallbackConflict; any error of MongoDB or Temporal: repeat the call
 */
export async function deliverCallback(
  deps: CallbackDeps,
  reported: ResourceCallback,
  signed_by?: string,
): Promise<CallbackReceipt> {
  const told = ResourceCallback.parse(reported);
  const { connector, resource, name } = told;
  const about = { connector, resource, name };
  try {
    const receipt = await keepAndSignal(deps, told, signed_by);
    deps.meter?.received({ ...about, receipt });
    return receipt;
  } catch (error) {
    deps.meter?.received({ ...about, receipt: 'failed' });
    throw error;
  }
}

async function keepAndSignal(
  deps: CallbackDeps,
  { connector, resource, resource_id, name, callback }: ResourceCallback,
  signed_by: string | undefined,
): Promise<CallbackReceipt> {
  const { callbacks } = deps.stores;
  const body: AnyCallback = defined<AnyCallback>(callback);
  if (!LIFECYCLES[resource].callbacks.includes(name)) {
    throw new RangeError(`A ${resource} has no callback "${name}".`);
  }
  const received_at = deps.now().toISOString();
  const about = { resource, resource_id, name };
  const row = defined({ connector, ...about, body, received_at, signed_by });
  const kept = await callbacks.keep(row);
  if (!isSame(kept, row, deps.everyFact === true)) {
    throw new CallbackConflict(`callback_id ${body.callback_id} was used for another callback`);
  }
  if (kept.signalled_at !== null || deps.memory?.wasSignalled(kept._id)) return 'duplicate';

  const told = { connector, ...about };
  if (!(await signalKnown(deps, told, body)) && !(await signalFound(deps, told, body, kept._id))) {
    await callbacks.park(kept._id, `no such ${resource} at this connector`);
    const { callback_id } = body;
    deps.log?.warn(
      { callback_id, connector, [`${resource}_id`]: resource_id, code: name },
      'callback parked',
    );
    return 'parked';
  }
  const at = deps.now().toISOString();
  if (deps.memory === undefined) {
    // Two that come at once both signal, and the workflow counts one.
    return (await callbacks.markSignalled(kept._id, at)) ? 'delivered' : 'duplicate';
  }
  deps.memory.signalled(kept._id, at);
  return 'delivered';
}

type Reported = Pick<CallbackDocument, 'resource' | 'resource_id' | 'name' | 'body'>;

/** Whether a report says what was kept under its `callback_id`. */
function isSame(kept: Reported, told: Reported, everyFact: boolean): boolean {
  const { resource, resource_id, name } = told;
  if (kept.name !== name || kept.resource_id !== resource_id) return false;
  if (!everyFact) return true;
  // Equal instants may be written in two ways.
  const factsOf = ({ body }: Reported) => ({ ...body, occurred_at: Date.parse(body.occurred_at) });
  return kept.resource === resource && isDeepStrictEqual(factsOf(kept), factsOf(told));
}

/**
 * Delivers a kept callback that no workflow has heard of, as its connector does by a repeat.
 * @throws as `deliverCallback`
 */
export function deliverKept(
  deps: CallbackDeps,
  { connector, resource, resource_id, name, body }: CallbackDocument,
): Promise<CallbackReceipt> {
  return deliverCallback(deps, { connector, resource, resource_id, name, callback: body });
}

type Told = Omit<ResourceCallback, 'callback'>;

/** Signals a resource that is known to be this connector's, if its workflow runs. */
async function signalKnown(deps: CallbackDeps, told: Told, body: AnyCallback): Promise<boolean> {
  const { connector, resource, resource_id } = told;
  const isKnown = deps.memory?.isOf(resource, resource_id, connector) === true;
  return isKnown && (await signalRunning(deps, told, body));
}

/** Signals a resource that the record holds, or that is not written yet; false: it is not there. */
async function signalFound(
  deps: CallbackDeps,
  told: Told,
  body: AnyCallback,
  requestId: string,
): Promise<boolean> {
  const { connector, resource, resource_id, name } = told;
  const found = await LIFECYCLES[resource].get(deps.stores, resource_id);
  // Its workflow may run already.
  if (found === null)
    return (await isLabelledSo(deps, told)) && (await signalRunning(deps, told, body));
  if (found.connector !== connector) return false;
  deps.memory?.belongs(resource, resource_id, connector);
  return await signalOrReopen(deps, resource, found, name, body, requestId);
}

/**
 * Whether the workflow of a resource that is not written yet runs for this connector; a workflow that
 * was started without labels says nothing against it.
 */
async function isLabelledSo(
  { temporal }: CallbackDeps,
  { connector, resource, resource_id }: Told,
): Promise<boolean> {
  const handle = temporal.workflow.getHandle(LIFECYCLES[resource].workflowId(resource_id));
  try {
    const labelled = (await handle.describe()).typedSearchAttributes.get(SEARCH_KEYS.connector);
    return labelled === undefined || labelled === connector;
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return false;
    throw error;
  }
}

async function signalRunning(
  deps: CallbackDeps,
  { resource, resource_id, name }: Told,
  body: AnyCallback,
): Promise<boolean> {
  const workflowId = LIFECYCLES[resource].workflowId(resource_id);
  try {
    await deps.temporal.workflow.getHandle(workflowId).signal(name, body);
    return true;
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return false;
    throw error;
  }
}

async function signalOrReopen(
  { temporal, lifecycleQueue }: CallbackDeps,
  kind: CallbackResource,
  found: Resource,
  name: CallbackName,
  body: AnyCallback,
  requestId: string,
): Promise<boolean> {
  await temporal.workflow.signalWithStart(LIFECYCLES[kind].workflowType, {
    ...nextRun(kind, found, lifecycleQueue, requestId),
    signal: name,
    signalArgs: [body],
  });
  return true;
}
