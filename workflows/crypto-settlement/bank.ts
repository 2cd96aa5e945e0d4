import type {
  CryptoConnectorActivities,
  SettlementAnswer,
  SettlementInstruction,
} from '../../connectors/contract/crypto';
import { moneyActivities } from '../shared/bank-activities';
import type { Earlier } from '../shared/bank-attempts';
import { currentOnce, giveInstruction } from '../shared/bank-instruction';
import { record, type Settlement } from './life';

/**
 * Tells the connector to send it; its answer goes into the inbox.
 * @param earlier where an earlier instruction may have arrived
 * @param writtenAt where this run has just written the record. @see currentOnce
 */
export function instructSettlement(
  settlement: Settlement,
  earlier?: Earlier,
  writtenAt?: number,
): Promise<void> {
  const { connector } = settlement.facts;
  const { once, patient } = moneyActivities<CryptoConnectorActivities>(connector, 'settlement');
  const { id: crypto_settlement_id } = settlement;
  return giveInstruction<SettlementAnswer>(
    settlement,
    {
      name: 'settlement',
      isCurrent: currentOnce(writtenAt, () => record.isCurrent(settlement)),
      outdated: () => settlement.inbox.push({ kind: 'outdated' }),
      send: () => once.sendSettlement(instructionOf(settlement)),
      lookUp: () => patient.lookUpSettlement({ crypto_settlement_id }),
      isOver: () => settlement.status !== 'pending',
      tell: (line) => record.tell(settlement, line),
      answered: (answer) => settlement.inbox.push({ kind: 'answer', answer }),
    },
    earlier,
  );
}

function instructionOf({ facts, version }: Settlement): SettlementInstruction {
  const { crypto_settlement_id, asset, network, amount, wallet_address, livemode } = facts;
  return { crypto_settlement_id, version, asset, network, amount, wallet_address, livemode };
}
