import { parseCreatedBefore } from '../../domain/cursor';
import { type ListPage, type ListQuery, startOfDay } from '../../service/paging';
import { Field, Filters, Select } from '../frame/fields';
import { Pager, statusName } from '../frame/parts';

const SEARCH_LENGTH_MAX = 255;

/** Ignores invalid values. */
export function parseListQuery(
  query: URLSearchParams,
  { statuses, methods }: Record<'statuses' | 'methods', readonly string[]>,
): ListQuery {
  const get = (name: string) => query.get(name)?.trim() ?? '';
  const findAllowed = (allowed: readonly string[], value: string) =>
    allowed.find((one) => one === value);
  const before = parseCursor(get('before'));
  return {
    search: get('search').slice(0, SEARCH_LENGTH_MAX),
    status: findAllowed(statuses, get('status')),
    method: findAllowed(methods, get('method')),
    from: parseDay(get('from')),
    to: parseDay(get('to')),
    before,
    after: before === undefined ? parseCursor(get('after')) : undefined,
  };
}

export function toQueryString(
  { search, status, method, from, to }: ListQuery,
  cursor: { before?: string | undefined; after?: string | undefined } = {},
): string {
  const query = new URLSearchParams();
  const all = { search, status, method, from, to, ...cursor };
  for (const [name, value] of Object.entries(all)) if (value) query.set(name, value);
  return query.size === 0 ? '' : `?${query}`;
}

function parseCursor(text: string): string | undefined {
  const cursor = parseCreatedBefore(text);
  return cursor === text ? cursor : undefined;
}

export function parseDay(text: string): string | undefined {
  return startOfDay(text) === undefined ? undefined : text;
}

interface ListFiltersProps {
  listQuery: ListQuery;
  action: string;
  hint: string;
  statuses: readonly string[];
  choice: { label: string; values: readonly (readonly [value: string, name: string])[] };
}

export function ListFilters({ listQuery, action, hint, statuses, choice }: ListFiltersProps) {
  return (
    <Filters action={action}>
      <SearchFields listQuery={listQuery} hint={hint} statuses={statuses} />
      <Select
        label={choice.label}
        name="method"
        value={listQuery.method ?? ''}
        options={[['', 'All'], ...choice.values]}
      />
      <Field label="From" name="from" type="date" value={listQuery.from ?? ''} />
      <Field label="To" name="to" type="date" value={listQuery.to ?? ''} />
    </Filters>
  );
}

export function SearchFields({
  listQuery: { search, status = '' },
  hint,
  statuses,
}: Pick<ListFiltersProps, 'listQuery' | 'hint' | 'statuses'>) {
  const options = statuses.map((one) => [one, statusName(one)] as const);
  return (
    <>
      <Field label="Search" name="search" type="search" value={search} placeholder={hint} />
      <Select label="Status" name="status" value={status} options={[['', 'All'], ...options]} />
    </>
  );
}

export function ListPager({
  listQuery,
  page: { older, newer },
  action,
}: Pick<ListFiltersProps, 'listQuery' | 'action'> & {
  page: Pick<ListPage<unknown>, 'older' | 'newer'>;
}) {
  const link = (cursor: { before?: string; after?: string }) =>
    `${action}${toQueryString(listQuery, cursor)}`;
  return <Pager older={older && link({ before: older })} newer={newer && link({ after: newer })} />;
}
