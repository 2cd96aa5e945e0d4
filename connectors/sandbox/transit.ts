import type { ConnectorActivities } from '../contract/activities';
import type { BankRefusal, Book, BookEntry } from './book';
import { getBehavior, PAYOUT_MAGIC_AMOUNTS, REFUND_MAGIC_AMOUNTS } from './magic-amounts';

interface TransitDeps {
  refunds: Book;
  payouts: Book;
  onOwnPayment: (payment_id: string) => void;
}

/**
 * Simulates the transit of an instruction to the bank: one of some amounts gets lost the first time,
 * and one of live is refused.
 */
export function simulateTransit(
  bank: ConnectorActivities,
  { refunds, payouts, onOwnPayment }: TransitDeps,
): ConnectorActivities {
  return {
    ...bank,
    openSession: async (input) => {
      const refusal = refuseLive('takes no live payments');
      if (input.livemode) return { outcome: 'declined', ...refusal };
      onOwnPayment(input.payment_id);
      return await bank.openSession(input);
    },
    sendRefund: async (input) => {
      if (input.livemode) return { outcome: 'refused', ...refuseLive('sends no live refunds') };
      const isLost = getBehavior(REFUND_MAGIC_AMOUNTS, input.amount) === 'instruction_lost';
      if (isLost) await loseOnce(refunds, input.refund_id, input);
      return await bank.sendRefund(input);
    },
    sendPayout: async (input) => {
      if (input.livemode) return { outcome: 'refused', ...refuseLive('sends no live payouts') };
      const isLost = getBehavior(PAYOUT_MAGIC_AMOUNTS, input.amount) === 'instruction_lost';
      if (isLost) await loseOnce(payouts, input.payout_id, input);
      return await bank.sendPayout(input);
    },
  };
}

function refuseLive(what: string): BankRefusal {
  return { code: 'live_not_supported', message: `The sandbox bank ${what}.` };
}

/** @throws Error for the first instruction of this id, as if it had never arrived */
async function loseOnce(
  book: Book,
  id: string,
  instruction: BookEntry['instruction'],
): Promise<void> {
  if (!(await book.lose(id, instruction))) return;
  throw new Error('The instruction got lost in transit to the bank.');
}
