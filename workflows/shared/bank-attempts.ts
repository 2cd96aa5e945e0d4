import { ActivityFailure, isCancellation, sleep } from '@temporalio/workflow';

export interface BankAnswer {
  outcome: string;
  bank_reference?: string;
  transaction_id?: string;
}

export type NotFound = { outcome: 'not_found' };

export interface Instruction<Answer extends BankAnswer> {
  /** Noun for summaries, such as `refund`. */
  name: string;
  send: () => Promise<Answer>;
  lookUp: () => Promise<Answer | NotFound>;
  isOver: () => boolean;
  log: (line: string) => void;
}

export interface Earlier {
  /** Time until which the bank may still read it; ms since the epoch. */
  arrivesBy: number;
}

/** First wait; each further one doubles. */
const WAIT_MS_MIN = 1_000;
const LOOK_UP_WAIT_MS_MIN = 60_000;
const WAIT_MS_MAX = 3_600_000;

/**
 * An attempt without an answer may have arrived: it is sent again only when the bank does not know
 * it.
 * @returns undefined when no answer is needed
 * @throws CancelledFailure or ActivityFailure when its scope is cancelled
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
    // Also when it is over: a late answer must not be lost.
    if (answer !== undefined && !isUnknown(answer)) return answer;
    if (isOver()) return undefined;
    if (answer === undefined) mayHaveArrived = true;
    else if (earlier !== undefined && Date.now() < earlier.arrivesBy) {
      // A connector may still execute it, so the answer is not final yet.
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

/** @returns undefined when it may have arrived */
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

async function lookUp<Answer extends BankAnswer>(
  instruction: Instruction<Answer>,
): Promise<Answer | NotFound | undefined> {
  const { name, isOver, log } = instruction;
  let wait = LOOK_UP_WAIT_MS_MIN;
  while (!isOver()) {
    try {
      return await instruction.lookUp();
    } catch (error) {
      if (!(error instanceof ActivityFailure) || isCancellation(error)) throw error;
      log(`The connector refused to look the ${name} up; it is looked up again later.`);
    }
    await sleep(wait, { summary: `Look the ${name} up again` });
    wait = Math.min(wait * 2, WAIT_MS_MAX);
  }
  return undefined;
}
