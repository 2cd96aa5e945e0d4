import { isInFlight, LIFECYCLES, type ResourceStores } from '../../src/lifecycles';
import type { Stores } from '../../src/store';
import type { Outdated } from './activities';

/** An instruction that moves money, as far as the document is concerned. */
interface InstructionRef {
  resource: 'refund' | 'payout' | 'crypto_settlement';
  id: string;
  /** Version that the instruction carries. */
  version: number;
}

/** Resources whose money leaves the merchant's reach; a refund goes back where it came from. */
const OUTGOING_RESOURCES: ReadonlySet<string> = new Set<InstructionRef['resource']>([
  'payout',
  'crypto_settlement',
]);

/**
 * Compares an instruction with the document, as the last step before the bank is instructed: a
 * workflow that was restored or reset may ask for what an operator has called off since. An
 * instruction that has arrived before is answered from the bank's own book instead.
 * Payouts and settlements of a frozen account are held: the service instructs again, at growing
 * intervals, until the account is free.
 * @see docs/connectors.md#one-instruction-one-effect
 * @returns a function that returns undefined where the bank may be instructed, and else the answer of
 *   the activity: the document is final or has a later version. It throws Error when the document is
 *   missing or behind its workflow (a restored database), or held: let the activity fail
 */
export function createInstructionGuard(stores: ResourceStores & Pick<Stores, 'accounts'>) {
  return async ({ resource, id, version }: InstructionRef): Promise<Outdated | undefined> => {
    const document = await LIFECYCLES[resource].get(stores, id);
    if (document === null || document.version < version) {
      throw new Error(`The document of ${resource} ${id} is behind its workflow: not instructed.`);
    }
    if (document.version > version || !isInFlight(resource, document.status)) {
      return { outcome: 'outdated' };
    }
    if (OUTGOING_RESOURCES.has(resource)) await refuseFrozen(stores, document.account_id);
    return undefined;
  };
}

async function refuseFrozen({ accounts }: Pick<Stores, 'accounts'>, id: string): Promise<void> {
  const account = await accounts.get(id);
  if (account?.frozen) throw new Error('The account is frozen: not instructed.');
}

export type InstructionGuard = ReturnType<typeof createInstructionGuard>;
