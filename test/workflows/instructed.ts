import { ApplicationFailure } from '@temporalio/common';
import { scriptedBank } from '../support/workflow-setting';
import { MONEY, type Tracked, type useLifecycles } from './lifecycles';

/** Answers of a connector to an instruction, and to a look-up of one. */
type Step =
  | 'loses the connection'
  | 'gives up'
  | 'taken'
  | 'refused'
  | 'not found'
  | (() => Promise<Step>);

/** Steps in turn, of which the last is repeated. */
interface Script {
  send: Step[];
  lookUp?: Step[];
}

type Lifecycles = ReturnType<typeof useLifecycles>;
type Opened = Tracked & {
  opened: { status: string; version: number };
  money: () => Promise<object>;
};
type Started = Omit<Opened, 'opened'>;
type Bank = ReturnType<typeof scriptedBank>;

/** Refunds and payouts, which instruct a bank: what holds for both, in the words of each. */
interface Instructed {
  resource: 'refund' | 'payout';
  bank: (script: Script) => Bank;
  /** Runs a story of one that has the bank's answer, where one comes soon. */
  open: (at: Lifecycles, bank: Bank, story: (opened: Opened) => Promise<void>) => Promise<void>;
  /** Runs a story of one that nobody waits for. */
  start: (at: Lifecycles, bank: Bank, story: (started: Started) => Promise<void>) => Promise<void>;
  /** Waits until the bank's word that it takes the instruction has been applied. */
  isTaken: (subject: Started) => Promise<unknown>;
  /** Status when the bank has taken the instruction. */
  taken: { status: string; version: number };
  /** The callback that ends it well, and its status then. */
  done: 'settled' | 'completed';
  money: { untouched: object; taken: object };
  /** Makes `mark_failed` ask nothing. */
  confirmation: object;
}

export const REFUNDS: Instructed = {
  resource: 'refund',
  bank: ({ send, lookUp = ['not found'] }) =>
    scriptedBank({
      sendRefund: answerInOrder('accepted', 'sent', send, fail),
      lookUpRefund: answerInOrder('accepted', 'looked-up', lookUp, findNothing),
    }),
  open: ({ withRefund }, bank, story) => withRefund(bank, story),
  start: ({ withRefund }, bank, story) => withRefund(bank, story),
  isTaken: ({ shows }) => shows('instruction at the bank: accepted'),
  taken: { status: 'processing', version: 1 },
  done: 'settled',
  money: { untouched: { refunded: 0, available: 1_050 }, taken: { refunded: 1_050, available: 0 } },
  confirmation: {},
};

export const PAYOUTS: Instructed = {
  resource: 'payout',
  bank: ({ send, lookUp = ['not found'] }) =>
    scriptedBank({
      sendPayout: answerInOrder('sent', 'sent', send, fail),
      lookUpPayout: answerInOrder('sent', 'looked-up', lookUp, findNothing),
    }),
  open: ({ withPayout }, bank, story) => withPayout(bank, story),
  start: ({ withUnsentPayout }, bank, story) => withUnsentPayout(bank, story),
  isTaken: ({ becomes }) => becomes({ status: 'sent' }),
  taken: { status: 'sent', version: 3 },
  done: 'completed',
  money: { untouched: MONEY.untouched, taken: MONEY.captured },
  confirmation: { bank_confirmed_not_executed: true },
};

export const INSTRUCTED = [REFUNDS, PAYOUTS];

/** Instructions and look-ups that a bank got, with their ids. */
export function instructions({ told }: Bank): string[] {
  return told
    .filter((line) => line !== 'openSession')
    .map((line) => line.replace(/^(send|lookUp)(Refund|Payout)/, '$1'));
}

/** Answers under a reference that says by which call of its kind it was given, such as `sent-2`. */
function answerInOrder<Taken extends string, None>(
  taken: Taken,
  reference: string,
  steps: Step[],
  answerNone: () => None,
) {
  let calls = 0;
  return async () => {
    const step = steps[calls] ?? steps.at(-1) ?? 'not found';
    calls += 1;
    const bank_reference = `${reference}-${calls}`;
    const word = await play(step);
    if (word === 'not found') return answerNone();
    if (word === 'refused') return { outcome: 'refused', code: 'no', message: 'No.' } as const;
    return { outcome: taken, bank_reference };
  };
}

const findNothing = () => ({ outcome: 'not_found' }) as const;

/** Only a look-up finds nothing. */
function fail(): never {
  throw new Error('The script has no answer.');
}

async function play(step: Step): Promise<'taken' | 'refused' | 'not found'> {
  if (typeof step === 'function') return await play(await step());
  if (step === 'loses the connection') throw new Error('the connection was lost');
  if (step === 'gives up') throw ApplicationFailure.nonRetryable('unexpected answer');
  return step;
}
