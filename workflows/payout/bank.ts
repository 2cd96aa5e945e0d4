import type {
  PayoutAnswer,
  PayoutInstruction,
  PayoutLookup,
} from '../../connectors/contract/activities';
import { isUnsent } from '../../src/domain/payout';
import { moneyActivities } from '../shared/bank-activities';
import type { Earlier } from '../shared/bank-attempts';
import { currentOnce, giveInstruction } from '../shared/bank-instruction';
import { type Payout, record } from './life';

/**
 * Tells the bank to pay out; its answer goes into the inbox.
 * @param earlier where an earlier instruction may have arrived
 * @param writtenAt where this run has just written the record. @see currentOnce
 */
export function instructPayout(
  payout: Payout,
  earlier?: Earlier,
  writtenAt?: number,
): Promise<void> {
  const { once, patient } = moneyActivities(payout.facts.connector, 'payout');
  return giveInstruction<PayoutAnswer>(
    payout,
    {
      name: 'payout',
      isCurrent: currentOnce(writtenAt, () => record.isCurrent(payout)),
      outdated: () => payout.inbox.push({ kind: 'outdated' }),
      send: async () => remember(payout, await once.sendPayout(instructionOf(payout))),
      lookUp: async () => remember(payout, await patient.lookUpPayout({ payout_id: payout.id })),
      isOver: () => !isUnsent(payout.status),
      tell: (line) => record.tell(payout, line),
      answered: (answer) => payout.inbox.push({ kind: 'answer', answer }),
    },
    earlier,
  );
}

/** Keeps the bank's own name for the payout: a callback may overtake the answer. */
function remember<Answer extends PayoutLookup>(payout: Payout, answer: Answer): Answer {
  const heard: PayoutLookup = answer;
  if ('bank_reference' in heard) payout.bankReference = heard.bank_reference;
  return answer;
}

function instructionOf({ facts, version }: Payout): PayoutInstruction {
  const { payout_id, recipient_id, amount, currency, method, livemode } = facts;
  return { payout_id, version, recipient_id, amount, currency, method, livemode };
}
