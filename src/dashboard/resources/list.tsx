import type { ComponentType } from 'preact';
import type { ResourceDocument } from '../../store/resource';
import type { DashboardDeps } from '../deps';
import { PageHead, Pager, Panel, Table } from '../parts';
import type { Answer, Call, Route } from '../route';
import { csvStream } from './csv';
import { createExports } from './exports';
import {
  boundsOf,
  type ListPage,
  type ListWish,
  PAGE_ROWS,
  pageOf,
  queryOf,
  readWish,
} from './filter';
import { type Kind, methodName } from './kinds';
import { ListFilters } from './list-filters';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Routes of a list and its export; `Tabs` stand above it. */
export function listRoutes<D extends ResourceDocument>(
  kind: Kind<D>,
  Tabs?: ComponentType<{ call: Call }>,
): Route[] {
  const { path, title } = kind;
  return [
    {
      method: 'get',
      path,
      act: 'view',
      title,
      handle: (call, deps) => showList(kind, call, deps, Tabs),
    },
    {
      method: 'get',
      path: `${path}.csv`,
      act: 'view',
      title,
      handle: (call, deps) => exportList(kind, call, deps),
    },
  ];
}

async function showList<D extends ResourceDocument>(
  kind: Kind<D>,
  call: Call,
  { stores }: DashboardDeps,
  Tabs?: ComponentType<{ call: Call }>,
): Promise<Answer> {
  const wish = readWish(call.query, kind);
  const page = await readPage(kind, call, wish, stores);
  return {
    page: (
      <>
        {Tabs && <Tabs call={call} />}
        <ListView kind={kind} call={call} wish={wish} page={page} />
      </>
    ),
  };
}

/** Finds by id where the search is one, else by what the kind is searched by. */
async function readPage<D extends ResourceDocument>(
  kind: Kind<D>,
  { scope }: Call,
  wish: ListWish,
  stores: DashboardDeps['stores'],
): Promise<ListPage<D>> {
  const { search } = wish;
  const { account_id, livemode } = scope;
  if (UUID.test(search)) {
    const found = await kind.find(stores, search.toLowerCase(), account_id, livemode);
    if (found !== null) return { rows: [found], older: undefined, newer: undefined };
  }
  const { before, after } = wish;
  const limit = PAGE_ROWS + 1;
  const found = await kind.list(stores, { ...filterOf(kind, scope, wish), before, after, limit });
  return pageOf(found, wish);
}

function filterOf<D extends ResourceDocument>(kind: Kind<D>, scope: Call['scope'], wish: ListWish) {
  const { search, status, method } = wish;
  const searched =
    search === '' ? {} : kind.bySearch(UUID.test(search) ? search.toLowerCase() : search);
  return { ...scope, status, method, ...boundsOf(wish), ...searched };
}

/** Exports that one account may have under way in this process. */
const EXPORTS_MAX = 4;
const exporting = createExports(EXPORTS_MAX);

async function exportList<D extends ResourceDocument>(
  kind: Kind<D>,
  { query, scope, viewer, now, href }: Call,
  { stores }: DashboardDeps,
): Promise<Answer> {
  const wish = readWish(query, kind);
  const download = exporting.begin(scope.account_id, () =>
    csvStream(kind.export(stores, filterOf(kind, scope, wish)), kind.csv),
  );
  if (download === null) {
    const text = 'Other exports are still being read. Try again when one is done.';
    return { go: href(`${kind.path}${queryOf(wish)}`), flash: { tone: 'bad', text } };
  }
  const day = now.toISOString().slice(0, 10);
  const filename = `${kind.path.slice(1).replace('/', '-')}-${viewer.env}-${day}.csv`;
  return { download, filename, type: 'text/csv; charset=utf-8; header=present' };
}

interface ListViewProps<D extends ResourceDocument> {
  kind: Kind<D>;
  call: Call;
  wish: ListWish;
  page: ListPage<D>;
}

function ListView<D extends ResourceDocument>({ kind, call, wish, page }: ListViewProps<D>) {
  const { path, title, columns } = kind;
  const to = (cursor: Parameters<typeof queryOf>[1]) =>
    call.href(`${path}${queryOf(wish, cursor)}`);
  const isNarrowed = queryOf(wish) !== '';
  return (
    <>
      <PageHead title={title}>
        <a class="button plain" href={call.href(`${path}.csv${queryOf(wish)}`)} download>
          Export CSV
        </a>
      </PageHead>
      <Panel>
        <ListFilters
          wish={wish}
          action={call.href(path)}
          hint={kind.hint}
          statuses={kind.statuses}
          choice={{
            label: kind.methodLabel ?? 'Method',
            values: kind.methods.map((one) => [one, methodName(one)]),
          }}
        />
        {isNarrowed && <a href={call.href(path)}>Show all {title.toLowerCase()}</a>}
        <Table
          label={title}
          head={columns.map(([heading]) => heading)}
          rows={page.rows.map((row) => ({
            key: row._id,
            href: call.href(`${path}/${row._id}`),
            cells: columns.map(([, cell]) => cell(row)),
          }))}
          none={isNarrowed ? 'Nothing matches.' : `There are no ${title.toLowerCase()} yet.`}
        />
        <Pager
          older={page.older === undefined ? undefined : to({ before: page.older })}
          newer={page.newer === undefined ? undefined : to({ after: page.newer })}
        />
      </Panel>
    </>
  );
}
