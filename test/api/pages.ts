import type { Answer } from '../support/http';

export const ids = (rows: readonly { id: string }[]) => rows.map(({ id }) => id);

/** Every page in turn; the ids in the order they came. */
export async function walkPages(
  list: (query: Record<string, string>) => Promise<Answer>,
  query: Record<string, string>,
): Promise<string[][]> {
  const pages: string[][] = [];
  let cursor: string | null = null;
  do {
    const { status, body } = await list({
      ...query,
      ...(cursor === null ? {} : { created_before: cursor }),
    });
    expect(status).toBe(200);
    expect(Object.keys(body)).toEqual(['object', 'data', 'has_more', 'next_cursor']);
    expect(body.object).toBe('list');
    expect(body.has_more).toBe(body.next_cursor !== null);
    pages.push(ids(body.data));
    cursor = body.next_cursor;
    expect(pages.length).toBeLessThan(1_000);
  } while (cursor !== null);
  return pages;
}
