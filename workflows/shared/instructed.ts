import {
  allHandlersFinished,
  CancellationScope,
  condition,
  continueAsNew,
  type Trigger,
} from '@temporalio/workflow';
import type { Outdated } from '../../connectors/contract/activities';
import { assertNever } from '../../src/domain/assert';
import type { AnyCallback, CallbackName } from '../../src/domain/callback/callback';
import type { Due } from './alarm';
import type { BankAnswer, Earlier } from './bank-attempts';
import { getEarlierInstruction, type InstructionState } from './bank-instruction';
import type { CallbackItem, Mailbox, Opening } from './mailbox';
import type { OperatorItem } from './operator-acts';
import { type Write, writeScheduled } from './persist';
import type { createRecord, StoredState } from './record';
import { runUntilFinal } from './run-loop';
import {
  type CommonFacts,
  initialState,
  note,
  type ResourceSnapshot,
  startLabels,
  type WorkflowState,
} from './state';

/** Types that differ between the instructed resources. */
export interface Kind {
  status: string;
  attention: string;
  facts: CommonFacts;
  /** Fields that change with the status. */
  change: object;
  callbackName: CallbackName;
  callback: AnyCallback;
  answer: BankAnswer;
  act: string;
  actResult: object;
}

export type InstructedItem<K extends Kind> =
  | CallbackItem<K['callbackName'], K['callback']>
  | { kind: 'answer'; answer: K['answer'] | Outdated }
  | OperatorItem<K['act'], K['actResult']>;

/** Resource that a bank is instructed to move, within one run. */
export interface Instructed<K extends Kind>
  extends WorkflowState<K['status'], K['attention'], K['facts']>,
    InstructionState {
  readonly inbox: InstructedItem<K>[];
  /** Operators who wait for the bank's answer. */
  resubmits: Trigger<K['actResult']>[];
}

type Decision<Status extends string, Attention extends string> =
  | { kind: 'move'; to: readonly Status[] }
  | { kind: 'unapplied'; reason: string; attention?: Attention };

/** Rules that differ between the instructed resources. */
export interface InstructedRules<K extends Kind, R extends Instructed<K>> {
  record: ReturnType<typeof createRecord<K['status'], K['attention'], R, K['change']>>;
  isEnded: (status: K['status']) => boolean;
  /** Whether the bank may still have to be instructed. */
  isUnsent: (status: K['status']) => boolean;
  instruct: (resource: R, earlier?: Earlier) => Promise<void>;
  readSnapshot: (input: {
    resource_id: string;
    request_id: string;
  }) => Write<StoredState<K['status'], K['attention']>>;
  decide: (
    resource: R,
    name: K['callbackName'],
    callback: K['callback'],
  ) => Decision<K['status'], K['attention']>;
  /** Fields that a callback changes. */
  buildChange: (to: readonly K['status'][], callback: K['callback']) => Partial<K['change']>;
  applyAnswer: (resource: R, answer: K['answer']) => Promise<void>;
  applyAct: (resource: R, item: OperatorItem<K['act'], K['actResult']>) => Promise<void>;
  nextDue: (resource: R) => Due | undefined;
  getState: (resource: R) => K['actResult'];
  /** Input of a new run, which loads its state first. */
  buildResume: (id: string, request_id: string) => object;
}

/** @param resumed the search attributes may have any value, and are updated */
export function newInstructed<K extends Kind>(
  { inbox }: Pick<Instructed<K>, 'inbox'>,
  id: string,
  snapshot: ResourceSnapshot<K['status'], K['attention'], K['facts']>,
  resumed: boolean,
): Instructed<K> {
  const state = initialState<K['status'], K['attention'], K['facts']>(
    id,
    snapshot,
    startLabels(resumed),
  );
  const instructionState = { instruction: 0, pendingSends: new Set<never>() };
  return { ...state, ...instructionState, inbox, bankReference: undefined, resubmits: [] };
}

/** Opens or loads a resource, and runs its lifecycle until it is final. */
export async function runInstructed<K extends Kind, R extends Instructed<K>>(
  rules: InstructedRules<K, R>,
  mail: Mailbox<InstructedItem<K>, R>,
  open: () => Promise<Opening<R>>,
): Promise<void> {
  // A cancel request from the Temporal UI is ignored: it must not interrupt a booking.
  await CancellationScope.nonCancellable(async () => {
    const opening = await open();
    mail.opening = opening;
    if (opening.outcome === 'refused') await condition(allHandlersFinished);
    else await runLifecycle(rules, mail.inbox, opening.resource);
  });
}

export function beginInstructed<K extends Kind, R extends Instructed<K>>(
  { record, instruct }: InstructedRules<K, R>,
  resource: R,
): Opening<R> {
  record.show(resource);
  void instruct(resource);
  return { outcome: 'accepted', resource };
}

/** Continues a loaded resource; its instruction is looked up before it is sent again. */
export function resumeInstructed<K extends Kind, R extends Instructed<K>>(
  { record, instruct, isEnded, isUnsent }: InstructedRules<K, R>,
  resource: R,
): Opening<R> {
  const ended = isEnded(resource.status);
  record.logActivity(resource, ended ? 'Started again after the end.' : 'Started again in flight.');
  if (isUnsent(resource.status)) void instruct(resource, getEarlierInstruction());
  return { outcome: 'accepted', resource };
}

function runLifecycle<K extends Kind, R extends Instructed<K>>(
  rules: InstructedRules<K, R>,
  inbox: InstructedItem<K>[],
  resource: R,
): Promise<void> {
  const { isEnded, isUnsent, nextDue, buildResume } = rules;
  const { id, facts, pendingSends, resubmits } = resource;
  return runUntilFinal({
    inbox,
    handle: async (item) => {
      await handle(rules, resource, item);
      // The bank's answer no longer matters to the operators who wait for it.
      if (!isUnsent(resource.status)) answerResubmits(rules, resource, {});
    },
    isFinal: () => isEnded(resource.status) && pendingSends.size === 0,
    nextDue: () => nextDue(resource),
    isIdle: () => pendingSends.size === 0 && resubmits.length === 0,
    continueInNewRun: () =>
      continueAsNew<(input: object) => Promise<unknown>>(buildResume(id, facts.request_id)),
  });
}

/** Returns when all changes of the item are written. */
async function handle<K extends Kind, R extends Instructed<K>>(
  rules: InstructedRules<K, R>,
  resource: R,
  item: InstructedItem<K>,
): Promise<void> {
  const { record } = rules;
  switch (item.kind) {
    case 'callback':
      return await record.applyVerified(resource, item, () =>
        applyCallback(rules, resource, item.name, item.callback),
      );
    case 'malformed':
      note(resource, `unreadable callback \`${item.name}\`: ${item.fault}`);
      return await record.flagMalformed(resource);
    case 'answer':
      if (isOutdated(item.answer)) return await syncFromDb(rules, resource);
      return await rules.applyAnswer(resource, item.answer);
    case 'operator':
      return await rules.applyAct(resource, item);
    default:
      assertNever(item);
  }
}

async function applyCallback<K extends Kind, R extends Instructed<K>>(
  rules: InstructedRules<K, R>,
  resource: R,
  name: K['callbackName'],
  callback: K['callback'],
): Promise<void> {
  const { record, isUnsent } = rules;
  const { callback_id, value_date }: { callback_id: string; value_date?: string | undefined } =
    callback;
  if (resource.appliedIds.has(callback_id)) {
    return record.logActivity(resource, `callback \`${name}\` (${callback_id}): applied before`);
  }
  const decision = rules.decide(resource, name, callback);
  note(resource, `callback \`${name}\` (${callback_id}): ${decision.kind}`);
  switch (decision.kind) {
    case 'move': {
      const { to } = decision;
      // Nothing is sent after the bank's report, also while it is being written.
      if (!isUnsent(to.at(-1) ?? resource.status)) resource.instruction += 1;
      const change = rules.buildChange(to, callback);
      return await record.transition(resource, to, { change, callback_id, value_date });
    }
    case 'unapplied':
      await record.recordUnapplied(resource, name, callback, decision.reason);
      if (decision.attention !== undefined) await record.setAttention(resource, decision.attention);
      return;
    default:
      assertNever(decision);
  }
}

/** Answers the operators who wait for the bank, with its answer where it has come. */
export function answerResubmits<K extends Kind, R extends Instructed<K>>(
  { getState }: InstructedRules<K, R>,
  resource: R,
  bankAnswer: { bank?: string },
): void {
  for (const trigger of resource.resubmits.splice(0)) {
    trigger.resolve({ ...getState(resource), ...bankAnswer });
  }
}

async function syncFromDb<K extends Kind, R extends Instructed<K>>(
  { record, instruct, isUnsent, readSnapshot }: InstructedRules<K, R>,
  resource: R,
): Promise<void> {
  const { id: resource_id, facts } = resource;
  const { request_id } = facts;
  record.applyStored(resource, await writeScheduled(readSnapshot({ resource_id, request_id })));
  if (isUnsent(resource.status)) void instruct(resource, getEarlierInstruction());
}

function isOutdated<Answer extends BankAnswer>(answer: Answer | Outdated): answer is Outdated {
  return answer.outcome === 'outdated';
}

/** Decides on a callback with a different amount: it is stored, and an operator looks. */
export function differs(reason: string) {
  return { kind: 'unapplied', reason, attention: 'amount_differs' } as const;
}
