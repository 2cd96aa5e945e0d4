import type { Answer } from '../support/http';

export const ids = (rows: readonly { id: string; request_id?: string }[]) =>
  rows.map(({ id, request_id = id }) => request_id);

/** Reads every page in turn; the ids in the order they came. */
export async function walkPages(
  list: (query: Record<string, string>) => Promise<Answer>,
  query: Record<string, string>,
): Promise<string[][]> {
  const pages: string[][] = [];
  for (let more = {}; ; ) {
    const { status, body } = await list({ ...query, ...more });
    const { data, next_cursor } = body;
    const page = { object: 'list', data, has_more: next_cursor !== null, next_cursor };
    expect([status, body]).toEqual([200, page]);
    pages.push(ids(data));
    expect(pages.length).toBeLessThan(1_000);
    if (next_cursor === null) return pages;
    more = { created_before: next_cursor };
  }
}
