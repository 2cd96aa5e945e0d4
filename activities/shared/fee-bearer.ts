import type { ClientSession } from 'mongodb';
import type { FeeBearer } from '../../src/domain/merchants/acquirer-fee';
import type { Stores } from '../../src/store';

/**
 * Reads who bears a fee that is booked now.
 * @param report its `fee_bearer` says who bore it when a history was written
 * @returns undefined without a fee
 */
export async function findFeeBearer(
  { accounts }: Pick<Stores, 'accounts'>,
  { account_id }: { account_id: string },
  { fee = 0, fee_bearer }: { fee?: number | undefined; fee_bearer?: FeeBearer | undefined },
  session: ClientSession,
): Promise<FeeBearer | undefined> {
  if (fee === 0) return undefined;
  return fee_bearer ?? (await accounts.get(account_id, session))?.acquirer_fee ?? 'service';
}
