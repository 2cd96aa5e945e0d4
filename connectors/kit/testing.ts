import type { Evidence } from '../../src/domain/dispute/evidence';
import type { RecipientDetails } from '../../src/domain/payout/recipient';
import { createBankClient } from './bank-client';
import type { EvidenceTools, PayoutTools, Settings, Tools } from './definition';

const NOBODY: RecipientDetails = {
  type: 'bank_account',
  first_name: 'Ada',
  last_name: 'Lovelace',
  card_number: null,
  expiry_month: null,
  expiry_year: null,
  date_of_birth: null,
  iban: null,
  bic: null,
  sort_code: null,
  account_number: null,
  address_line1: null,
  city: null,
  postal_code: null,
  country: null,
  email: null,
  reference: null,
  parent_payment_reference: null,
};

const EVIDENCE: Evidence = {
  explanation: 'It was delivered.',
  customer_reference: null,
  shipped_at: null,
  carrier: null,
  tracking_number: null,
  refund_reference: null,
};

/**
 * Creates the tools for a connector's own tests. Calls reach a bank, such as a fake one, as in a
 * running connector.
 */
export function createTestTools<S extends Settings>(
  settings: Tools<S>['settings'],
  recipient: Partial<RecipientDetails> = {},
): PayoutTools<S> & EvidenceTools<S> {
  const none = () => undefined;
  const log = { info: none, warn: none, error: none } as Tools<S>['log'];
  const client = createBankClient({ needsTls: false, count: none });
  return {
    ...{ settings, log, call: client(), now: () => new Date() },
    recipient: async () => ({ ...NOBODY, ...recipient }),
    reference: async () => null,
    evidence: async () => EVIDENCE,
  };
}
