import type { QueryDefinition, SignalDefinition, UpdateDefinition } from '@temporalio/common';
import { CancellationScope, condition, setHandler } from '@temporalio/workflow';
import type { AnyCallback } from '../../src/domain/callback/callback';
import { readSignature } from '../../src/domain/callback/signature';
import { type ActPayload, readAct } from '../../src/domain/lifecycle';
import type { Faults } from '../../src/domain/shape';
import {
  type CallbackItem,
  getResource,
  type Mailbox,
  type Opening,
  receiveCallback,
} from './mailbox';
import { enqueueAct, type OperatorItem } from './operator-acts';
import { assertWellFormed, refuse } from './refusal';

/** The messages that every lifecycle takes. */
interface Contract<
  Name extends string,
  Callback extends AnyCallback,
  Act extends string,
  Result,
  OpenResult,
  ActResult,
> {
  state: QueryDefinition<Result>;
  open: UpdateDefinition<OpenResult>;
  callbacks: readonly { name: Name; signal: SignalDefinition<[unknown]> }[];
  /** Reads the payload of every callback; it never throws. */
  read: (raw: unknown) => Callback | Faults;
  acts: readonly { name: Act; update: UpdateDefinition<ActResult, [ActPayload]> }[];
  /** Texts that the Temporal UI shows with each message. */
  descriptions: Record<'open' | 'state' | Name | Act, string>;
}

/** The answers in which one lifecycle differs from the others. */
interface Answers<Resource, Act extends string, Result, OpenResult> {
  noun: string;
  /** Started again: until it is loaded, nothing is known of its state. */
  resumed: boolean;
  state: () => Result;
  /** Resolves once the opening is known. @throws ApplicationFailure when it was refused */
  opened: () => Promise<OpenResult>;
  /** Why an act can't be done now, in words; undefined when it can. */
  actFault: (resource: Resource, act: Act) => string | undefined;
}

/**
 * Sets the handlers: signals enqueue, updates enqueue and wait, and the loop decides. Handlers run
 * outside the main function's scope, so a cancel request must not fail those who wait in them.
 */
export function listen<
  Resource,
  Name extends string,
  Callback extends AnyCallback,
  Act extends string,
  Result,
  OpenResult,
  ActResult,
  Item,
>(
  mail: Mailbox<Item | CallbackItem<Name, Callback> | OperatorItem<Act, ActResult>, Resource>,
  {
    state,
    open,
    callbacks,
    read,
    acts,
    descriptions,
  }: Contract<Name, Callback, Act, Result, OpenResult, ActResult>,
  answers: Answers<Resource, Act, Result, OpenResult>,
): void {
  setHandler(state, answers.state, { description: descriptions.state });
  setHandler(open, uncancelled(answers.opened), { description: descriptions.open });
  for (const { name, signal } of callbacks) {
    const receive = (raw: unknown) => receiveCallback(mail, name, read(raw), readSignature(raw));
    setHandler(signal, receive, { description: descriptions[name] });
  }
  for (const { name, update } of acts) {
    const enqueue = uncancelled((act: ActPayload) => enqueueAct(mail.inbox, name, act));
    setHandler<ActResult, [ActPayload], UpdateDefinition<ActResult, [ActPayload]>>(
      update,
      enqueue,
      {
        description: descriptions[name],
        validator: (act) => {
          assertWellFormed(readAct(name, act));
          const fault = actFaultIn(mail, name, answers);
          if (fault !== undefined) refuse('wrong_state', fault);
        },
      },
    );
  }
}

/** A validator can't wait until the state is loaded; the loop looks again. */
function actFaultIn<Resource, Act extends string>(
  mail: Mailbox<unknown, Resource>,
  act: Act,
  { noun, resumed, actFault }: Answers<Resource, Act, unknown, unknown>,
): string | undefined {
  const resource = getResource(mail);
  if (resource !== undefined) return actFault(resource, act);
  return resumed ? undefined : `The ${noun} has not been accepted.`;
}

/** Runs a handler in a scope that a cancel request does not reach. */
export function uncancelled<Args extends unknown[], T>(
  handler: (...args: Args) => Promise<T>,
): (...args: Args) => Promise<T> {
  return (...args) => CancellationScope.nonCancellable(() => handler(...args));
}

/** Waits for the opening. @throws ApplicationFailure when it was refused */
export async function untilOpened<Item, Resource>(
  mail: Mailbox<Item, Resource>,
): Promise<Resource> {
  await condition(() => mail.opening !== undefined);
  return requireAccepted(mail.opening);
}

/** @throws ApplicationFailure when it was refused */
export function requireAccepted<Resource>(opening: Opening<Resource> | undefined): Resource {
  if (opening?.outcome === 'accepted') return opening.resource;
  return refuse(opening?.code ?? 'temporarily_unavailable', opening?.message ?? 'Not known yet.');
}
