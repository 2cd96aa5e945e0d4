import type { FeeBearer } from '../../src/domain/merchants/acquirer-fee';
import type { Stores } from '../../src/store';

/** Makes a merchant who may have no account bear what acquirers keep, or the service. */
export async function setFeeBearer(
  { accounts }: Pick<Stores, 'accounts'>,
  account_id: string,
  bearer: FeeBearer,
): Promise<void> {
  if ((await accounts.get(account_id)) === null) {
    await accounts.insert({
      ...{ _id: account_id, name: 'Shop', crypto: false, enabled_methods: [] },
      dashboard: { email: `${account_id}@shop.example` },
      created_at: new Date().toISOString(),
    });
  }
  await accounts.setAcquirerFee(account_id, bearer);
}
