import { isDeepStrictEqual } from 'node:util';
import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import { type ConnectorKey, signCallback } from '../connectors/mac';
import type { AnyCallback, CallbackName, CallbackResource } from '../domain/callback';
import type { CallbackMac } from '../domain/callback-mac';
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
  /** Key of the connector, under which each callback is signed; none is signed when not given. */
  key?: ConnectorKey | undefined;
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
 * @param mac proof that it came with; made under `deps.key`, where there is one, when not given
 * @throws ZodError on a malformed callback, connector or id; RangeError when the resource has no
 *   such callback; CallbackConflict; any error of MongoDB or Temporal: repeat the call
 */
export async function deliverCallback(
  deps: CallbackDeps,
  reported: ResourceCallback,
  mac?: CallbackMac,
): Promise<CallbackReceipt> {
  const told = ResourceCallback.parse(reported);
  const { connector, resource, name } = told;
  const about = { connector, resource, name };
  try {
    const receipt = await keepAndSignal(deps, told, mac);
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
  proof: CallbackMac | undefined,
): Promise<CallbackReceipt> {
  const { callbacks } = deps.stores;
  const body: AnyCallback = defined<AnyCallback>(callback);
  if (!LIFECYCLES[resource].callbacks.includes(name)) {
    throw new RangeError(`A ${resource} has no callback "${name}".`);
  }
  const received_at = deps.now().toISOString();
  const about = { resource, resource_id, name };
  const told = { connector, ...about };
  const mac = proof ?? (deps.key && signCallback(deps.key, { ...told, callback: body }));
  const signing = mac && { signed_by: mac.key_id, mac: mac.v1 };
  const row = { ...told, body, received_at, ...signing };
  const kept = await callbacks.keep(row);
  if (!isSame(kept, row, deps.everyFact === true)) {
    throw new CallbackConflict(`callback_id ${body.callback_id} was used for another callback`);
  }
  const sending = defined({ _id: kept._id, mac: mac?.v1 });
  if (signing !== undefined && isSignedAnew(kept, { ...row, ...signing })) {
    await callbacks.signAnew(kept, { body, ...signing });
  } else if (kept.signalled_at !== null || deps.memory?.wasSignalled(sending)) return 'duplicate';

  const sent = mac === undefined ? body : { ...body, mac };
  if (!(await signalKnown(deps, told, sent)) && !(await signalFound(deps, told, sent, kept._id))) {
    await callbacks.park(kept._id, `no such ${resource} at this connector`);
    const { callback_id } = body;
    deps.log?.warn(
      { callback_id, connector, [`${resource}_id`]: resource_id, code: name },
      'callback parked',
    );
    return 'parked';
  }
  const at = deps.now().toISOString();
  const receipt = kept.signalled_at === null ? 'delivered' : 'duplicate';
  if (deps.memory === undefined) {
    // Two that come at once both signal, and the workflow counts one.
    return (await callbacks.markSignalled(sending, at)) ? receipt : 'duplicate';
  }
  deps.memory.signalled(sending, at);
  return receipt;
}

type Reported = Pick<CallbackDocument, 'resource' | 'resource_id' | 'name' | 'body'>;
type Signing = Pick<CallbackDocument, 'signed_by' | 'mac'>;

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
 * Whether a repeat proves its sender in another way: the first may be refused, now or later, for its
 * key, for its mac, or for none.
 */
function isSignedAnew(kept: CallbackDocument, told: Reported & Required<Signing>): boolean {
  if (kept.mac === told.mac) return false;
  return kept.refused === true || kept.signed_by !== told.signed_by || isSame(kept, told, true);
}

/**
 * Delivers a kept callback that no workflow has heard of, as its connector does by a repeat: with the
 * mac that it came with.
 * @throws as `deliverCallback`
 */
export function deliverKept(
  deps: Omit<CallbackDeps, 'key'>,
  { connector, resource, resource_id, name, body, signed_by: key_id, mac: v1 }: CallbackDocument,
): Promise<CallbackReceipt> {
  const mac = key_id === undefined || v1 === undefined ? undefined : { key_id, v1 };
  return deliverCallback(deps, { connector, resource, resource_id, name, callback: body }, mac);
}

type Told = Omit<ResourceCallback, 'callback'>;

/** Payload of the signal. */
type Sent = AnyCallback & { mac?: CallbackMac };

/** Signals a resource that is known to be this connector's, if its workflow runs. */
async function signalKnown(deps: CallbackDeps, told: Told, payload: Sent): Promise<boolean> {
  const { connector, resource, resource_id } = told;
  const isKnown = deps.memory?.isOf(resource, resource_id, connector) === true;
  return isKnown && (await signalRunning(deps, told, payload));
}

/** Signals a resource that the record holds, or that is not written yet; false: it is not there. */
async function signalFound(
  deps: CallbackDeps,
  told: Told,
  payload: Sent,
  requestId: string,
): Promise<boolean> {
  const { connector, resource, resource_id, name } = told;
  const found = await LIFECYCLES[resource].get(deps.stores, resource_id);
  // Its workflow may run already.
  if (found === null)
    return (await isLabelledSo(deps, told)) && (await signalRunning(deps, told, payload));
  if (found.connector !== connector) return false;
  deps.memory?.belongs(resource, resource_id, connector);
  return await signalOrReopen(deps, resource, found, name, payload, requestId);
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
  payload: Sent,
): Promise<boolean> {
  const workflowId = LIFECYCLES[resource].workflowId(resource_id);
  try {
    await deps.temporal.workflow.getHandle(workflowId).signal(name, payload);
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
  payload: Sent,
  requestId: string,
): Promise<boolean> {
  await temporal.workflow.signalWithStart(LIFECYCLES[kind].workflowType, {
    ...nextRun(kind, found, lifecycleQueue, requestId),
    signal: name,
    signalArgs: [payload],
  });
  return true;
}
