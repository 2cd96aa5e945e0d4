import type { QueryDefinition, SignalDefinition, UpdateDefinition } from '@temporalio/common';
import {
  CancellationScope,
  condition,
  defineQuery,
  defineSignal,
  defineUpdate,
  setDefaultSignalHandler,
  setHandler,
} from '@temporalio/workflow';
import {
  type AnyCallback,
  type BankCallback,
  type CallbackName,
  type CallbackResource,
  type CallbackSignature,
  type MissedCallback,
  readSignature,
} from '../../src/domain/banks/callback';
import type { ActTarget } from '../../src/domain/crypto/deposit-acts';
import type { RuleViolation } from '../../src/domain/errors';
import type { ApprovalRequired } from '../../src/domain/operators/approval';
import { type ActPayload, readAct } from '../../src/domain/operators/operator-act';
import { Faults } from '../../src/domain/shape';
import {
  type AccountClock,
  ADVANCE_CLOCK,
  ADVANCE_CLOCK_DESCRIPTION,
  advanceClock,
  assertClockAdvance,
  startClock,
} from './clock';
import { enqueueAct, type OperatorItem } from './operator-acts';
import { listenForStuckSteps } from './persist';
import { assertIdentity, assertWellFormed, refuse } from './refusal';

export interface Mailbox<Item, Resource> {
  /** In order of arrival. Handlers only enqueue; the loop decides. */
  readonly inbox: Item[];
  /** Keys of received signals: repeats are not added. */
  readonly seen: Set<string>;
  opening: Opening<Resource> | undefined;
  readonly clock: AccountClock;
}

export type Opening<Resource> =
  | { outcome: 'accepted'; resource: Resource }
  | ({ outcome: 'refused' } & RuleViolation);

export function openMailbox<Item, Resource>(start: object): Mailbox<Item, Resource> {
  return { inbox: [], seen: new Set(), opening: undefined, clock: startClock(start) };
}

export function getResource<Resource>({
  opening,
}: {
  opening: Opening<Resource> | undefined;
}): Resource | undefined {
  return opening?.outcome === 'accepted' ? opening.resource : undefined;
}

interface State {
  status: string;
  version: number;
}

export function readResult<Resource, Known extends State>(
  { opening }: { opening: Opening<Resource> | undefined },
  first: NoInfer<Known>,
  getState: (resource: Resource) => Known,
): Known | (Omit<Known, keyof State> & { status: 'refused'; code: string; message: string }) {
  if (opening?.outcome === 'accepted') return getState(opening.resource);
  if (opening === undefined) return first;
  const { status, version, ...id } = first;
  const { code, message } = opening;
  return { ...id, status: 'refused', code, message };
}

export type CallbackItem<Name extends string, Callback extends AnyCallback = BankCallback> =
  | { kind: 'callback'; name: Name; callback: Callback; signature: CallbackSignature | undefined }
  | { kind: 'malformed'; name: Name; fault: string };

/**
 * Adds signalled callbacks that no run has applied, before later ones: Temporal may have lost their
 * signals.
 */
export function receiveMissed<Name extends string, Callback extends AnyCallback, Item>(
  { inbox, seen }: { inbox: (Item | CallbackItem<Name, Callback>)[]; seen: Set<string> },
  {
    callbacks,
    read,
  }: {
    callbacks: readonly { name: Name }[];
    read: (raw: unknown, name: string) => Callback | Faults;
  },
  missed: readonly MissedCallback[] = [],
): void {
  const items: CallbackItem<Name, Callback>[] = [];
  for (const { name, body, signature } of missed) {
    const known = callbacks.find((each) => each.name === name);
    if (known === undefined) continue;
    receiveCallback({ inbox: items, seen }, known.name, read(body, known.name), signature);
  }
  inbox.unshift(...items);
}

/**
 * Each `callback_id` is added once for each signature: a false one must not replace the true one.
 */
function receiveCallback<Name extends string, Callback extends AnyCallback>(
  {
    inbox,
    seen,
  }: { inbox: { push(item: CallbackItem<Name, Callback>): unknown }; seen: Set<string> },
  name: Name,
  callback: Callback | Faults,
  signature: CallbackSignature | undefined | Faults,
): void {
  if (callback instanceof Faults || signature instanceof Faults) {
    const faults = [callback, signature].filter((read) => read instanceof Faults);
    inbox.push({ kind: 'malformed', name, fault: faults.map(({ text }) => text).join('; ') });
    return;
  }
  const { callback_id } = callback;
  const key = signature === undefined ? callback_id : JSON.stringify([name, callback, signature]);
  if (seen.has(key)) return;
  seen.add(key);
  inbox.push({ kind: 'callback', name, callback, signature });
}

export interface MessageKind {
  callbackName: CallbackName;
  callback: AnyCallback;
  act: string;
  actResult: object;
  /** Answer of the query `state`. */
  result: object;
  /** Answer of the update `open`. */
  opened: object;
}

interface Messages<K extends MessageKind> {
  state: QueryDefinition<K['result']>;
  open: UpdateDefinition<K['opened']>;
  callbacks: readonly { name: K['callbackName']; signal: SignalDefinition<[unknown]> }[];
  /** Parses a payload; never throws. */
  read: (raw: unknown, name: string) => K['callback'] | Faults;
  acts: readonly {
    name: K['act'];
    update: UpdateDefinition<K['actResult'] | ApprovalRequired, [ActPayload]>;
  }[];
  descriptions: Descriptions<K>;
}

type Descriptions<K extends MessageKind> = Record<
  'open' | 'state' | K['callbackName'] | K['act'],
  string
>;

/** Defines the contract of a workflow, changed only by addition. */
export function defineMessages<K extends MessageKind>(
  acts: readonly K['act'][],
  callbacks: readonly K['callbackName'][],
  read: Messages<K>['read'],
  descriptions: Descriptions<K>,
): Messages<K> {
  return {
    open: defineUpdate('open'),
    state: defineQuery('state'),
    acts: acts.map((name) => ({ name, update: defineUpdate(name) })),
    callbacks: callbacks.map((name) => ({ name, signal: defineSignal(name) })),
    read,
    descriptions,
  };
}

export interface Listening<K extends MessageKind, R> {
  kind: CallbackResource;
  noun: string;
  /** Checks an id, by default for a UUID. */
  isId?: (id: unknown) => string | undefined;
  workflowId: (id: string) => string;
  messages: Messages<K>;
  /** Whether an act may ask the bank first. */
  asksBank?: boolean;
  getState: (resource: R) => K['opened'] & K['actResult'];
  getResult: (mail: { opening: Opening<R> | undefined }, id: string) => K['result'];
  /** @param target given where the act is done, not yet where it is received */
  actFault: (resource: R, act: K['act'], target?: ActTarget) => string | undefined;
}

type Receiver<K extends MessageKind, R> = Pick<
  Mailbox<unknown, R>,
  'seen' | 'opening' | 'clock'
> & {
  inbox: {
    push(
      item: CallbackItem<K['callbackName'], K['callback']> | OperatorItem<K['act'], K['actResult']>,
    ): unknown;
  };
};

/**
 * Sets handlers that only enqueue. A cancel request must not fail updates that wait.
 * @param untilOpen waits for the answer to the caller that opens it
 * @throws ApplicationFailure `invalid_request`: the workflow was started by hand
 */
export function listen<K extends MessageKind, R extends { facts: { livemode: boolean } }>(
  rules: Listening<K, R>,
  mail: Receiver<K, R>,
  start: object,
  untilOpen = async (): Promise<K['opened']> => rules.getState(await untilOpened(mail)),
): void {
  const { kind, noun, messages, asksBank } = rules;
  const { callbacks, read, descriptions } = messages;
  const field = `${kind}_id`;
  const id: unknown = Object(start)[field];
  assertIdentity(field, id, rules.workflowId, rules.isId);
  setHandler(messages.state, () => rules.getResult(mail, String(id)), {
    description: descriptions.state,
  });
  setHandler(messages.open, uncancelled(untilOpen), { description: descriptions.open });
  setHandler(
    ADVANCE_CLOCK,
    uncancelled(async (advance) => {
      const { facts } = await untilOpened(mail);
      return await advanceClock(mail.clock, facts, advance);
    }),
    { description: ADVANCE_CLOCK_DESCRIPTION, validator: assertClockAdvance },
  );
  listenForStuckSteps();
  const receive = (name: K['callbackName'], raw: unknown) =>
    receiveCallback(mail, name, read(raw, name), readSignature(raw));
  for (const { name, raw } of takeEarly(callbacks)) receive(name, raw);
  for (const { name, signal } of callbacks) {
    const description = descriptions[name];
    setHandler(signal, (raw: unknown) => receive(name, raw), { description });
  }
  for (const { name, update } of messages.acts) {
    const enqueue = uncancelled((act: ActPayload) => enqueueAct(mail.inbox, name, act));
    setHandler<
      K['actResult'] | ApprovalRequired,
      [ActPayload],
      UpdateDefinition<K['actResult'] | ApprovalRequired, [ActPayload]>
    >(update, enqueue, {
      description: descriptions[name],
      // It can't wait until the state is loaded; the loop checks again.
      validator: (act) => {
        assertWellFormed(readAct(name, act, asksBank));
        const resource = getResource(mail);
        const fault = resource && rules.actFault(resource, name);
        if (fault !== undefined) refuse('wrong_state', fault);
        // State of a resumed run is not known until it is loaded.
        if (resource !== undefined || 'resume' in start) return;
        refuse('wrong_state', `The ${noun} has not been accepted.`);
      },
    });
  }
}

/**
 * Callbacks from before the first task come in the order of their arrival: handlers would take them
 * name by name.
 */
function takeEarly<Name extends string>(
  callbacks: readonly { name: Name }[],
): { name: Name; raw: unknown }[] {
  const arrived: { name: string; raw: unknown }[] = [];
  setDefaultSignalHandler((name, raw) => void arrived.push({ name, raw }));
  setDefaultSignalHandler(undefined);
  return arrived.flatMap(({ name, raw }) => {
    const known = callbacks.find((each) => each.name === name);
    return known === undefined ? [] : [{ name: known.name, raw }];
  });
}

export function uncancelled<Args extends unknown[], T>(
  handler: (...args: Args) => Promise<T>,
): (...args: Args) => Promise<T> {
  return (...args) => CancellationScope.nonCancellable(() => handler(...args));
}

/** @throws ApplicationFailure when it was refused */
export async function untilOpened<Resource>(
  mail: Pick<Mailbox<unknown, Resource>, 'opening'>,
): Promise<Resource> {
  await condition(() => mail.opening !== undefined);
  return requireAccepted(mail.opening);
}

export function requireAccepted<Resource>(opening: Opening<Resource> | undefined): Resource {
  if (opening?.outcome === 'accepted') return opening.resource;
  return refuse(opening?.code ?? 'temporarily_unavailable', opening?.message ?? 'Not known yet.');
}
