import { computeRest } from '../../src/domain/movement/movement';
import { authorize } from './approvals';
import { stopInstructing } from './bank-instruction';
import { instruct } from './instruct';
import type {
  ActItem,
  ActTransition,
  Finding,
  Instructed,
  InstructedRules,
  Kind,
} from './instructed-rules';
import { askBank, findFailureFault } from './mark-failed';
import { findNamed, resolveMovement } from './movement';
import { amountFault, buildAudit } from './operator-acts';
import { rejectUpdate } from './refusal';

/** Decides again, since the state may have changed. */
export async function applyAct<K extends Kind, R extends Instructed<K>>(
  rules: InstructedRules<K, R>,
  resource: R,
  item: ActItem<K>,
): Promise<void> {
  const { record } = rules;
  const { what, hours, amount, answer } = item;
  const fault = rules.actFault(resource, what);
  if (fault !== undefined) return rejectUpdate(answer, 'wrong_state', fault);
  // A movement has an amount of its own.
  const most = what === 'resolve_movement' ? undefined : rules.getAmount?.(resource);
  const tooMuch = amountFault(amount, most);
  if (tooMuch !== undefined) return rejectUpdate(answer, 'invalid_request', tooMuch);
  const isFirst = item.finding === undefined;
  const mustAsk = isFirst || item.isAboveLimit === true;
  if (mustAsk && !(await authorize(rules.kind, record, resource, item))) return;
  const { act } = item;
  if (isFirst) {
    record.logActivity(resource, `operator ${act.operator}: ${what} (${act.reason})`);
  }
  const audit = buildAudit(item);
  switch (what) {
    case 'resubmit':
      await record.recordAct(resource, audit, resource.attention);
      // Resolved with the bank's answer, or a change before it.
      resource.resubmits.push(answer);
      void instruct(rules, resource, { arrivesBy: 0 });
      return record.show(resource);
    case 'mark_failed':
      return await markFailed(rules, resource, item);
    case 'snooze':
      await record.snooze(resource, audit, hours);
      break;
    case 'acknowledge': {
      const refused = await record.acknowledge(resource, audit, item.attention);
      if (refused) return rejectUpdate(answer, refused.code, refused.message);
      break;
    }
    case 'resolve_movement': {
      const { kind, findTaker, findDecided } = rules;
      const movement = findNamed(resource, item.movement);
      const decided =
        typeof movement === 'string' ? undefined : findDecided?.(resource, movement, item.as);
      if (decided !== undefined && typeof movement !== 'string') {
        if (BigInt(amount ?? 0) > computeRest(movement)) {
          const message = `Of the movement ${movement.id}, ${computeRest(movement)} is in suspense (minor units).`;
          return rejectUpdate(answer, 'wrong_state', message);
        }
        const fault = await takeMovement(
          rules,
          resource,
          { ...item, movement: movement.id },
          decided,
        );
        if (fault !== undefined) return rejectUpdate(answer, 'wrong_state', fault);
        break;
      }
      const refused = await resolveMovement(record, kind, resource, audit, item, findTaker);
      if (refused !== undefined) return rejectUpdate(answer, 'wrong_state', refused);
      record.show(resource);
      break;
    }
    default: {
      const refused = await takeMovement(rules, resource, item, what);
      if (refused !== undefined) return rejectUpdate(answer, 'wrong_state', refused);
    }
  }
  answer.resolve(rules.getState(resource));
}

/** Makes the transition of an act, with the movement that it names. @returns why not */
async function takeMovement<K extends Kind, R extends Instructed<K>>(
  rules: InstructedRules<K, R>,
  resource: R,
  item: ActItem<K>,
  what: K['act'],
): Promise<string | undefined> {
  const { movement, amount } = item;
  const taken = findTaken(rules, resource, { movement, what });
  if (typeof taken === 'string') return taken;
  const acts: Partial<Record<string, ActTransition<K, R>>> = rules.acts;
  const { to = [], change = {} } = acts[what]?.(resource, amount ?? taken) ?? {};
  const audit = buildAudit(item);
  await rules.record.transition(resource, to, { change, audit, movement, scheduled: true });
  return undefined;
}

/** @returns minor units of the movement that the act names; a text: why it cannot take it */
function findTaken<K extends Kind, R extends Instructed<K>>(
  { findTaker, getAmount, noun }: InstructedRules<K, R>,
  resource: R,
  { what, movement: named }: Pick<ActItem<K>, 'what' | 'movement'>,
): number | string | undefined {
  if (named === undefined) return undefined;
  const movement = findNamed(resource, named);
  if (typeof movement === 'string') return movement;
  const taker = findTaker(resource, movement);
  if (taker !== what) return `The ${noun} does not take the movement ${named} by ${what}.`;
  const rest = Number(computeRest(movement));
  return Math.min(rest, getAmount?.(resource) ?? rest);
}

async function markFailed<K extends Kind, R extends Instructed<K>>(
  rules: InstructedRules<K, R>,
  resource: R,
  item: ActItem<K>,
): Promise<void> {
  const { record, isUnsent, buildQuestion } = rules;
  if (buildQuestion !== undefined && item.act.bank_confirmed_not_executed !== true) {
    if (item.finding === undefined) return askInBackground(rules, resource, item);
    if (await refuseFailure(rules, resource, item, item.finding)) return;
  } else if (isUnsent(resource.status) && (await stopInstructing(resource))) {
    const message = `The bank has just taken the ${rules.noun}; look again.`;
    return rejectUpdate(item.answer, 'wrong_state', message);
  }
  const change = rules.operatorFailure;
  const audit = buildAudit(item);
  await record.transition(resource, ['failed'], { change, audit, scheduled: true });
  resource.isMarkedFailed = true;
  item.answer.resolve(rules.getState(resource));
}

/** Lets the loop go on meanwhile; acts return to the inbox with the finding. */
function askInBackground<K extends Kind, R extends Instructed<K>>(
  { isUnsent, buildQuestion }: InstructedRules<K, R>,
  resource: R,
  item: ActItem<K>,
): void {
  resource.failures.push(item);
  // One question answers all.
  if (buildQuestion === undefined || resource.failures.length > 1) return;
  void askBank<K>(resource, buildQuestion(resource), isUnsent(resource.status)).then((finding) => {
    for (const failure of resource.failures.splice(0)) resource.inbox.push({ ...failure, finding });
  });
}

/** @returns whether it was refused; then an interrupted instruction goes on */
async function refuseFailure<K extends Kind, R extends Instructed<K>>(
  rules: InstructedRules<K, R>,
  resource: R,
  { answer }: ActItem<K>,
  finding: Finding<K['answer']>,
): Promise<boolean> {
  const { noun, record, isUnsent } = rules;
  const fault = findFailureFault(finding, resource, noun);
  if (fault === undefined) return false;
  record.logActivity(resource, `not marked as failed: ${fault.code}`);
  if (isUnsent(resource.status)) {
    if (finding.answer !== undefined) await rules.applyAnswer(resource, finding.answer);
    else if (finding.isInterrupted && finding.instruction === resource.instruction) {
      void instruct(rules, resource, { arrivesBy: resource.arrivesBy });
    }
  }
  rejectUpdate(answer, fault.code, fault.message);
  return true;
}
