import type { RefundInstruction } from '../../connectors/contract/activities';
import { isFinalRefund } from '../../src/domain/refund/refund';
import { moneyActivities } from '../shared/bank-activities';
import type { Earlier } from '../shared/bank-attempts';
import { giveInstruction } from '../shared/bank-instruction';
import { type Refund, record } from './state';

/** Instructs the bank to refund. @see giveInstruction */
export function instructRefund(refund: Refund, earlier?: Earlier): Promise<void> {
  const { once, patient } = moneyActivities(refund.facts.connector, 'refund');
  const instruction = {
    name: 'refund',
    send: () => once.sendRefund(buildInstruction(refund)),
    lookUp: () => patient.lookUpRefund({ refund_id: refund.id }),
    isOver: () => isFinalRefund(refund.status),
    log: (line: string) => record.logActivity(refund, line),
  };
  return giveInstruction(refund, instruction, earlier);
}

function buildInstruction({ facts, version }: Refund): RefundInstruction {
  const { refund_id, payment_id, payment_bank_reference } = facts;
  const { amount, currency, method, livemode } = facts;
  const money = { amount, currency, method, livemode };
  return { refund_id, version, payment_id, payment_bank_reference, ...money };
}
