import { ActivityFailure, sleep } from '@temporalio/workflow';

/** An answer that tells what the bank did with an instruction, or that it was not given. */
export interface BankAnswer {
  outcome: string;
  /** Name that the bank, or the chain, has for it. */
  bank_reference?: string;
  transaction_id?: string;
}

type NotFound = { outcome: 'not_found' };

/** An instruction to a bank that moves money, under one id. */
export interface Instruction<Answer extends BankAnswer> {
  /** Noun for summaries and the activity log, such as `refund`. */
  name: string;
  /** Makes one attempt. */
  send: () => Promise<Answer>;
  /** Asks the bank what it knows, for as long as it takes. */
  lookUp: () => Promise<Answer | NotFound>;
  /** Whether an answer is no longer needed. */
  isOver: () => boolean;
  log: (line: string) => void;
}

/** An earlier instruction that may have arrived. */
export interface Earlier {
  /** In ms since the epoch: until then a bank that does not know it may still be reading it. */
  arrivesBy: number;
}

/** The first wait; each further one doubles, so that months of attempts fit into a history. */
const WAIT_MS_MIN = 1_000;
const LOOK_UP_WAIT_MS_MIN = 60_000;
const WAIT_MS_MAX = 3_600_000;

/**
 * Instructs until the bank has answered or no answer is needed. An attempt that ends without an
 * answer may have arrived: the bank is asked what it knows, and the instruction is sent again, under
 * the same id, only when the bank does not know it.
 * @returns undefined when no answer is needed any more
 */
export async function instruct<Answer extends BankAnswer>(
  instruction: Instruction<Answer>,
  earlier: Earlier | undefined,
): Promise<Answer | undefined> {
  const { name, isOver, log } = instruction;
  let mayHaveArrived = earlier !== undefined;
  let isFirstIteration = mayHaveArrived;
  let wait = WAIT_MS_MIN;
  while (!isOver()) {
    const answer = mayHaveArrived ? await lookUp(instruction) : await send(instruction);
    // Also when it is over: an answer that comes too late must not be lost.
    if (answer !== undefined && !isUnknown(answer)) return answer;
    if (isOver()) return undefined;
    if (answer === undefined) mayHaveArrived = true;
    else if (earlier !== undefined && Date.now() < earlier.arrivesBy) {
      // A connector may still execute it: the same answer counts once nothing can arrive any more.
      await sleep(earlier.arrivesBy - Date.now(), { summary: `Ask about the ${name} again` });
      continue;
    } else if (isFirstIteration) {
      log('The bank does not know the instruction; it is sent.');
      mayHaveArrived = false;
    } else {
      log('The instruction never reached the bank; it is sent again.');
      await sleep(wait, { summary: `Send the ${name} again` });
      mayHaveArrived = false;
      wait = Math.min(wait * 2, WAIT_MS_MAX);
    }
    isFirstIteration = false;
  }
  return undefined;
}

function isUnknown<Answer extends BankAnswer>(answer: Answer | NotFound): answer is NotFound {
  return answer.outcome === 'not_found';
}

/** Undefined: whether it arrived is unknown. */
async function send<Answer extends BankAnswer>({
  send,
  log,
}: Instruction<Answer>): Promise<Answer | undefined> {
  try {
    return await send();
  } catch (error) {
    if (!(error instanceof ActivityFailure)) throw error;
    log('The instruction ended without an answer; the bank is asked what it knows of it.');
    return undefined;
  }
}

/** Undefined when an answer is no longer needed. */
async function lookUp<Answer extends BankAnswer>(
  instruction: Instruction<Answer>,
): Promise<Answer | NotFound | undefined> {
  const { name, isOver, log } = instruction;
  let wait = LOOK_UP_WAIT_MS_MIN;
  while (!isOver()) {
    try {
      return await instruction.lookUp();
    } catch (error) {
      if (!(error instanceof ActivityFailure)) throw error;
      log(`The connector refused to look the ${name} up; it is asked again later.`);
    }
    await sleep(wait, { summary: `Look the ${name} up again` });
    wait = Math.min(wait * 2, WAIT_MS_MAX);
  }
  return undefined;
}
