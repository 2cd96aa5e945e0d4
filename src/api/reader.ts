import { notFound, type Sought, unavailable } from '../domain/errors';
import type { KeyOwner } from '../store/keys';
import type { ListFilter } from '../store/resource';
import { refusalOf } from './errors';
import { presentPage } from './present';

interface Findable<D> {
  find(id: string, account_id: string, livemode: boolean): Promise<D | null>;
}

interface Listable<D> extends Findable<D> {
  list(filter: ListFilter): Promise<D[]>;
}

interface ReadCall {
  key: KeyOwner;
  params: { id: string };
}

interface ListCall {
  key: KeyOwner;
  /** Page that is asked for; its other fields narrow the list. */
  query: { limit: number; created_before?: string | undefined };
}

/**
 * Finds one document, as one account and environment may see it.
 * @returns a function that throws Refusal 404, also for another account's or environment's id
 */
export function finder<D>(store: Findable<D>, noun: Parameters<typeof notFound>[0]) {
  return async (id: string, { account_id, livemode }: KeyOwner): Promise<D> => {
    const found = await store.find(id, account_id, livemode);
    if (found === null) throw refusalOf(notFound(noun));
    return found;
  };
}

/** Handlers that read and list one kind of resource, and the parts that they are made of. */
export function resourceReader<D extends { position: string }>(
  store: Listable<D>,
  present: (document: D) => object | Promise<object>,
  noun: Exclude<Sought, 'recipient'>,
) {
  const find = finder(store, noun);
  return {
    find,
    present,
    /**
     * Finds the resource that a creating request has made.
     * @throws Refusal 503 when the database has lost it, most likely by a restore: with its key kept,
     *   no retry makes a second one
     */
    made: async (id: string, { account_id, livemode }: KeyOwner): Promise<D> => {
      const document = await store.find(id, account_id, livemode);
      if (document !== null) return document;
      const lost = new Error(`The workflow of ${noun} ${id} is there, and its document is not.`);
      throw unavailable('It is not known what became of it.', lost);
    },
    read: async ({ key, params }: ReadCall) => present(await find(params.id, key)),
    /** @param about fields that narrow the list beside the query */
    list: async ({ key: { account_id, livemode }, query }: ListCall, about = {}) => {
      const { created_before: before, limit, ...narrowed } = query;
      const filter = { account_id, livemode, ...about, ...narrowed, before, limit: limit + 1 };
      return await presentPage(await store.list(filter), limit, present);
    },
  };
}
