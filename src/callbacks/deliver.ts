import { isDeepStrictEqual } from 'node:util';
import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import type {
  AnyCallback,
  CallbackName,
  CallbackResource,
  CallbackSignature,
} from '../domain/banks/callback';
import { omitUndefined } from '../domain/defined';
import { Refusal } from '../domain/errors';
import { SEARCH_KEYS } from '../domain/search-attributes';
import { ResourceCallback } from '../domain/wire/callback';
import { LIFECYCLES, type ResourceStores } from '../lifecycles';
import type { Stores } from '../store';
import { type CallbackDocument, callbackKey } from '../store/callbacks';
import { assertNotBehind, nextRun } from '../temporal/start';
import type { CallbackMemory } from './memory';
import { type ConnectorKey, signCallback } from './verify';

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
  /** Absent: everything is read and written immediately. */
  memory?: CallbackMemory;
  /** Signals again what was signalled: Temporal may have lost it. */
  again?: true;
  /** Compares every field of a repeat; otherwise only resource and name. */
  everyFact?: true;
  /** Limits what a connector's callbacks about unknown resources take from others. */
  runUnknown?: <T>(connector: string, work: () => Promise<T>) => Promise<T>;
  log?: { warn: (fields: object, message: string) => void };
  meter?: CallbackMeter;
}

/** Another callback has used the `callback_id`. */
export class CallbackConflict extends Error {
  override readonly name = 'CallbackConflict';
}

/** `parked`: stored for an operator, since this connector has no such resource. */
export type CallbackReceipt = 'delivered' | 'duplicate' | 'parked';

/**
 * Stores a bank's callback, then signals the resource's workflow, which resumes if it has ended. A
 * repeat with the same `callback_id` is applied once.
 * @param signature absent: made with `deps.key`
 * @throws ZodError on a malformed callback, connector or id; RangeError when the resource has no
 * such callback; CallbackConflict; Refusal `rate_limited`; ServiceError `record_behind`; any error
 * of MongoDB or Temporal: repeat the call
 */
export async function deliverCallback(
  deps: CallbackDeps,
  input: ResourceCallback,
  signature?: CallbackSignature,
): Promise<CallbackReceipt> {
  const report = ResourceCallback.parse(input);
  const { connector, resource, name } = report;
  const about = { connector, resource, name };
  const { callbacks } = deps.stores;
  const parked = limits.get(callbacks) ?? createParkedLimit(deps.stores);
  limits.set(callbacks, parked);
  const deliver = async (isKnown: boolean) => {
    if (!isKnown) await parked.assertNotFull(report);
    try {
      const receipt = await storeAndSignal(deps, report, signature, isKnown);
      deps.meter?.received({ ...about, receipt });
      if (receipt === 'parked') await parked.count(connector);
      return receipt;
    } catch (error) {
      deps.meter?.received({ ...about, receipt: 'failed' });
      throw error;
    }
  };
  if (deps.memory?.belongsTo(resource, report.resource_id, connector) === true) {
    return await deliver(true);
  }
  if (deps.runUnknown === undefined) return await deliver(false);
  const stored = await LIFECYCLES[resource].get(deps.stores, report.resource_id);
  if (stored?.connector !== connector) {
    return await deps.runUnknown(connector, () => deliver(false));
  }
  deps.memory?.rememberConnector(resource, report.resource_id, connector);
  return await deliver(true);
}

async function storeAndSignal(
  deps: CallbackDeps,
  { callback, ...target }: ResourceCallback,
  receivedSignature: CallbackSignature | undefined,
  isKnown: boolean,
): Promise<CallbackReceipt> {
  const { callbacks } = deps.stores;
  const { connector, resource, resource_id, name } = target;
  const body: AnyCallback = omitUndefined<AnyCallback>(callback);
  if (!LIFECYCLES[resource].callbacks.includes(name)) {
    throw new RangeError(`A ${resource} has no callback "${name}".`);
  }
  const received_at = deps.now().toISOString();
  const signature =
    receivedSignature ?? (deps.key && signCallback(deps.key, { ...target, callback: body }));
  const signing = signature && { key_id: signature.key_id, signature: signature.v1 };
  const row = { ...target, body, received_at, ...signing };
  const storedCallback = await callbacks.insertOnce(row);
  if (!isSame(storedCallback, row, deps.everyFact === true)) {
    throw new CallbackConflict(`callback_id ${body.callback_id} was used for another callback`);
  }
  const { _id } = storedCallback;
  const sentCallback = omitUndefined({ _id, signature: signature?.v1 });
  // The stored signature may be refused, now or later.
  const isNewlySigned =
    signing !== undefined &&
    storedCallback.signature !== signing.signature &&
    (storedCallback.refused === true ||
      storedCallback.key_id !== signing.key_id ||
      isSame(storedCallback, row, true));
  if (isNewlySigned) {
    await callbacks.replaceSignature(storedCallback, { body, ...signing });
  } else if (
    deps.again !== true &&
    (storedCallback.signalled_at !== null || deps.memory?.wasSignalled(sentCallback))
  )
    return 'duplicate';

  const payload = signature === undefined ? body : { ...body, mac: signature };
  if (!(await signalResource(deps, { ...target, isKnown }, payload, _id))) {
    await callbacks.park(_id, `no such ${resource} at this connector`);
    const { callback_id } = body;
    const fields = { callback_id, connector, [`${resource}_id`]: resource_id, code: name };
    deps.log?.warn(fields, 'callback parked');
    return 'parked';
  }
  const at = deps.now().toISOString();
  if (deps.again === true && storedCallback.signalled_at !== null) return 'delivered';
  const isRepeat = storedCallback.signalled_at !== null || deps.memory?.hasSignalled(_id);
  const receipt = isRepeat ? 'duplicate' : 'delivered';
  if (deps.memory === undefined) {
    // Two concurrent repeats both signal, and the workflow applies one.
    return (await callbacks.markSignalled(sentCallback, at)) ? receipt : 'duplicate';
  }
  deps.memory.recordSignal(sentCallback, at);
  return receipt;
}

type CallbackReport = Pick<CallbackDocument, 'resource' | 'resource_id' | 'name' | 'body'>;

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

/** Delivers a stored callback again, with its signature. @throws as `deliverCallback` */
export function deliverStored(
  deps: Omit<CallbackDeps, 'key'>,
  { connector, resource, resource_id, name, body, key_id, signature: v1 }: CallbackDocument,
): Promise<CallbackReceipt> {
  const signature = key_id === undefined || v1 === undefined ? undefined : { key_id, v1 };
  const input = { connector, resource, resource_id, name, callback: body };
  return deliverCallback(deps, input, signature);
}

type CallbackTarget = Omit<ResourceCallback, 'callback'>;

type SignalPayload = AnyCallback & { mac?: CallbackSignature };

/** Signals a resource that is stored or about to be. @returns false if this connector has none */
async function signalResource(
  deps: CallbackDeps,
  target: CallbackTarget & { isKnown: boolean },
  payload: SignalPayload,
  requestId: string,
): Promise<boolean> {
  const { connector, resource, resource_id, name, isKnown } = target;
  const { get, workflowId, workflowType } = LIFECYCLES[resource];
  const handle = deps.temporal.workflow.getHandle(workflowId(resource_id));
  const signalRunning = async () => (await orNull(handle.signal(name, payload))) !== null;

  if (isKnown && (await signalRunning())) return true;
  const storedResource = await get(deps.stores, resource_id);
  if (storedResource === null) {
    // Its workflow may already run; one without labels passes.
    const description = await orNull(handle.describe());
    if (description === null) return false;
    const label = description.typedSearchAttributes.get(SEARCH_KEYS.connector);
    return (label === undefined || label === connector) && (await signalRunning());
  }
  if (storedResource.connector !== connector) return false;
  deps.memory?.rememberConnector(resource, resource_id, connector);
  if (!isKnown && (await signalRunning())) return true;
  await assertNotBehind(deps, resource, storedResource);
  await deps.temporal.workflow.signalWithStart(workflowType, {
    ...nextRun(resource, storedResource, deps.lifecycleQueue, requestId),
    signal: name,
    signalArgs: [payload],
  });
  return true;
}

/** Returns null if the workflow does not exist. */
async function orNull<T>(call: Promise<T>): Promise<T | null> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return null;
    throw error;
  }
}

/** Per connector; beyond it, callbacks about unknown resources are refused. */
const PARKED_MAX = 1_000;
/** A count holds for this time. */
const FULL_MS = 10_000;

/** Callers of `deliverCallback` share nothing but their stores, which live as long as they do. */
const limits = new WeakMap<Stores['callbacks'], ReturnType<typeof createParkedLimit>>();

/** Bounds the callbacks without a resource that a connector can have stored. */
function createParkedLimit(stores: InboxStores) {
  const fullAt = new Map<string, number>();
  const count = async (connector: string): Promise<boolean> => {
    const parked = await stores.callbacks.countWaiting({ waits: 'parked', connector }, PARKED_MAX);
    const isFull = parked >= PARKED_MAX;
    if (isFull) fullAt.set(connector, performance.now());
    else fullAt.delete(connector);
    return isFull;
  };
  return {
    count,
    /** @throws Refusal `rate_limited` for a new callback that would be parked */
    assertNotFull: async ({ connector, resource, resource_id, callback }: ResourceCallback) => {
      const at = fullAt.get(connector);
      if (at === undefined) return;
      const isFresh = performance.now() - at < FULL_MS;
      if (!isFresh && !(await count(connector))) return;
      if ((await LIFECYCLES[resource].get(stores, resource_id))?.connector === connector) return;
      if ((await stores.callbacks.get(callbackKey(connector, callback.callback_id))) !== null)
        return;
      const message = `${PARKED_MAX} callbacks of this connector about unknown resources wait for an operator.`;
      throw new Refusal('rate_limited', message);
    },
  };
}
