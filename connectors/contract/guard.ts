import { isInFlight, LIFECYCLES, type ResourceStores } from '../../src/lifecycles';

/** An instruction that moves money, as far as the record is concerned. */
interface Given {
  resource: 'refund' | 'payout' | 'crypto_settlement';
  id: string;
  /** Version that the instruction carries. */
  version: number | undefined;
}

/**
 * Holds an instruction against the record, as the last step before the bank is told: a workflow that
 * was restored or reset may ask for what an operator has called off since. An instruction that has
 * arrived before is answered from the bank's own book instead.
 * @see docs/connectors.md#one-instruction-one-effect
 * @returns a function that throws Error when the resource has ended, stands at another version, or is
 *   not there: let the activity fail, and the service looks again
 */
export function createInstructionGuard(stores: ResourceStores) {
  return async ({ resource, id, version }: Given): Promise<void> => {
    const found = await LIFECYCLES[resource].get(stores, id);
    if (found === null) throw new Error(`There is no such ${resource} in the record.`);
    const isCurrent = version === undefined || version === found.version;
    if (isCurrent && isInFlight(resource, found.status)) return;
    throw new Error(
      `The ${resource} is ${found.status} at version ${found.version} in the record: not instructed.`,
    );
  };
}

export type InstructionGuard = ReturnType<typeof createInstructionGuard>;
