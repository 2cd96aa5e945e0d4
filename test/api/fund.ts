import { fundAccount } from '../support/factories';
import type { Service } from '../support/service';

/** Money from outside to a balance account. @param amount minor units of EUR */
export const fund = (
  service: Service,
  account: { account_id: string },
  amount: number,
  balance_account = 'main',
): Promise<void> => fundAccount(service, account, { amount, balance_account });
