import { REQUEST_OUTCOMES } from '../../domain/request/outcome';
import {
  findRequest,
  REQUEST_DAYS,
  type RequestDocument,
  searchRequests,
} from '../../service/events/requests/list';
import { Filters } from '../frame/fields';
import { Badge, Facts, PageHead, Panel, Table, When } from '../frame/parts';
import { type Answer, type Call, type PageDeps, type Route, viewRoute } from '../frame/route';
import { ListPager, parseListQuery, SearchFields } from '../resources/list-filters';

const PATH = '/requests';
const TITLE = 'Requests';

export const REQUEST_ROUTES: readonly Route[] = [
  viewRoute(PATH, TITLE, showRequests),
  viewRoute(`${PATH}/:id`, 'Request', showRequest),
];

async function showRequests(call: Call, deps: PageDeps): Promise<Answer> {
  const listQuery = parseListQuery(call.query, { statuses: REQUEST_OUTCOMES, methods: [] });
  const { rows, ...neighbors } = await searchRequests(deps, call.scope, listQuery);
  const action = call.href(PATH);
  const isFiltered = listQuery.search !== '' || listQuery.status !== undefined;
  return (
    <>
      <PageHead title={TITLE} />
      <p class="muted">
        {`What your API keys wrote in the last ${REQUEST_DAYS} days, and every error. Personal data and secrets are redacted.`}
      </p>
      <Panel>
        <Filters action={action}>
          <SearchFields listQuery={listQuery} hint="Request-Id" statuses={REQUEST_OUTCOMES} />
        </Filters>
        {isFiltered && <a href={action}>Show all requests</a>}
        <Table
          label={TITLE}
          head={['Request', 'Status', 'Code', 'Created', 'Took', 'API key']}
          rows={rows.map((request) => ({
            key: request._id,
            href: `${action}/${request._id}`,
            cells: renderCells(request),
          }))}
          none={isFiltered ? 'Nothing matches.' : <NoRequests call={call} />}
        />
        <ListPager listQuery={listQuery} page={neighbors} action={action} />
      </Panel>
    </>
  );
}

function renderCells(request: RequestDocument) {
  return [
    <code key="request">{`${request.method} ${request.path}`}</code>,
    <HttpStatus key="status" request={request} />,
    request.code === null ? '–' : <ErrorCode key="code" code={request.code} />,
    <When key="created" at={request.created_at} />,
    `${request.duration_ms} ms`,
    <code key="key">{request.key_id}</code>,
  ];
}

const TONES = { succeeded: 'good', refused: 'note', failed: 'bad' } as const;

function HttpStatus({ request }: { request: RequestDocument }) {
  return <Badge tone={TONES[request.outcome]}>{String(request.status)}</Badge>;
}

function ErrorCode({ code }: { code: string }) {
  const [first, ...words] = code.split('_');
  return (
    <code class="words">
      {first}
      {words.flatMap((word) => ['_', <wbr key={word} />, word])}
    </code>
  );
}

function NoRequests({ call }: { call: Call }) {
  return (
    <>
      There are no requests yet. What an API key writes appears here within a second:{' '}
      <a href={call.href('/getting-started')}>send the first one</a>.
    </>
  );
}

async function showRequest(call: Call, deps: PageDeps): Promise<Answer> {
  const request = await findRequest(deps, call.scope, call.params['id'] ?? '');
  if (request === null) return 'not_found';
  const title = `${request.method} ${request.path}`;
  return { title, page: <RequestPage title={title} request={request} /> };
}

function RequestPage({ title, request }: { title: string; request: RequestDocument }) {
  const { _id, code, created_at, duration_ms, idempotency_key, key_id } = request;
  return (
    <>
      <PageHead title={title} badge={<HttpStatus request={request} />} />
      <Panel>
        <Facts
          rows={[
            ['Request-Id', <code key="id">{_id}</code>],
            ['Code', code && <code key="code">{code}</code>],
            ['Created', <When key="created" at={created_at} />],
            ['Took', `${duration_ms} ms`],
            [
              'Idempotency-Key',
              idempotency_key && <code key="idempotency">{idempotency_key}</code>,
            ],
            ['API key', <code key="key">{key_id}</code>],
          ]}
        />
      </Panel>
      <Body title="Request body" text={request.request_body} none="None, or it was not read." />
      <Body title="Response body" text={request.response_body} none="None." />
    </>
  );
}

function Body({ title, text, none }: { title: string; text: string | null; none: string }) {
  return (
    <Panel title={title}>
      {text === null ? (
        <p class="muted">{none}</p>
      ) : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also by keyboard
        <pre class="wrap" tabIndex={0}>
          {indent(text)}
        </pre>
      )}
    </Panel>
  );
}

function indent(json: string): string {
  return JSON.stringify(JSON.parse(json), null, 2);
}
