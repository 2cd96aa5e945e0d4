import {
  allHandlersFinished,
  CancellationScope,
  condition,
  continueAsNew,
} from '@temporalio/workflow';
import { assertNever } from '../../src/domain/assert';
import type { CallbackItem, Listening, Mailbox, MessageKind, Opening } from './inbox';
import { type Due, runUntilFinal } from './loop';
import { type AuditedAct, authorize, buildAudit, type OperatorItem } from './operator-acts';
import type { RecordKind, ResourceRecord } from './record';
import { rejectUpdate } from './refusal';
import { note, type WorkflowState } from './state';

export interface LifecycleKind extends MessageKind, RecordKind {}

type Resource<K extends LifecycleKind> = WorkflowState<K['status'], K['attention'], K['facts']>;

export type ActItem<K extends LifecycleKind> = OperatorItem<K['act'], K['actResult']>;

type Callback<K extends LifecycleKind> = CallbackItem<K['callbackName'], K['callback']>;

/** Items of each lifecycle. */
export type CommonItem<K extends LifecycleKind> = Callback<K> | ActItem<K>;

export interface Refusal {
  code: string;
  message: string;
}

/**
 * Does an act, once it is authorized.
 * @returns why it is refused, by default with `wrong_state`; null: the operator is answered later
 */
export type Act<K extends LifecycleKind, R> = (
  resource: R,
  audit: AuditedAct,
  item: ActItem<K>,
) => Promise<string | Refusal | null | undefined>;

/** Acts that each lifecycle has, and does alike. */
type CommonAct = 'snooze' | 'acknowledge';

/** Acts that a lifecycle does itself. */
export type Acts<K extends LifecycleKind, R> = Record<Exclude<K['act'], CommonAct>, Act<K, R>> & {
  [What in CommonAct]?: Act<K, R>;
};

export interface Lifecycle<K extends LifecycleKind, R extends Resource<K>, Item = never>
  extends Listening<K, R> {
  record: ResourceRecord<K, R>;
  /** Refuses more than the state does, before anyone is asked to approve. */
  checkAct?: (resource: R, item: ActItem<K>) => Refusal | undefined;
  /** Acts by name, apart from those that each lifecycle does alike. @see Acts */
  acts: Partial<Record<string, Act<K, R>>>;
  /** Returns when all changes of the item are written. */
  handle: (resource: R, item: Item | CommonItem<K>) => Promise<void>;
  applyCallback: (resource: R, item: Extract<Callback<K>, { kind: 'callback' }>) => Promise<void>;
  isFinal: (resource: R) => boolean;
  /** Whether nothing is awaited that a new run would not know of. */
  isIdle: (resource: R) => boolean;
  nextDue: (resource: R) => Due | undefined;
  endsSoon?: (resource: R) => boolean;
}

type Acting<K extends LifecycleKind, R extends Resource<K>> = Pick<
  Lifecycle<K, R>,
  'kind' | 'record' | 'getState' | 'actFault' | 'checkAct' | 'acts'
>;

/** Handles messages and what is due, from the opening until the resource is final. */
export async function runLifecycle<
  K extends LifecycleKind,
  R extends Resource<K>,
  Item extends { kind: string },
>(
  rules: Lifecycle<K, R, Item>,
  mail: Mailbox<Item | CommonItem<K>, R>,
  open: () => Promise<Opening<R>>,
): Promise<void> {
  const { kind, record } = rules;
  // A cancel request from the Temporal UI must not interrupt a booking.
  await CancellationScope.nonCancellable(async () => {
    const opening = await open();
    mail.opening = opening;
    if (opening.outcome === 'refused') return await condition(allHandlersFinished);
    const { resource } = opening;
    const { id, facts } = resource;
    await runUntilFinal({
      inbox: mail.inbox,
      clock: resource.clock,
      handle: (item) => rules.handle(resource, item),
      reportGivenUp: (what, refused) => record.flagGivenUp(resource, what, refused),
      isFinal: () => rules.isFinal(resource),
      nextDue: () => rules.nextDue(resource),
      endsSoon: rules.endsSoon?.(resource) ?? false,
      isIdle: () => rules.isIdle(resource),
      continueInNewRun: () =>
        continueAsNew<(start: object) => Promise<unknown>>({
          [`${kind}_id`]: id,
          resume: true,
          request_id: facts.request_id,
        }),
    });
  });
}

/**
 * Returns the promise itself: after one more `await`, the answer to an update would come before the
 * commands that follow it in the histories.
 */
export function handleCommon<K extends LifecycleKind, R extends Resource<K>>(
  rules: Acting<K, R> & Pick<Lifecycle<K, R>, 'applyCallback'>,
  resource: R,
  item: CommonItem<K>,
): Promise<void> {
  const { record } = rules;
  switch (item.kind) {
    case 'callback':
      return record.applyVerified(resource, item, () => rules.applyCallback(resource, item));
    case 'malformed':
      note(resource, `unreadable callback ${item.name}: ${item.fault}`);
      return record.flagMalformed(resource);
    case 'operator':
      return applyAct(rules, resource, item);
    default:
      return assertNever(item);
  }
}

/** Decides again: the state may have changed since the update was accepted. */
async function applyAct<K extends LifecycleKind, R extends Resource<K>>(
  rules: Acting<K, R>,
  resource: R,
  item: ActItem<K>,
): Promise<void> {
  const { kind, record, acts } = rules;
  const { what, answer } = item;
  const fault = rules.actFault(resource, what, item.target ?? {});
  if (fault !== undefined) return rejectUpdate(answer, 'wrong_state', fault);
  const violation = rules.checkAct?.(resource, item);
  if (violation !== undefined) return rejectUpdate(answer, violation.code, violation.message);
  // What the bank was asked about comes again with its answer.
  const isFirst = item.finding === undefined;
  if (isFirst || item.isAboveLimit) {
    if (!(await authorize(kind, record, resource, item))) return;
  }
  const { act } = item;
  if (isFirst) {
    record.logActivity(resource, `operator ${act.operator}: ${what} (${act.reason})`);
  }
  const common: Record<CommonAct, Act<K, R>> = {
    snooze: (_resource, audit) => record.snooze(resource, audit, item.hours).then(() => undefined),
    acknowledge: (_resource, audit) => record.acknowledge(resource, audit, item.attention),
  };
  const all: Partial<Record<string, Act<K, R>>> = { ...common, ...acts };
  const refused = await all[what]?.(resource, buildAudit(item), item);
  if (refused === null) return;
  if (refused === undefined) return answer.resolve(rules.getState(resource));
  const { code, message } =
    typeof refused === 'string' ? { code: 'wrong_state', message: refused } : refused;
  rejectUpdate(answer, code, message);
}
