import type { QueryDefinition, SignalDefinition, UpdateDefinition } from '@temporalio/common';
import {
  CancellationScope,
  condition,
  setDefaultSignalHandler,
  setHandler,
} from '@temporalio/workflow';
import type { ApprovalRequired } from '../../src/domain/approval';
import type { AnyCallback } from '../../src/domain/callback/callback';
import { readSignature } from '../../src/domain/callback/signature';
import { type ActPayload, readAct } from '../../src/domain/operator-act';
import type { Faults } from '../../src/domain/shape';
import {
  ADVANCE_CLOCK,
  ADVANCE_CLOCK_DESCRIPTION,
  advanceClock,
  assertClockAdvance,
} from './clock';
import {
  type CallbackItem,
  getResource,
  type Mailbox,
  type Opening,
  receiveCallback,
} from './mailbox';
import { enqueueAct, type OperatorItem } from './operator-acts';
import { assertWellFormed, refuse } from './refusal';
import { listenForStuckSteps } from './stuck';

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
  /** Parses a payload; never throws. */
  read: (raw: unknown) => Callback | Faults;
  acts: readonly {
    name: Act;
    update: UpdateDefinition<ActResult | ApprovalRequired, [ActPayload]>;
  }[];
  descriptions: Record<'open' | 'state' | Name | Act, string>;
}

interface Answers<Resource, Act extends string, Result, OpenResult> {
  noun: string;
  asksBank?: boolean;
  /** State of a resumed run is not known until it is loaded. */
  resumed: boolean;
  state: () => Result;
  opened: () => Promise<OpenResult>;
  actFault: (resource: Resource, act: Act) => string | undefined;
}

/** Sets handlers that only enqueue. A cancel request must not fail updates that wait. */
export function listen<
  Resource extends { facts: { livemode: boolean } },
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
  setHandler(
    ADVANCE_CLOCK,
    uncancelled(async (advance) => {
      const { facts } = await untilOpened(mail);
      return await advanceClock(mail.clock, facts, advance);
    }),
    { description: ADVANCE_CLOCK_DESCRIPTION, validator: assertClockAdvance },
  );
  listenForStuckSteps();
  const receive = (name: Name, raw: unknown) =>
    receiveCallback(mail, name, read(raw), readSignature(raw));
  for (const { name, raw } of takeEarly(callbacks)) receive(name, raw);
  for (const { name, signal } of callbacks) {
    const description = descriptions[name];
    setHandler(signal, (raw: unknown) => receive(name, raw), { description });
  }
  for (const { name, update } of acts) {
    const enqueue = uncancelled((act: ActPayload) => enqueueAct(mail.inbox, name, act));
    setHandler<
      ActResult | ApprovalRequired,
      [ActPayload],
      UpdateDefinition<ActResult | ApprovalRequired, [ActPayload]>
    >(update, enqueue, {
      description: descriptions[name],
      validator: (act) => {
        assertWellFormed(readAct(name, act, answers.asksBank));
        const fault = actFaultIn(mail, name, answers);
        if (fault !== undefined) refuse('wrong_state', fault);
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

/** A validator can't wait until the state is loaded; the loop checks again. */
function actFaultIn<Resource, Act extends string>(
  mail: Mailbox<unknown, Resource>,
  act: Act,
  { noun, resumed, actFault }: Answers<Resource, Act, unknown, unknown>,
): string | undefined {
  const resource = getResource(mail);
  if (resource !== undefined) return actFault(resource, act);
  return resumed ? undefined : `The ${noun} has not been accepted.`;
}

export function uncancelled<Args extends unknown[], T>(
  handler: (...args: Args) => Promise<T>,
): (...args: Args) => Promise<T> {
  return (...args) => CancellationScope.nonCancellable(() => handler(...args));
}

/** @throws ApplicationFailure when it was refused */
export async function untilOpened<Item, Resource>(
  mail: Mailbox<Item, Resource>,
): Promise<Resource> {
  await condition(() => mail.opening !== undefined);
  return requireAccepted(mail.opening);
}

export function requireAccepted<Resource>(opening: Opening<Resource> | undefined): Resource {
  if (opening?.outcome === 'accepted') return opening.resource;
  return refuse(opening?.code ?? 'temporarily_unavailable', opening?.message ?? 'Not known yet.');
}
