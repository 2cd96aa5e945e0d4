import type { PayoutInstruction } from '../../connectors/contract/activities';
import { isUnsent } from '../../src/domain/payout/payout';
import { moneyActivities } from '../shared/bank-activities';
import type { Earlier } from '../shared/bank-attempts';
import { giveInstruction } from '../shared/bank-instruction';
import { type Payout, record } from './state';

/** Instructs the bank to pay out. @see giveInstruction */
export function instructPayout(payout: Payout, earlier?: Earlier): Promise<void> {
  const { once, patient } = moneyActivities(payout.facts.connector, 'payout');
  const instruction = {
    name: 'payout',
    send: () => once.sendPayout(buildInstruction(payout)),
    lookUp: () => patient.lookUpPayout({ payout_id: payout.id }),
    isOver: () => !isUnsent(payout.status),
    log: (line: string) => record.logActivity(payout, line),
  };
  return giveInstruction(payout, instruction, earlier);
}

function buildInstruction({ facts, version }: Payout): PayoutInstruction {
  const { payout_id, amount, currency, method, livemode } = facts;
  return { payout_id, version, amount, currency, method, livemode };
}
