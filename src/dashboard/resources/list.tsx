import type { ComponentType } from 'preact';
import { exportResources, type Kind, listResources } from '../../service/money/resources/read';
import { redirect } from '../frame/form';
import { PageHead, Panel, Table } from '../frame/parts';
import type { Answer, Call, PageDeps, Route } from '../frame/route';
import { createExports, csvStream } from './csv';
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
    {
      ...route,
      path: `${path}.csv`,
      cost: EXPORT_COST,
      handle: (call, deps) => exportList(list, call, deps),
    },
  ];
}

async function showList<K extends Kind>(
  list: ResourceList<K>,
  call: Call,
  deps: PageDeps,
  Tabs?: ComponentType<{ call: Call }>,
): Promise<Answer> {
  const { title, columns } = list;
  const listQuery = parseListQuery(call.query, list);
  const { rows, ...neighbors } = await listResources(deps, list.kind, call.scope, listQuery);
  const action = call.href(list.path);
  const queryString = toQueryString(listQuery);
  const isFiltered = queryString !== '';
  return (
    <>
      {Tabs && <Tabs call={call} />}
      <PageHead title={title}>
        <a class="button plain" href={`${action}.csv${queryString}`} download>
          Export CSV
        </a>
      </PageHead>
      <Panel>
        <ListFilters
          listQuery={listQuery}
          action={action}
          hint={list.hint}
          statuses={list.statuses}
          choice={{
            label: list.methodLabel ?? 'Method',
            values: list.methods.map((one) => [one, methodName(one)]),
          }}
        />
        {isFiltered && <a href={action}>Show all {title.toLowerCase()}</a>}
        <Table
          label={title}
          head={columns.map(([heading]) => heading)}
          rows={rows.map((row) => ({
            key: row._id,
            href: `${action}/${row._id}`,
            cells: columns.map(([, cell]) => cell(row)),
          }))}
          none={isFiltered ? 'Nothing matches.' : `There are no ${title.toLowerCase()} yet.`}
        />
        <ListPager listQuery={listQuery} page={neighbors} action={action} />
      </Panel>
    </>
  );
}

export const EXPORT_COST = 50;
const EXPORTS_MAX = 4;
export const runningExports = createExports(EXPORTS_MAX);

async function exportList<K extends Kind>(list: ResourceList<K>, call: Call, deps: PageDeps) {
  const { query, scope, viewer, now } = call;
  const listQuery = parseListQuery(query, list);
  const download = runningExports.begin(scope.account_id, () =>
    csvStream(exportResources(deps, list.kind, scope, listQuery), list.csv),
  );
  if (download === null) {
    const text = 'Other exports are still being read. Try again when one is done.';
    return redirect(call, `${list.path}${toQueryString(listQuery)}`, 'bad', text);
  }
  const day = now.toISOString().slice(0, 10);
  const filename = `${list.path.slice(1).replace('/', '-')}-${viewer.env}-${day}.csv`;
  return { download, filename, type: 'text/csv; charset=utf-8; header=present' };
}
