import type { Api, CallOptions, Query } from './api';

export interface Page<Item> {
  object: 'list';
  data: Item[];
  has_more: boolean;
  /** Continues the list; null on the last page. */
  next_cursor: string | null;
}

/**
 * A list of the API. `await` gives its first page; `for await` gives every row, and fetches the next
 * page once the rows of one are used up.
 */
export interface List<Item> extends PromiseLike<Page<Item>>, AsyncIterable<Item> {
  /** Gives page after page. */
  pages(): AsyncGenerator<Page<Item>, void>;
}

interface ListRequest {
  path: string;
  query?: Query | undefined;
  options?: CallOptions | undefined;
  /** Parameter that takes `next_cursor`. */
  cursor?: string;
}

export function createList<Item>(
  api: Api,
  { path, query = {}, options, cursor = 'created_before' }: ListRequest,
): List<Item> {
  const read = (more: Query) => api.get<Page<Item>>(path, { ...query, ...more }, options);
  async function* pages() {
    for (let more: Query = {}; ; ) {
      const page = await read(more);
      yield page;
      if (!page.has_more || page.next_cursor === null) return;
      more = { [cursor]: page.next_cursor };
    }
  }
  return {
    // A list is a promise of its first page on purpose, so that one method serves both uses.
    // biome-ignore lint/suspicious/noThenProperty: it is awaited
    then: (fulfilled, rejected) => read({}).then(fulfilled, rejected),
    pages,
    async *[Symbol.asyncIterator]() {
      for await (const { data } of pages()) yield* data;
    },
  };
}
