import type {
  CryptoConnectorActivities,
  SettlementInstruction,
} from '../../connectors/contract/crypto';
import { moneyActivities } from '../shared/bank-activities';
import type { Earlier } from '../shared/bank-attempts';
import { giveInstruction } from '../shared/bank-instruction';
import { record, type Settlement } from './state';

/** Instructs the connector to send the settlement. @see giveInstruction */
export function instructSettlement(settlement: Settlement, earlier?: Earlier): Promise<void> {
  const { connector } = settlement.facts;
  const { once, patient } = moneyActivities<CryptoConnectorActivities>(connector, 'settlement');
  const { id: crypto_settlement_id } = settlement;
  const instruction = {
    name: 'settlement',
    send: () => once.sendSettlement(buildInstruction(settlement)),
    lookUp: () => patient.lookUpSettlement({ crypto_settlement_id }),
    isOver: () => settlement.status !== 'pending',
    log: (line: string) => record.logActivity(settlement, line),
  };
  return giveInstruction(settlement, instruction, earlier);
}

function buildInstruction({ facts, version }: Settlement): SettlementInstruction {
  const { crypto_settlement_id, asset, network, amount, wallet_address, livemode } = facts;
  return { crypto_settlement_id, version, asset, network, amount, wallet_address, livemode };
}
