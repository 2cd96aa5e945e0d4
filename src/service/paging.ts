import { parsePosition } from '../domain/cursor';

const PAGE_ROWS = 25;
const DAY_MS = 86_400_000;

export interface ListQuery {
  /** Id or reference; empty for all. */
  search: string;
  status: string | undefined;
  /** Payment method, rail, asset or event type. */
  method: string | undefined;
  /** UTC, `YYYY-MM-DD`, inclusive. */
  from: string | undefined;
  to: string | undefined;
  /** At most one of the two is set. */
  before: string | undefined;
  after: string | undefined;
}

export interface ListPage<D> {
  rows: D[];
  older: string | undefined;
  newer: string | undefined;
}

export function singleRow<D>(row: D | null): ListPage<D> {
  return { rows: row === null ? [] : [row], older: undefined, newer: undefined };
}

export function toBounds({ from, to }: Pick<ListQuery, 'from' | 'to'>) {
  return {
    since: from === undefined ? undefined : startOfDay(from),
    until:
      to === undefined
        ? undefined
        : startOfDay(new Date(Date.parse(to) + DAY_MS).toISOString().slice(0, 10)),
  };
}

export function startOfDay(day: string): string | undefined {
  return /^\d{4}-\d{2}-\d{2}$/.test(day) ? parsePosition(`${day}T00:00:00Z`) : undefined;
}

export type PageRequest = Pick<ListQuery, 'before' | 'after'> & { limit: number };

/** @param list returns up to `limit` rows, newest first */
export function readPage<D extends { position: string }>(
  query: Pick<ListQuery, 'before' | 'after'>,
  list: (page: PageRequest) => Promise<D[]>,
  size = PAGE_ROWS,
): Promise<ListPage<D>> {
  return readPageBy(({ position }) => position, query, list, size);
}

/** @param list returns up to `limit` rows, newest first */
export async function readPageBy<D>(
  getCursor: (row: D) => string,
  { before, after }: Pick<ListQuery, 'before' | 'after'>,
  list: (page: PageRequest) => Promise<D[]>,
  size: number,
): Promise<ListPage<D>> {
  // An extra row shows whether there is another page.
  const matches = await list({ before, after, limit: size + 1 });
  const hasMore = matches.length > size;
  // When paging backward, the extra row is the newest one.
  const rows = after === undefined ? matches.slice(0, size) : matches.slice(hasMore ? 1 : 0);
  const [first] = rows;
  const last = rows.at(-1);
  const [hasOlder, hasNewer] =
    after === undefined ? [hasMore, before !== undefined] : [true, hasMore];
  return {
    rows,
    older: hasOlder && last !== undefined ? getCursor(last) : undefined,
    newer: hasNewer && first !== undefined ? getCursor(first) : undefined,
  };
}

/** Page of the API, or of a command. */
export interface Page<Row> {
  rows: Row[];
  has_more: boolean;
  next_cursor: string | null;
}

/** @param found one row more than the limit, if there are as many */
export function toPage<Row>(
  found: readonly Row[],
  limit: number,
  getCursor: (row: Row) => string,
): Page<Row> {
  const { rows, has_more } = toFirstRows(found, limit);
  const last = has_more ? rows.at(-1) : undefined;
  return { rows, has_more, next_cursor: last === undefined ? null : getCursor(last) };
}

export interface FirstRows<Row> {
  rows: Row[];
  has_more: boolean;
}

export function toFirstRows<Row>(rows: readonly Row[], limit: number): FirstRows<Row> {
  return { rows: rows.slice(0, limit), has_more: rows.length > limit };
}
