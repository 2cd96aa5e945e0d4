import type { CallbackResource } from '../../src/domain/callback/callback';
import { isInFlight, LIFECYCLES, type ResourceStores } from '../../src/lifecycles';
import type { Stores } from '../../src/store';
import type { Outdated } from './activities';

interface InstructionRef {
  resource: CallbackResource;
  id: string;
  version: number;
}

/**
 * Compares an instruction with the document, right before the bank is instructed: a restored or
 * reset workflow may request what an operator has canceled since.
 * @see docs/connectors.md#one-instruction-one-effect
 * @returns function that returns `outdated` if the document is final or newer, and throws Error if
 *   it is missing, behind its workflow (a restored database) or of a frozen account, so that the
 *   service tries again
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
    if (!LIFECYCLES[resource].isOutgoing) return undefined;
    const account = await stores.accounts.get(document.account_id);
    if (account?.frozen) throw new Error('The account is frozen: not instructed.');
    return undefined;
  };
}

export type InstructionGuard = ReturnType<typeof createInstructionGuard>;
