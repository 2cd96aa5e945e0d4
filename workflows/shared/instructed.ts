import type { Outdated } from '../../connectors/contract/activities';
import { assertNever } from '../../src/domain/assert';
import { findCorrected, isCorrection, isInSuspense } from '../../src/domain/banks/movement';
import { type Mailbox, type Opening, receiveMissed } from './inbox';
import { defineActs } from './instructed-acts';
import {
  type BankAnswer,
  type Instructed,
  type InstructedItem,
  type InstructedLifecycle,
  type InstructedRules,
  type Kind,
  newInstructed,
} from './instructed-rules';
import { cancelUnstartedSends, getEarlierArrival, instruct } from './instruction';
import { handleCommon } from './lifecycle';
import { bookReturn, buildReport, findReason, holdMovement } from './movement';
import { amountFault } from './operator-acts';
import { writeScheduled } from './persist';
import { isReported, note } from './state';

export function defineInstructed<K extends Kind, R extends Instructed<K>>(
  rules: InstructedRules<K, R>,
): InstructedLifecycle<K, R> {
  const lifecycle: InstructedLifecycle<K, R> = {
    ...rules,
    acts: defineActs(rules),
    checkAct: (resource, { what, amount }) => {
      // A movement has an amount of its own.
      const most = what === 'resolve_movement' ? undefined : rules.getAmount?.(resource);
      const message = amountFault(amount, most);
      return message === undefined ? undefined : { code: 'invalid_request', message };
    },
    handle: async (resource, item) => {
      await handle(lifecycle, resource, item);
      // The bank's answer no longer matters to the operators who wait for it.
      if (!rules.isUnsent(resource.status)) answerResubmits(rules, resource, {});
    },
    applyCallback: (resource, { name, callback }) => applyCallback(rules, resource, name, callback),
    isFinal: ({ status, pendingSends }) => rules.isEnded(status) && pendingSends.size === 0,
    isIdle: ({ pendingSends, resubmits }) => pendingSends.size === 0 && resubmits.length === 0,
    nextDue: (resource) => {
      const reason = rules.getOverdueReason(resource.status);
      if (reason === undefined) return cancelUnstartedSends(resource);
      if (resource.isOverdueReported) return undefined;
      const act = () => rules.record.flagOverdue(resource, reason);
      return { at: rules.dueAt(resource), summary: `The ${rules.noun} is due`, act };
    },
  };
  return lifecycle;
}

export function beginInstructed<K extends Kind, R extends Instructed<K>>(
  rules: InstructedRules<K, R>,
  resource: R,
): Opening<R> {
  rules.record.show(resource);
  void instruct(rules, resource);
  return { outcome: 'accepted', resource };
}

/** Looks the instruction up before it is sent again. */
export async function resumeInstructed<K extends Kind>(
  rules: InstructedRules<K, Instructed<K>>,
  mail: Mailbox<InstructedItem<K>, Instructed<K>>,
  ids: { resource_id: string; request_id: string },
): Promise<Opening<Instructed<K>>> {
  const { record, isEnded, isUnsent, readSnapshot, getOverdueReason } = rules;
  const snapshot = await writeScheduled(readSnapshot(ids));
  const resource = newInstructed<K>(mail, ids.resource_id, snapshot, true);
  const overdueReason = getOverdueReason(resource.status);
  resource.isOverdueReported = overdueReason !== undefined && isReported(resource, overdueReason);
  receiveMissed(mail, rules.messages, snapshot.missed);
  const ended = isEnded(resource.status);
  record.logActivity(resource, ended ? 'Started again after the end.' : 'Started again in flight.');
  if (isUnsent(resource.status)) void instruct(rules, resource, getEarlierArrival());
  return { outcome: 'accepted', resource };
}

/** Returns when all changes of the item are written. */
async function handle<K extends Kind, R extends Instructed<K>>(
  rules: InstructedLifecycle<K, R>,
  resource: R,
  item: InstructedItem<K>,
): Promise<void> {
  if (item.kind !== 'answer') return await handleCommon(rules, resource, item);
  const { record } = rules;
  const { answer } = item;
  if (isOutdated(answer)) {
    const { id: resource_id, facts } = resource;
    const ids = { resource_id, request_id: facts.request_id };
    const snapshot = await writeScheduled(rules.readSnapshot(ids));
    record.applyStored(resource, snapshot);
    resource.movements = snapshot.movements ?? [];
    if (rules.isUnsent(resource.status)) void instruct(rules, resource, getEarlierArrival());
    return;
  }
  await rules.applyAnswer(resource, answer);
  if (answer.bank_reference && rules.kind !== 'crypto_settlement') {
    await record.noteReference(resource, answer.bank_reference);
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
  const decision = rules.decide(resource, name, callback);
  note(resource, `callback ${name} (${callback_id}): ${decision.kind}`);
  switch (decision.kind) {
    case 'move': {
      const { to } = decision;
      // Nothing is sent after the bank's report, also while it is being written.
      if (!isUnsent(to.at(-1) ?? resource.status)) resource.instruction += 1;
      const change = rules.buildChange(to, callback);
      const { bank_reference: reference } = buildReport('out', callback);
      const isNamedAgain = reference !== undefined && rules.isLaterStep?.(to) === true;
      const attention = isNamedAgain
        ? await bookUnapplied(rules, resource, name, callback, undefined)
        : undefined;
      await record.transition(resource, to, { change, callback_id, value_date, reference });
      if (attention !== undefined) await record.setAttention(resource, attention);
      return;
    }
    case 'unapplied': {
      const attention = await bookUnapplied(rules, resource, name, callback, decision.attention);
      await rules.bookMore?.(resource, callback);
      await record.recordUnapplied(resource, name, callback, decision.reason);
      if (attention !== undefined) await record.setAttention(resource, attention);
      return;
    }
    default:
      assertNever(decision);
  }
}

/**
 * Posts money that moved besides that of a transition.
 * @returns attention reason; null: it has ended, undefined: none
 */
async function bookUnapplied<K extends Kind, R extends Instructed<K>>(
  rules: InstructedRules<K, R>,
  resource: R,
  name: K['callbackName'],
  callback: K['callback'],
  attention: K['attention'] | undefined,
): Promise<K['attention'] | null | undefined> {
  const { record, kind } = rules;
  const plan = rules.suspend(resource, name, callback, attention);
  if (plan === undefined) return attention;
  if (plan === 'back') {
    await bookReturn(record, kind, resource, buildReport('in', callback));
    return attention;
  }
  const report = buildReport(plan.direction, callback);
  const { value_date, occurred_at }: { value_date?: string | undefined; occurred_at: string } =
    callback;
  const at = value_date ?? new Date(occurred_at).toISOString().slice(0, 'YYYY-MM-DD'.length);
  const corrected = findCorrected(resource.movements, report, { reason: plan.reason, at });
  if (corrected !== undefined) {
    const outcome = await bookReturn(record, kind, resource, report, corrected.id);
    const isOver = outcome === 'returned' && resource.attention === corrected.reason;
    if (outcome === 'returned') return isOver ? findReason(resource.movements) : undefined;
  }
  const { movement, isNew } = await holdMovement(record, kind, resource, report, plan);
  if (movement === undefined) return attention;
  if (movement.reason === null) {
    // The bank reports what an operator has recorded, or what makes up for another movement again.
    const isKnown = movement.sources[0]?.kind === 'act' || isCorrection(plan.reason);
    return isKnown ? undefined : attention;
  }
  // The bank has sent what an operator found not sent, and gave back as the resource failed.
  const isDenied = movement.resolutions.some(({ as }) => as === 'never_happened');
  if (plan.isAfresh && isDenied) return attention;
  // A movement that has left suspense needs nobody again; a lost attempt may have made it.
  const isOwn = isNew || movement.sources[0]?.id === report.source.id;
  return isOwn || isInSuspense(movement) ? (movement.reason as K['attention']) : undefined;
}

export function answerResubmits<K extends Kind, R extends Instructed<K>>(
  { getState }: InstructedRules<K, R>,
  resource: R,
  bankAnswer: { bank?: string },
): void {
  for (const trigger of resource.resubmits.splice(0)) {
    trigger.resolve({ ...getState(resource), ...bankAnswer });
  }
}

function isOutdated<Answer extends BankAnswer>(answer: Answer | Outdated): answer is Outdated {
  return answer.outcome === 'outdated';
}

/** Whether a report must name its amount: the bank has named another one before. */
export function lacksAmount(
  resource: Pick<Instructed<Kind>, 'attention' | 'acknowledged'>,
  { amount }: { amount?: number | undefined },
): boolean {
  return amount === undefined && isReported(resource, 'amount_differs');
}

export const LACKS_AMOUNT =
  'the bank has reported a different amount, and this report has none: an operator decides';

export function differs(reason: string) {
  return { kind: 'unapplied', reason, attention: 'amount_differs' } as const;
}
