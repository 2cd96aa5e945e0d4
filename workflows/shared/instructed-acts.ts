import { condition } from '@temporalio/workflow';
import { computeRest } from '../../src/domain/banks/movement';
import type {
  ActTransition,
  BankAnswer,
  BankQuestion,
  Finding,
  Instructed,
  InstructedRules,
  InstructionState,
  Kind,
  NotFound,
} from './instructed-rules';
import { encodeReference, getReference, instruct, stopInstructing } from './instruction';
import type { Act, ActItem, Refusal } from './lifecycle';
import { describeRest, findNamed, resolveMovement } from './movement';
import { type AuditedAct, buildAudit } from './operator-acts';
import { StaleState } from './record';
import { unlessFailed } from './refusal';

/** Defines the acts of operators on a resource that instructs a bank. */
export function defineActs<K extends Kind, R extends Instructed<K>>(
  rules: InstructedRules<K, R>,
): Partial<Record<string, Act<K, R>>> {
  const { record, kind, findTaker, findDecided } = rules;
  const own = Object.keys(rules.transitions).map((what): [string, Act<K, R>] => [
    what,
    (resource, _audit, item) => takeMovement(rules, resource, item, what),
  ]);
  return {
    ...Object.fromEntries(own),
    resubmit: async (resource, audit, { answer }) => {
      await record.recordAct(resource, audit, resource.attention);
      // Resolved with the bank's answer, or a change before it.
      resource.resubmits.push(answer);
      void instruct(rules, resource, 0);
      record.show(resource);
      return null;
    },
    mark_failed: (resource, audit, item) => markFailed(rules, resource, audit, item),
    resolve_movement: async (resource, audit, item) => {
      const movement = findNamed(resource, item.movement);
      if (typeof movement === 'string') return movement;
      const decided = findDecided?.(resource, movement, item.as);
      if (decided === undefined) {
        const refused = await resolveMovement(record, kind, resource, audit, item, findTaker);
        if (refused === undefined) record.show(resource);
        return refused;
      }
      if (BigInt(item.amount ?? 0) > computeRest(movement)) return describeRest(movement);
      return await takeMovement(rules, resource, { ...item, movement: movement.id }, decided);
    },
  };
}

/** Makes the transition of an act, with the movement that it names. @returns why not */
async function takeMovement<K extends Kind, R extends Instructed<K>>(
  rules: InstructedRules<K, R>,
  resource: R,
  item: ActItem<K>,
  what: string,
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
  const transitions: Partial<Record<string, ActTransition<K, R>>> = rules.transitions;
  const { to = [], change = {}, write } = transitions[what]?.(resource, amount) ?? {};
  const audit = buildAudit(item);
  await write?.(audit);
  await rules.record.transition(resource, to, { change, audit, movement, scheduled: true });
  return undefined;
}

async function markFailed<K extends Kind, R extends Instructed<K>>(
  rules: InstructedRules<K, R>,
  resource: R,
  audit: AuditedAct,
  item: ActItem<K>,
): Promise<Refusal | string | null | undefined> {
  const { record, noun, isUnsent, buildQuestion, operatorFailure: change } = rules;
  let interruption: Interruption<K['answer']> | undefined;
  if (buildQuestion !== undefined && item.act.bank_confirmed_not_executed !== true) {
    // Only this function adds one.
    const finding = item.finding as Finding<K['answer']> | undefined;
    interruption = finding;
    if (finding === undefined) {
      // The loop goes on meanwhile; acts return to the inbox with the finding, one for all.
      const { failures, inbox, status } = resource;
      if (failures.push(item) > 1) return null;
      void askBank<K>(resource, buildQuestion(resource), isUnsent(status)).then((found) => {
        for (const each of failures.splice(0)) inbox.push({ ...each, finding: found });
      });
      return null;
    }
    const fault = findFailureFault(finding, resource, noun);
    if (fault !== undefined) {
      record.logActivity(resource, `not marked as failed: ${fault.code}`);
      if (isUnsent(resource.status)) await goOn(rules, resource, finding);
      return fault;
    }
  } else if (isUnsent(resource.status)) {
    // An earlier try, whose state was stale, may have interrupted it.
    item.isInterrupting ||= isUnanswered(resource);
    if (await stopInstructing(resource)) return `The bank has just taken the ${noun}; look again.`;
    interruption = { isInterrupted: item.isInterrupting, instruction: resource.instruction };
  }
  try {
    await record.transition(resource, ['failed'], { change, audit, scheduled: true });
  } catch (error) {
    // Where the state is stale, the act is tried again.
    const isRefused = !(error instanceof StaleState) && isUnsent(resource.status);
    if (isRefused && interruption !== undefined) await goOn(rules, resource, interruption);
    throw error;
  }
  resource.isMarkedFailed = true;
  return undefined;
}

type Interruption<Answer> = Pick<Finding<Answer>, 'answer' | 'isInterrupted' | 'instruction'>;

/** Goes on with an instruction that an act has interrupted. */
async function goOn<K extends Kind, R extends Instructed<K>>(
  rules: InstructedRules<K, R>,
  resource: R,
  { answer, isInterrupted, instruction }: Interruption<K['answer']>,
): Promise<void> {
  if (answer !== undefined) await rules.applyAnswer(resource, answer);
  else if (isInterrupted && instruction === resource.instruction) {
    void instruct(rules, resource, resource.arrivesBy);
  }
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
  const { status } = resource;
  const isInterrupted = isUnsent && isUnanswered(resource);
  const stopping = isUnsent ? stopInTime(resource) : undefined;
  const about = { status, instruction: resource.instruction, isInterrupted };
  const stopped = await stopping;
  if (stopped === 'taken') return { ...about, outcome: 'held', isInterrupted: false };
  if (stopped === 'in_progress') return { ...about, outcome: 'unreachable' };
  const cancelAnswer = await unlessFailed(question.cancel());
  if (cancelAnswer?.outcome === 'cancelled') return { ...about, outcome: 'not_executed' };
  const isTooLate = cancelAnswer?.outcome === 'too_late';
  const answer = await unlessFailed(question.lookUp());
  if (answer === undefined) return { ...about, outcome: isTooLate ? 'held' : 'unreachable' };
  if (!isHeld(answer)) {
    if (isTooLate) return { ...about, outcome: 'held' };
    const mayArrive = answer.outcome === 'not_found' && Date.now() < resource.arrivesBy;
    return { ...about, outcome: mayArrive ? 'may_arrive' : 'not_executed' };
  }
  resource.bankReference = getReference(encodeReference(answer)) || resource.bankReference;
  return { ...about, outcome: 'held', answer };
}

function isUnanswered({ unanswered, instruction }: InstructionState): boolean {
  return unanswered?.number === instruction;
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
