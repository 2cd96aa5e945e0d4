import { z } from 'zod';
import type { Customer, KeptCustomer, SealedCustomer } from '../domain/creation';
import { envOf } from '../domain/environment';
import { type DataKey, importDataKey, newDataKey, openUnder, sealUnder } from '../keys/data-key';
import { SealError, type Sealed, type Sealer } from '../keys/seal';
import type { Logger } from '../log';
import { type AccountStore, payerKeyOwner } from '../store/accounts';
import type { KeyOwner } from '../store/keys';

const nullable = z.string().nullable();
const Names = z.object({ email: nullable, first_name: nullable, last_name: nullable });

/** Most data keys that a process has in hand. */
const KEYS_MAX = 10_000;

export interface PayerDeps {
  accounts: Pick<AccountStore, 'known' | 'keepPayerKey'>;
  sealer: Sealer;
  log: Pick<Logger, 'error'>;
}

export type Payers = ReturnType<typeof createPayers>;

/** Payment whose payer is opened. */
type Paid = KeyOwner & { _id: string; customer: KeptCustomer };

/**
 * Seals and opens payers' names and e-mail addresses under one data key for each account and
 * environment, which is sealed by the service's ring. The merchant's own reference stays as it is.
 * @see docs/operations.md#personal-data
 */
export function createPayers(deps: PayerDeps) {
  const opened = new Map<Sealed, Promise<DataKey>>();

  /** @throws SealError when no key of the ring opens it */
  const openedKey = async (sealed: Sealed, owner: KeyOwner): Promise<DataKey> => {
    const known = opened.get(sealed);
    if (known !== undefined) return await known;
    const key = deps.sealer.open(sealed, payerKeyOwner(owner)).then(importDataKey);
    const [oldest] = opened.keys();
    if (opened.size >= KEYS_MAX && oldest !== undefined) opened.delete(oldest);
    opened.set(sealed, key);
    try {
      return await key;
    } catch (error) {
      opened.delete(sealed);
      throw error;
    }
  };

  return {
    /** @throws KeyRingError, SealError; Error when there is no such account */
    seal: async (owner: KeyOwner, payment_id: string, customer: Customer) => {
      const { reference, ...names } = customer;
      if (Object.values(names).every((name) => name === null)) return noPayer(reference);
      const key = await openedKey(await keyOf(deps, owner), owner);
      const sealed = await sealUnder(key, JSON.stringify(names), ownerOf(payment_id));
      return { reference, sealed };
    },
    /** Gives nulls where there is nothing, where it was blanked, and where no key opens it. */
    open: async ({ _id, account_id, livemode, customer }: Paid): Promise<Customer> => {
      if ('email' in customer) return customer;
      const { reference, sealed } = customer;
      const none = { email: null, first_name: null, last_name: null, reference };
      if (sealed === null) return none;
      const owner = { account_id, livemode };
      try {
        const key = await openedKey(await keyOf(deps, owner), owner);
        const names = Names.parse(JSON.parse(await openUnder(key, sealed, ownerOf(_id))));
        return { ...names, reference };
      } catch (err) {
        if (!(err instanceof SealError)) throw err;
        // A list must not be lost with one key.
        deps.log.error({ payment_id: _id, err }, 'payer not opened');
        return none;
      }
    },
  };
}

/** Payer of whom nothing is known but the merchant's own reference. */
export function noPayer(reference: string | null): SealedCustomer {
  return { reference, sealed: null };
}

function ownerOf(payment_id: string): string {
  return `payment/${payment_id}`;
}

/** Sealed data key of an account's environment, made when it is first needed. */
async function keyOf({ accounts, sealer }: PayerDeps, owner: KeyOwner): Promise<Sealed> {
  const { account_id, livemode } = owner;
  const environment = envOf(livemode);
  const known = (await accounts.known(account_id))?.payer_keys?.[environment];
  if (known !== undefined) return known.sealed;
  const sealed = await sealer.seal(newDataKey(), payerKeyOwner(owner));
  const made = { sealed, kid: sealer.kidOf(sealed) };
  const account = await accounts.keepPayerKey(account_id, environment, made);
  const kept = account?.payer_keys?.[environment];
  if (kept === undefined) throw new Error(`There is no account ${account_id}.`);
  return kept.sealed;
}
