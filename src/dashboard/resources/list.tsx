import type { Readable } from 'node:stream';
import type { ComponentChildren, ComponentType } from 'preact';
import { parsePosition } from '../../domain/cursor';
import { exportResources, type Kind, listResources } from '../../service/money/resources/read';
import { type ListPage, type ListQuery, startOfDay } from '../../service/paging';
import { Field, Filters, Select } from '../frame/fields';
import { type Column, PageHead, Pager, Panel, statusName, Table, useCall } from '../frame/parts';
import { type Call, type PageDeps, type Route, viewRoute } from '../frame/route';
import { createExports, csvStream } from './csv';
import { methodName, type ResourceList } from './kinds';

export function listRoutes<K extends Kind>(list: ResourceList<K>, Tabs?: ComponentType): Route[] {
  const { path, title } = list;
  const show = viewRoute(path, title, async (call, deps) => {
    const listQuery = parseListQuery(call.query, list);
    const page = await listResources(deps, list.kind, call.scope, listQuery);
    return (
      <>
        {Tabs && <Tabs />}
        <PageHead title={title}>
          <a
            class="button plain"
            href={call.href(`${path}.csv${toQueryString(listQuery)}`)}
            download
          >
            Export CSV
          </a>
        </PageHead>
        <ListPanel
          label={title}
          path={path}
          listQuery={listQuery}
          page={page}
          hint={list.hint}
          statuses={list.statuses}
          choice={{
            label: list.methodLabel ?? 'Method',
            values: list.methods.map((one) => [one, methodName(one)]),
          }}
          columns={list.columns}
          getId={({ _id }) => _id}
          all={`Show all ${title.toLowerCase()}`}
          none={`There are no ${title.toLowerCase()} yet.`}
        />
      </>
    );
  });
  const download = exportRoute(path, title, (call, deps) => {
    const listQuery = parseListQuery(call.query, list);
    return {
      open: () => csvStream(exportResources(deps, list.kind, call.scope, listQuery), list.csv),
      name: path.slice(1).replace('/', '-'),
      period: call.now.toISOString().slice(0, 10),
      back: `${path}${toQueryString(listQuery)}`,
    };
  });
  return [show, download];
}

const EXPORT_COST = 50;
const EXPORTS_MAX = 4;
const runningExports = createExports(EXPORTS_MAX);

interface Export {
  open: () => Readable;
  name: string;
  /** Day or month. */
  period: string;
  /** Page to which a refusal leads. */
  back: string;
}

/** Download of a page as CSV, of which an account reads few at once. */
export function exportRoute(
  path: string,
  title: string,
  prepare: (call: Call, deps: PageDeps) => Export,
): Route {
  const route = viewRoute(`${path}.csv`, title, async (call, deps) => {
    const { open, name, period, back } = prepare(call, deps);
    const download = runningExports.begin(call.scope.account_id, open);
    if (download === null) {
      return { go: back, bad: 'Other exports are still being read. Try again when one is done.' };
    }
    const filename = `${name}-${call.viewer.env}-${period}.csv`;
    return { download, filename, type: 'text/csv; charset=utf-8; header=present' };
  });
  return { ...route, cost: EXPORT_COST };
}

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
  const cursor = parsePosition(text);
  return cursor === text ? cursor : undefined;
}

export function parseDay(text: string): string | undefined {
  return startOfDay(text) === undefined ? undefined : text;
}

interface ListPanelProps<R> {
  label: string;
  path: string;
  listQuery: ListQuery;
  page: ListPage<R>;
  hint: string;
  statuses: readonly string[];
  /** With it, days can be chosen, too. */
  choice?: { label: string; values: readonly (readonly [value: string, name: string])[] };
  columns: readonly Column<R>[];
  getId: (row: R) => string;
  /** Link out of the filters. */
  all?: string;
  none: ComponentChildren;
}

/** List with its search, filters and pages, whose rows lead to `path/id`. */
export function ListPanel<R>({ path, listQuery, page, choice, ...list }: ListPanelProps<R>) {
  const action = useCall().href(path);
  const { search, status = '', method = '', from = '', to = '' } = listQuery;
  const isFiltered = toQueryString(listQuery) !== '';
  const statuses = list.statuses.map((one) => [one, statusName(one)] as const);
  const link = (cursor: { before?: string; after?: string }) =>
    `${action}${toQueryString(listQuery, cursor)}`;
  const older = page.older && link({ before: page.older });
  const newer = page.newer && link({ after: page.newer });
  return (
    <Panel>
      <Filters action={action}>
        <Field label="Search" name="search" type="search" value={search} placeholder={list.hint} />
        <Select label="Status" name="status" value={status} options={[['', 'All'], ...statuses]} />
        {choice && (
          <>
            <Select
              label={choice.label}
              name="method"
              value={method}
              options={[['', 'All'], ...choice.values]}
            />
            <Field label="From" name="from" type="date" value={from} />
            <Field label="To" name="to" type="date" value={to} />
          </>
        )}
      </Filters>
      {isFiltered && list.all && <a href={action}>{list.all}</a>}
      <Table
        label={list.label}
        columns={list.columns}
        rows={page.rows}
        getHref={(row) => `${action}/${list.getId(row)}`}
        none={isFiltered ? 'Nothing matches.' : list.none}
      />
      <Pager older={older} newer={newer} />
    </Panel>
  );
}
