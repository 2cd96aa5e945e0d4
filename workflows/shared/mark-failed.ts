import { ActivityFailure, condition } from '@temporalio/workflow';
import type { BankAnswer, NotFound } from './bank-attempts';
import { stopInstructing } from './bank-instruction';
import type { BankQuestion, Finding, Instructed, Kind } from './instructed-rules';

/** Time for an attempt in progress; with the question shorter than an operator waits. */
const SENDS_MS_MAX = 4_000;

/**
 * Asks whether the bank holds an instruction, so that its money is not given back and then sent. An
 * instruction in progress ends first.
 * @see docs/operators.md#send-an-update
 */
export async function askBank<K extends Kind>(
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
  resource.bankReference = answer.bank_reference ?? answer.transaction_id ?? resource.bankReference;
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

export function findFailureFault(
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
