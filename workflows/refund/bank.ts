import type { RefundAnswer, RefundInstruction } from '../../connectors/contract/activities';
import { isFinalRefund } from '../../src/domain/refund';
import { moneyActivities } from '../shared/bank-activities';
import type { Earlier } from '../shared/bank-attempts';
import { currentOnce, giveInstruction } from '../shared/bank-instruction';
import { type Refund, record } from './life';

/**
 * Tells the bank to send the money; its answer goes into the inbox.
 * @param earlier where an earlier run may have done so
 * @param writtenAt where this run has just written the record. @see currentOnce
 */
export function instructRefund(
  refund: Refund,
  earlier?: Earlier,
  writtenAt?: number,
): Promise<void> {
  const { once, patient } = moneyActivities(refund.facts.connector, 'refund');
  return giveInstruction<RefundAnswer>(
    refund,
    {
      name: 'refund',
      isCurrent: currentOnce(writtenAt, () => record.isCurrent(refund)),
      outdated: () => refund.inbox.push({ kind: 'outdated' }),
      send: () => once.sendRefund(instructionOf(refund)),
      lookUp: () => patient.lookUpRefund({ refund_id: refund.id }),
      isOver: () => isFinalRefund(refund.status),
      tell: (line) => record.tell(refund, line),
      answered: (answer) => refund.inbox.push({ kind: 'answer', answer }),
    },
    earlier,
  );
}

function instructionOf({ facts, version }: Refund): RefundInstruction {
  const { refund_id, payment_id, payment_bank_reference } = facts;
  const { amount, currency, method, livemode } = facts;
  const money = { amount, currency, method, livemode };
  return { refund_id, version, payment_id, payment_bank_reference, ...money };
}
