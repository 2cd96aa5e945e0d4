import { parseCreatedBefore } from '../../domain/cursor';

/** Rows of a page. */
export const PAGE_ROWS = 25;
const SEARCH_LENGTH_MAX = 255;
const DAY_MS = 86_400_000;

/** Wishes that a list's address holds; those that can't be are left out. */
export interface ListWish {
  search: string;
  status: string | undefined;
  method: string | undefined;
  /** Days, UTC, `YYYY-MM-DD`; the last one included. */
  from: string | undefined;
  to: string | undefined;
  /** Cursors; at most one is given. */
  before: string | undefined;
  after: string | undefined;
}

interface Choices {
  statuses: readonly string[];
  methods: readonly string[];
}

/** Reads the query of a list. */
export function readWish(query: URLSearchParams, { statuses, methods }: Choices): ListWish {
  const get = (name: string) => query.get(name)?.trim() ?? '';
  const oneOf = (allowed: readonly string[], value: string) => allowed.find((one) => one === value);
  const before = cursorOf(get('before'));
  return {
    search: get('search').slice(0, SEARCH_LENGTH_MAX),
    status: oneOf(statuses, get('status')),
    method: oneOf(methods, get('method')),
    from: dayOf(get('from')),
    to: dayOf(get('to')),
    before,
    after: before === undefined ? cursorOf(get('after')) : undefined,
  };
}

/** Bounds of a list by position, of days that are wished for. */
export function boundsOf({ from, to }: Pick<ListWish, 'from' | 'to'>) {
  const start = (day: string) => parseCreatedBefore(`${day}T00:00:00Z`);
  return {
    since: from === undefined ? undefined : start(from),
    until: to === undefined ? undefined : start(nextDay(to)),
  };
}

/** Query that asks for the same list, with other cursors. */
export function queryOf(
  { search, status, method, from, to }: ListWish,
  cursor: { before?: string | undefined; after?: string | undefined } = {},
): string {
  const query = new URLSearchParams();
  const all = { search, status, method, from, to, ...cursor };
  for (const [name, value] of Object.entries(all)) if (value) query.set(name, value);
  return query.size === 0 ? '' : `?${query}`;
}

/** Page of a list, of one row more than it shows. */
export interface ListPage<D> {
  rows: D[];
  /** Cursors of the pages beside it; undefined where there is none. */
  older: string | undefined;
  newer: string | undefined;
}

/**
 * Makes a page of the rows that were found, newest first.
 * @param found one row more than the page, where there are so many
 */
export function pageOf<D extends { position: string }>(
  found: D[],
  { before, after }: Pick<ListWish, 'before' | 'after'>,
  size = PAGE_ROWS,
): ListPage<D> {
  const more = found.length > size;
  // Going back, the row too many is the newest one.
  const rows = after === undefined ? found.slice(0, size) : found.slice(more ? 1 : 0);
  const [hasOlder, hasNewer] = after === undefined ? [more, before !== undefined] : [true, more];
  return {
    rows,
    older: hasOlder ? rows.at(-1)?.position : undefined,
    newer: hasNewer ? rows[0]?.position : undefined,
  };
}

function cursorOf(text: string): string | undefined {
  const cursor = parseCreatedBefore(text);
  return cursor === text ? cursor : undefined;
}

function dayOf(text: string): string | undefined {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return undefined;
  return parseCreatedBefore(`${text}T00:00:00Z`) === undefined ? undefined : text;
}

function nextDay(day: string): string {
  return new Date(Date.parse(`${day}T00:00:00Z`) + DAY_MS).toISOString().slice(0, 10);
}
