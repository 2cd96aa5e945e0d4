import type { MongoClient } from 'mongodb';
import { inTransaction, isDuplicateKey } from '../../src/mongo';
import type { RefundAnswer, RefundInstruction, RefundLookup } from '../contract/activities';
import { type RefundBehaviour, refundBehaviourOf } from './magic-amounts';
import type { Outbox } from './outbox';
import { planRefund } from './plan';
import type { BankRefund, BankRefundStore } from './refunds';

export interface RefundActivityDeps {
  mongo: MongoClient;
  refunds: BankRefundStore;
  outbox: Outbox;
  /** Whether settlements follow by themselves. */
  autoplay: boolean;
}

/**
 * Book and callbacks in one transaction; a repeat answers what the book says.
 * @throws Error where the sandbox plays that the instruction, or the answer to it, got lost
 */
export async function sendRefund(
  deps: RefundActivityDeps,
  instruction: RefundInstruction,
): Promise<RefundAnswer> {
  if (instruction.livemode) {
    const message = 'The sandbox bank sends no live refunds.';
    return { outcome: 'refused', code: 'live_not_supported', message };
  }
  const behaviour = refundBehaviourOf(instruction.amount);
  if (behaviour === 'instruction_lost' && (await deps.refunds.lose(instruction))) {
    throw new Error('The instruction got lost on its way to the bank.');
  }
  const { refund, made } = await takeOnce(deps, instruction, refusalOf(behaviour));
  if (made && behaviour === 'answer_lost') throw new Error('The answer of the bank got lost.');
  return answerOf(refund);
}

export async function lookUpRefund(
  { refunds }: RefundActivityDeps,
  refund_id: string,
): Promise<RefundLookup> {
  const refund = await refunds.get(refund_id);
  return refund === null || refund.status === 'lost' ? { outcome: 'not_found' } : answerOf(refund);
}

/** The refund as its first instruction made it; `made` when that is this one. */
async function takeOnce(
  { mongo, refunds, outbox, autoplay }: RefundActivityDeps,
  instruction: RefundInstruction,
  refusal: BankRefund['refusal'],
): Promise<{ refund: BankRefund; made: boolean }> {
  const { refund_id: resource_id, amount } = instruction;
  try {
    const refund = await inTransaction(mongo, async (session) => {
      const taken = await refunds.take(instruction, refusal, session);
      const about = {
        resource: 'refund',
        resource_id,
        bank_reference: taken.bank_reference,
      } as const;
      await outbox.add(about, planRefund(amount, autoplay), session);
      return taken;
    });
    return { refund, made: true };
  } catch (error) {
    const refund = isDuplicateKey(error) ? await refunds.get(resource_id) : null;
    if (refund === null) throw error;
    return { refund, made: false };
  }
}

function refusalOf(behaviour: RefundBehaviour): BankRefund['refusal'] {
  if (behaviour !== 'refused') return null;
  const message = 'The bank refused the refund: it does not send back this amount.';
  return { code: 'refund_refused', message };
}

/** Of a refund that arrived: what it was answered, whatever became of it since. */
function answerOf({ bank_reference, refusal }: BankRefund): RefundAnswer {
  return refusal === null
    ? { outcome: 'accepted', bank_reference }
    : { outcome: 'refused', ...refusal };
}
