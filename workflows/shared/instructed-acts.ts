import { ActivityFailure, condition } from '@temporalio/workflow';
import { computeRest } from '../../src/domain/movement/movement';
import type {
  ActItem,
  ActTransition,
  BankAnswer,
  BankQuestion,
  Finding,
  Instructed,
  InstructedRules,
  Kind,
  NotFound,
} from './instructed-rules';
import { getReference, instruct, stopInstructing } from './instruction';
import { findNamed, resolveMovement } from './movement';
import { amountFault, authorize, buildAudit } from './operator-acts';
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
  const { movement } = item;
  let { amount } = item;
  if (movement !== undefined) {
    const named = findNamed(resource, movement);
    if (typeof named === 'string') return named;
    if (rules.findTaker(resource, named) !== what) {
      return `The ${rules.noun} does not take the movement ${movement} by ${what}.`;
    }
    const rest = Number(computeRest(named));
    amount ??= Math.min(rest, rules.getAmount?.(resource) ?? rest);
  }
  const acts: Partial<Record<string, ActTransition<K, R>>> = rules.acts;
  const { to = [], change = {}, write } = acts[what]?.(resource, amount) ?? {};
  const audit = buildAudit(item);
  await write?.(audit);
  await rules.record.transition(resource, to, { change, audit, movement, scheduled: true });
  return undefined;
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

/** Time for an attempt in progress; with the question shorter than an operator waits. */
const SENDS_MS_MAX = 4_000;

/**
 * Asks whether the bank holds an instruction, so that its money is not given back and then sent. An
 * instruction in progress ends first.
 * @see docs/operators.md#send-an-update
 */
async function askBank<K extends Kind>(
  resource: Instructed<K>,
  question: BankQuestion<K['answer']>,
  isUnsent: boolean,
): Promise<Finding<K['answer']>> {
  const { status, unanswered } = resource;
  const isInterrupted = isUnsent && unanswered?.number === resource.instruction;
  const stopping = isUnsent ? stopInTime(resource) : undefined;
  const about = { status, instruction: resource.instruction, isInterrupted };
  const stopped = await stopping;
  if (stopped === 'taken') return { ...about, outcome: 'held', isInterrupted: false };
  if (stopped === 'in_progress') return { ...about, outcome: 'unreachable' };
  const cancelAnswer = await tryToAsk(question.cancel);
  if (cancelAnswer?.outcome === 'cancelled') return { ...about, outcome: 'not_executed' };
  const isTooLate = cancelAnswer?.outcome === 'too_late';
  const answer = await tryToAsk(question.lookUp);
  if (answer === undefined) return { ...about, outcome: isTooLate ? 'held' : 'unreachable' };
  if (!isHeld(answer)) {
    if (isTooLate) return { ...about, outcome: 'held' };
    const mayArrive = answer.outcome === 'not_found' && Date.now() < resource.arrivesBy;
    return { ...about, outcome: mayArrive ? 'may_arrive' : 'not_executed' };
  }
  resource.bankReference = getReference(answer) ?? resource.bankReference;
  return { ...about, outcome: 'held', answer };
}

async function stopInTime<K extends Kind>(
  resource: Instructed<K>,
): Promise<'taken' | 'ended' | 'in_progress'> {
  let stopped: 'taken' | 'ended' | undefined;
  const hasSends = resource.pendingSends.size > 0;
  const stopping = stopInstructing(resource).then((isTaken) => {
    stopped = isTaken ? 'taken' : 'ended';
  });
  if (hasSends) await condition(() => stopped !== undefined, SENDS_MS_MAX);
  else await stopping;
  return stopped ?? 'in_progress';
}

async function tryToAsk<Answer>(ask: () => Promise<Answer>): Promise<Answer | undefined> {
  try {
    return await ask();
  } catch (error) {
    if (!(error instanceof ActivityFailure)) throw error;
    return undefined;
  }
}

function isHeld<Answer extends BankAnswer>(answer: Answer | NotFound): answer is Answer {
  return answer.outcome !== 'not_found' && answer.outcome !== 'refused';
}

const UNLESS_CONFIRMED =
  'Once the bank has confirmed that it was not executed and will not be, send ' +
  '`bank_confirmed_not_executed: true`.';

function findFailureFault(
  { outcome, status, instruction }: Finding<unknown>,
  resource: { status: string; instruction: number },
  noun: string,
): { code: string; message: string } | undefined {
  if (outcome === 'held') {
    const message = `The bank holds the ${noun} and may still execute it. ${UNLESS_CONFIRMED}`;
    return { code: 'held_by_bank', message };
  }
  if (outcome === 'unreachable') {
    const message =
      `The bank did not answer in time whether it holds the ${noun}; nothing changed. Try again. ` +
      UNLESS_CONFIRMED;
    return { code: 'bank_unreachable', message };
  }
  if (outcome === 'may_arrive') {
    const message =
      `The bank does not know the ${noun} yet, but an earlier instruction may still arrive: ` +
      'try again in 30 seconds.';
    return { code: 'wrong_state', message };
  }
  if (resource.status !== status) {
    const message = `The ${noun} became ${resource.status} meanwhile. ${UNLESS_CONFIRMED}`;
    return { code: 'held_by_bank', message };
  }
  if (resource.instruction === instruction) return undefined;
  const message = `The ${noun} was sent to the bank again meanwhile; try again.`;
  return { code: 'wrong_state', message };
}
