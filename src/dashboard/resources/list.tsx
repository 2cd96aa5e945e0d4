import type { ComponentType } from 'preact';
import type { ListPage, ListQuery } from '../../service/paging';
import {
  type Documents,
  exportResources,
  type Kind,
  listResources,
} from '../../service/resources/list';
import { PageHead, Panel, Table } from '../frame/parts';
import type { Answer, Call, PageDeps, Route } from '../frame/route';
import { createExports, csvStream } from './export';
import { methodName, type ResourceList } from './kinds';
import { ListFilters, ListPager, parseListQuery, toQueryString } from './list-filters';

export function listRoutes<K extends Kind>(
  list: ResourceList<K>,
  Tabs?: ComponentType<{ call: Call }>,
): Route[] {
  const { path, title } = list;
  const route = { method: 'get', act: 'view', title } as const;
  return [
    { ...route, path, handle: (call, deps) => showList(list, call, deps, Tabs) },
    { ...route, path: `${path}.csv`, handle: (call, deps) => exportList(list, call, deps) },
  ];
}

async function showList<K extends Kind>(
  list: ResourceList<K>,
  call: Call,
  deps: PageDeps,
  Tabs?: ComponentType<{ call: Call }>,
): Promise<Answer> {
  const listQuery = parseListQuery(call.query, list);
  const page = await listResources(deps, list.kind, call.scope, listQuery);
  return {
    page: (
      <>
        {Tabs && <Tabs call={call} />}
        <ListView list={list} call={call} listQuery={listQuery} page={page} />
      </>
    ),
  };
}

/** Exports at once for each account in this process. */
const EXPORTS_MAX = 4;
const runningExports = createExports(EXPORTS_MAX);

async function exportList<K extends Kind>(
  list: ResourceList<K>,
  { query, scope, viewer, now, href }: Call,
  deps: PageDeps,
): Promise<Answer> {
  const listQuery = parseListQuery(query, list);
  const download = runningExports.begin(scope.account_id, () =>
    csvStream(exportResources(deps, list.kind, scope, listQuery), list.csv),
  );
  if (download === null) {
    const text = 'Other exports are still being read. Try again when one is done.';
    return { go: href(`${list.path}${toQueryString(listQuery)}`), flash: { tone: 'bad', text } };
  }
  const day = now.toISOString().slice(0, 10);
  const filename = `${list.path.slice(1).replace('/', '-')}-${viewer.env}-${day}.csv`;
  return { download, filename, type: 'text/csv; charset=utf-8; header=present' };
}

interface ListViewProps<K extends Kind> {
  list: ResourceList<K>;
  call: Call;
  listQuery: ListQuery;
  page: ListPage<Documents[K]>;
}

function ListView<K extends Kind>({ list, call, listQuery, page }: ListViewProps<K>) {
  const { path, title, columns } = list;
  const isFiltered = toQueryString(listQuery) !== '';
  return (
    <>
      <PageHead title={title}>
        <a class="button plain" href={call.href(`${path}.csv${toQueryString(listQuery)}`)} download>
          Export CSV
        </a>
      </PageHead>
      <Panel>
        <ListFilters
          listQuery={listQuery}
          action={call.href(path)}
          hint={list.hint}
          statuses={list.statuses}
          choice={{
            label: list.methodLabel ?? 'Method',
            values: list.methods.map((one) => [one, methodName(one)]),
          }}
        />
        {isFiltered && <a href={call.href(path)}>Show all {title.toLowerCase()}</a>}
        <Table
          label={title}
          head={columns.map(([heading]) => heading)}
          rows={page.rows.map((row) => ({
            key: row._id,
            href: call.href(`${path}/${row._id}`),
            cells: columns.map(([, cell]) => cell(row)),
          }))}
          none={isFiltered ? 'Nothing matches.' : `There are no ${title.toLowerCase()} yet.`}
        />
        <ListPager listQuery={listQuery} page={page} action={call.href(path)} />
      </Panel>
    </>
  );
}
