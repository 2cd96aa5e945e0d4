import { indentJson } from '../../base/json';
import { REQUEST_OUTCOMES } from '../../domain/events/event';
import {
  AUDIT_LABELS,
  type AuditedAct,
  type AuditFacts,
  isAccountAct,
} from '../../domain/operators/audit-log';
import {
  findRequest,
  REQUEST_DAYS,
  type RequestDocument,
  searchRequests,
} from '../../service/events/requests';
import { listAuditLines } from '../../service/operators/audit/log';
import { Filters, Select } from '../frame/fields';
import {
  Badge,
  type Column,
  Facts,
  PageHead,
  Pager,
  Panel,
  Preformatted,
  Table,
  useCall,
  When,
} from '../frame/parts';
import { type Call, type Route, viewRoute } from '../frame/route';
import { ListPanel, parseListQuery } from '../resources/list';
import { showUrl } from '../webhooks/endpoint-parts';

const AUDIT_LOG = 'Audit log';
const AUDIT_PATH = '/audit-log';
const PATH = '/requests';
const TITLE = 'Requests';
const CURSOR = /^[\dTZ:.-]{24}_[0-9a-f]{16}$/;

const REQUEST_COLUMNS: readonly Column<RequestDocument>[] = [
  ['Request', ({ method, path }) => <code>{`${method} ${path}`}</code>],
  ['Status', (request) => <HttpStatus request={request} />],
  [
    'Code',
    ({ code }) => {
      if (code === null) return '–';
      const [first, ...words] = code.split('_');
      return (
        <code class="words">
          {first}
          {words.flatMap((word) => ['_', <wbr key={word} />, word])}
        </code>
      );
    },
  ],
  ['Created', ({ created_at }) => <When at={created_at} />],
  ['Took', ({ duration_ms }) => `${duration_ms} ms`],
  ['API key', ({ key_id }) => <code>{key_id}</code>],
];

export const LOG_ROUTES: readonly Route[] = [
  viewRoute(PATH, TITLE, async (call, deps) => {
    const listQuery = parseListQuery(call.query, { statuses: REQUEST_OUTCOMES, methods: [] });
    const page = await searchRequests(deps, call.scope, listQuery);
    const none = (
      <>
        There are no requests yet. What an API key writes appears here within a second:{' '}
        <a href={call.href('/getting-started')}>send the first one</a>.
      </>
    );
    return (
      <>
        <PageHead title={TITLE} />
        <p class="muted">
          {`What your API keys wrote in the last ${REQUEST_DAYS} days, and every error, as far as the log’s limits of a day allow. Personal data and secrets are redacted.`}
        </p>
        <ListPanel
          label={TITLE}
          path={PATH}
          listQuery={listQuery}
          page={page}
          hint="Request-Id"
          statuses={REQUEST_OUTCOMES}
          columns={REQUEST_COLUMNS}
          getId={({ _id }) => _id}
          all="Show all requests"
          none={none}
        />
      </>
    );
  }),
  viewRoute(`${PATH}/:id`, 'Request', async (call, deps) => {
    const request = await findRequest(deps, call.scope, call.id);
    if (request === null) return 'not_found';
    const title = `${request.method} ${request.path}`;
    const { _id, code, created_at, duration_ms, idempotency_key, key_id } = request;
    const page = (
      <>
        <PageHead title={title} badge={<HttpStatus request={request} />} />
        <Panel>
          <Facts
            rows={[
              ['Request-Id', <code key="id">{_id}</code>],
              ['Code', code && <code key="code">{code}</code>],
              ['Created', <When key="created" at={created_at} />],
              ['Took', `${duration_ms} ms`],
              ['Idempotency-Key', idempotency_key && <code key="key">{idempotency_key}</code>],
              ['API key', <code key="key">{key_id}</code>],
            ]}
          />
        </Panel>
        <Body title="Request body" text={request.request_body} none="None, or it was not read." />
        <Body title="Response body" text={request.response_body} none="None." />
      </>
    );
    return { title, page };
  }),
  viewRoute(AUDIT_PATH, AUDIT_LOG, async (call, deps) => {
    const requestedAct = call.query.get('act') ?? '';
    const act = isAct(requestedAct) ? requestedAct : undefined;
    const query = { act, before: parseCursor(call, 'before'), after: parseCursor(call, 'after') };
    const { rows: lines, older, newer } = await listAuditLines(deps, call.scope, query);
    const link = (where: 'before' | 'after', line: string | undefined) =>
      line &&
      call.href(`${AUDIT_PATH}?${new URLSearchParams({ ...(act && { act }), [where]: line })}`);
    return (
      <>
        <PageHead title={AUDIT_LOG} />
        <p class="muted">
          Every change: who made it, and the values before and after it. No line can be changed or
          removed.
        </p>
        <Filters action={call.href(AUDIT_PATH)}>
          <Select label="Change" name="act" value={act ?? ''} options={OPTIONS} />
        </Filters>
        <Panel>
          <Table
            label={AUDIT_LOG}
            rows={lines}
            columns={[
              ['When', ({ at }) => <When at={at} />],
              ['Who', ({ who }) => <span class="email">{who}</span>],
              [
                'What',
                ({ act, target }) => (
                  <span>
                    {AUDIT_LABELS[act]} {target !== null && <code class="muted">{target}</code>}
                  </span>
                ),
              ],
              ['Before', ({ before }) => <FactList facts={before} />],
              ['After', ({ after }) => <FactList facts={after} />],
            ]}
            none="Nothing has changed yet."
          />
        </Panel>
        <Pager newer={link('after', newer)} older={link('before', older)} />
      </>
    );
  }),
];

const OPTIONS: readonly (readonly [string, string])[] = [
  ['', 'All changes'],
  ...Object.entries(AUDIT_LABELS).filter(([act]) => isAct(act) && isAccountAct(act)),
];

function FactList({ facts = null }: { facts: AuditFacts | null | undefined }) {
  const { may } = useCall();
  const entries = Object.entries(facts ?? {}).filter(([, value]) => value !== undefined);
  if (entries.length === 0) return <span class="muted">–</span>;
  return (
    <ul class="facts">
      {entries.map(([name, value]) => (
        <li key={name}>
          <span class="muted">{name}</span>{' '}
          {formatValue(
            name === 'url' && typeof value === 'string' ? showUrl({ may }, { url: value }) : value,
          )}
        </li>
      ))}
    </ul>
  );
}

function formatValue(value: AuditFacts[string]): string {
  if (value === null || value === undefined) return 'none';
  if (typeof value === 'object') return value.length === 0 ? 'none' : value.join(', ');
  return String(value);
}

function isAct(text: string): text is AuditedAct {
  return Object.hasOwn(AUDIT_LABELS, text);
}

function parseCursor({ query }: Call, name: string): string | undefined {
  const text = query.get(name) ?? '';
  return CURSOR.test(text) ? text : undefined;
}

const TONES = { succeeded: 'good', refused: 'note', failed: 'bad' } as const;

function HttpStatus({ request }: { request: RequestDocument }) {
  return <Badge tone={TONES[request.outcome]}>{String(request.status)}</Badge>;
}

function Body({ title, text, none }: { title: string; text: string | null; none: string }) {
  return (
    <Panel title={title}>
      {text === null ? <p class="muted">{none}</p> : <Preformatted text={indentJson(text)} />}
    </Panel>
  );
}
