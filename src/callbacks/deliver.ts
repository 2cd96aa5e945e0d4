import { isDeepStrictEqual } from 'node:util';
import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import type { AnyCallback, CallbackName, CallbackResource } from '../domain/callback/callback';
import type { CallbackSignature } from '../domain/callback/signature';
import { omitUndefined } from '../domain/defined';
import { SEARCH_KEYS } from '../domain/search-attributes';
import { ResourceCallback } from '../domain/wire/callback';
import { LIFECYCLES, type Resource, type ResourceStores } from '../lifecycles';
import type { Stores } from '../store';
import type { CallbackDocument } from '../store/callbacks';
import { nextRun } from '../temporal/start';
import { type ConnectorKey, signCallback } from './mac';
import type { CallbackMemory } from './memory';

export type { ResourceCallback };

export type InboxStores = ResourceStores & Pick<Stores, 'callbacks'>;

export interface CallbackMeter {
  received(about: {
    connector: string;
    resource: CallbackResource;
    name: CallbackName;
    /** `failed`: the connector repeats it. */
    receipt: CallbackReceipt | 'failed';
  }): void;
}

export interface CallbackDeps {
  stores: InboxStores;
  temporal: Client;
  lifecycleQueue: string;
  now: () => Date;
  key?: ConnectorKey | undefined;
  /** Without it, everything is read and written immediately. */
  memory?: CallbackMemory;
  /** Compares every field of a repeat; otherwise only the resource and the name. */
  everyFact?: true;
  log?: { warn: (fields: object, message: string) => void };
  meter?: CallbackMeter;
}

/** Error of a `callback_id` that a different callback has used. */
export class CallbackConflict extends Error {
  override readonly name = 'CallbackConflict';
}

/** `parked`: no such resource at this connector; stored for an operator. */
export type CallbackReceipt = 'delivered' | 'duplicate' | 'parked';

/**
 * Stores a bank's callback, then signals it to the resource's workflow, which resumes if it has
 * ended. A repeat with the same `callback_id` is applied once.
 * @param signature the received one; by default made with `deps.key`
 * @throws ZodError on a malformed callback, connector or id; RangeError when the resource has no
 *   such callback; CallbackConflict; any error of MongoDB or Temporal: repeat the call
 */
export async function deliverCallback(
  deps: CallbackDeps,
  input: ResourceCallback,
  signature?: CallbackSignature,
): Promise<CallbackReceipt> {
  const report = ResourceCallback.parse(input);
  const { connector, resource, name } = report;
  const about = { connector, resource, name };
  try {
    const receipt = await storeAndSignal(deps, report, signature);
    deps.meter?.received({ ...about, receipt });
    return receipt;
  } catch (error) {
    deps.meter?.received({ ...about, receipt: 'failed' });
    throw error;
  }
}

async function storeAndSignal(
  deps: CallbackDeps,
  { connector, resource, resource_id, name, callback }: ResourceCallback,
  receivedSignature: CallbackSignature | undefined,
): Promise<CallbackReceipt> {
  const { callbacks } = deps.stores;
  const body: AnyCallback = omitUndefined<AnyCallback>(callback);
  if (!LIFECYCLES[resource].callbacks.includes(name)) {
    throw new RangeError(`A ${resource} has no callback "${name}".`);
  }
  const received_at = deps.now().toISOString();
  const about = { resource, resource_id, name };
  const target = { connector, ...about };
  const signature =
    receivedSignature ?? (deps.key && signCallback(deps.key, { ...target, callback: body }));
  const signing = signature && { signed_by: signature.key_id, mac: signature.v1 };
  const row = { ...target, body, received_at, ...signing };
  const storedCallback = await callbacks.insertOnce(row);
  if (!isSame(storedCallback, row, deps.everyFact === true)) {
    throw new CallbackConflict(`callback_id ${body.callback_id} was used for another callback`);
  }
  const sentCallback = omitUndefined({ _id: storedCallback._id, mac: signature?.v1 });
  if (signing !== undefined && hasNewSignature(storedCallback, { ...row, ...signing })) {
    await callbacks.replaceSignature(storedCallback, { body, ...signing });
  } else if (storedCallback.signalled_at !== null || deps.memory?.wasSignalled(sentCallback))
    return 'duplicate';

  const payload = signature === undefined ? body : { ...body, mac: signature };
  if (
    !(await signalKnownResource(deps, target, payload)) &&
    !(await signalStoredResource(deps, target, payload, storedCallback._id))
  ) {
    await callbacks.park(storedCallback._id, `no such ${resource} at this connector`);
    const { callback_id } = body;
    deps.log?.warn(
      { callback_id, connector, [`${resource}_id`]: resource_id, code: name },
      'callback parked',
    );
    return 'parked';
  }
  const at = deps.now().toISOString();
  const receipt = storedCallback.signalled_at === null ? 'delivered' : 'duplicate';
  if (deps.memory === undefined) {
    // Two concurrent repeats both signal, and the workflow applies one.
    return (await callbacks.markSignalled(sentCallback, at)) ? receipt : 'duplicate';
  }
  deps.memory.recordSignal(sentCallback, at);
  return receipt;
}

type CallbackReport = Pick<CallbackDocument, 'resource' | 'resource_id' | 'name' | 'body'>;
type Signing = Pick<CallbackDocument, 'signed_by' | 'mac'>;

function isSame(
  storedCallback: CallbackReport,
  report: CallbackReport,
  everyFact: boolean,
): boolean {
  const { resource, resource_id, name } = report;
  if (storedCallback.name !== name || storedCallback.resource_id !== resource_id) return false;
  if (!everyFact) return true;
  // The same instant has several notations.
  const toComparable = ({ body }: CallbackReport) => ({
    ...body,
    occurred_at: Date.parse(body.occurred_at),
  });
  return (
    storedCallback.resource === resource &&
    isDeepStrictEqual(toComparable(storedCallback), toComparable(report))
  );
}

/**
 * Whether a repeat's signature should replace the stored one, which may be refused, now or later.
 */
function hasNewSignature(
  storedCallback: CallbackDocument,
  report: CallbackReport & Required<Signing>,
): boolean {
  if (storedCallback.mac === report.mac) return false;
  return (
    storedCallback.refused === true ||
    storedCallback.signed_by !== report.signed_by ||
    isSame(storedCallback, report, true)
  );
}

/** Delivers a stored callback again, with its signature. @throws as `deliverCallback` */
export function deliverStored(
  deps: Omit<CallbackDeps, 'key'>,
  { connector, resource, resource_id, name, body, signed_by: key_id, mac: v1 }: CallbackDocument,
): Promise<CallbackReceipt> {
  const signature = key_id === undefined || v1 === undefined ? undefined : { key_id, v1 };
  return deliverCallback(
    deps,
    { connector, resource, resource_id, name, callback: body },
    signature,
  );
}

type CallbackTarget = Omit<ResourceCallback, 'callback'>;

type SignalPayload = AnyCallback & { mac?: CallbackSignature };

async function signalKnownResource(
  deps: CallbackDeps,
  target: CallbackTarget,
  payload: SignalPayload,
): Promise<boolean> {
  const { connector, resource, resource_id } = target;
  const isKnown = deps.memory?.belongsTo(resource, resource_id, connector) === true;
  return isKnown && (await signalRunning(deps, target, payload));
}

/** Signals a resource that is stored or about to be stored; false if there is none. */
async function signalStoredResource(
  deps: CallbackDeps,
  target: CallbackTarget,
  payload: SignalPayload,
  requestId: string,
): Promise<boolean> {
  const { connector, resource, resource_id, name } = target;
  const storedResource = await LIFECYCLES[resource].get(deps.stores, resource_id);
  // Its workflow may already run.
  if (storedResource === null)
    return (await hasConnectorLabel(deps, target)) && (await signalRunning(deps, target, payload));
  if (storedResource.connector !== connector) return false;
  deps.memory?.rememberConnector(resource, resource_id, connector);
  return await signalOrReopen(deps, resource, storedResource, name, payload, requestId);
}

/**
 * Whether the workflow of a resource that is not stored yet belongs to this connector, or has no
 * labels.
 */
async function hasConnectorLabel(
  { temporal }: CallbackDeps,
  { connector, resource, resource_id }: CallbackTarget,
): Promise<boolean> {
  const handle = temporal.workflow.getHandle(LIFECYCLES[resource].workflowId(resource_id));
  try {
    const connectorLabel = (await handle.describe()).typedSearchAttributes.get(
      SEARCH_KEYS.connector,
    );
    return connectorLabel === undefined || connectorLabel === connector;
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return false;
    throw error;
  }
}

async function signalRunning(
  deps: CallbackDeps,
  { resource, resource_id, name }: CallbackTarget,
  payload: SignalPayload,
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
  storedResource: Resource,
  name: CallbackName,
  payload: SignalPayload,
  requestId: string,
): Promise<boolean> {
  await temporal.workflow.signalWithStart(LIFECYCLES[kind].workflowType, {
    ...nextRun(kind, storedResource, lifecycleQueue, requestId),
    signal: name,
    signalArgs: [payload],
  });
  return true;
}
