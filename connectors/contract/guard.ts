import { isInFlight, LIFECYCLES, type ResourceStores } from '../../src/lifecycles';
import type { Stores } from '../../src/store';

/** An instruction that moves money, as far as the record is concerned. */
interface Given {
  resource: 'refund' | 'payout' | 'crypto_settlement';
  id: string;
  /** Version that the instruction carries. */
  version: number | undefined;
}

/** Resources whose money leaves the merchant's reach; a refund goes back where it came from. */
const LEAVING: ReadonlySet<string> = new Set<Given['resource']>(['payout', 'crypto_settlement']);

/**
 * Holds an instruction against the record, as the last step before the bank is told: a workflow that
 * was restored or reset may ask for what an operator has called off since. An instruction that has
 * arrived before is answered from the bank's own book instead.
 * What leaves a frozen account is held, as are payouts and settlements of coins: it is given again,
 * later and later, until the account is free.
 * @see docs/connectors.md#one-instruction-one-effect
 * @returns a function that throws Error when the resource has ended, stands at another version, is
 *   not there or is held: let the activity fail, and the service looks again
 */
export function createInstructionGuard(stores: ResourceStores & Pick<Stores, 'accounts'>) {
  return async ({ resource, id, version }: Given): Promise<void> => {
    const found = await LIFECYCLES[resource].get(stores, id);
    if (found === null) throw new Error(`There is no such ${resource} in the record.`);
    const isCurrent = version === undefined || version === found.version;
    if (isCurrent && isInFlight(resource, found.status)) {
      if (LEAVING.has(resource)) await refuseFrozen(stores, found.account_id);
      return;
    }
    throw new Error(
      `The ${resource} is ${found.status} at version ${found.version} in the record: not instructed.`,
    );
  };
}

async function refuseFrozen({ accounts }: Pick<Stores, 'accounts'>, id: string): Promise<void> {
  const account = await accounts.get(id);
  if (account?.frozen) throw new Error('The account is frozen: not instructed.');
}

export type InstructionGuard = ReturnType<typeof createInstructionGuard>;
