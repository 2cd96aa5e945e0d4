import { ServiceError } from '../../domain/errors';
import { DELIVERY_STATUSES, EVENT_TYPES, findEventResource } from '../../domain/webhook/event';
import { type Endpoint, listEndpoints } from '../../service/events/endpoints/manage';

import {
  type DeliveryAttempt,
  type DeliveryRow,
  type EventDocument,
  type ListedEvent,
  listAttempts,
  listEvents,
  presentOldest,
  readEvent,
} from '../../service/events/list';
import { sendEventAgain } from '../../service/events/redeliveries';
import { deliveryText } from '../../service/money/resources/timeline';
import { redirect } from '../frame/form';
import {
  type FactRow,
  Facts,
  PageHead,
  Panel,
  PostForm,
  Status,
  Table,
  When,
} from '../frame/parts';
import { type Answer, type Call, type PageDeps, type Route, viewRoute } from '../frame/route';
import { ResourceLink } from '../resources/kinds';
import { ListFilters, ListPager, parseListQuery } from '../resources/list-filters';
import { ENDPOINTS_PATH, showUrl } from './endpoint-settings';

const PATH = '/webhooks/deliveries';

export const DELIVERY_ROUTES: readonly Route[] = [
  viewRoute(PATH, 'Deliveries', showDeliveries),
  viewRoute(`${PATH}/:id`, 'Delivery', showDelivery),
  {
    method: 'post',
    path: `${PATH}/:id/send-again`,
    act: 'events.send',
    title: 'Send again',
    whileFrozen: true,
    handle: sendAgain,
  },
];

const CHOICES = { statuses: DELIVERY_STATUSES, methods: EVENT_TYPES };

async function showDeliveries(call: Call, deps: PageDeps): Promise<Answer> {
  const listQuery = parseListQuery(call.query, CHOICES);
  const { rows, ...neighbors } = await listEvents(deps, call.scope, listQuery);
  const action = call.href(PATH);
  return (
    <>
      <PageHead title="Deliveries">
        {call.may('events.send') && (
          <a class="button plain" href={call.href('/webhooks/send-failed')}>
            Send failed again
          </a>
        )}
      </PageHead>
      <Panel>
        <ListFilters
          listQuery={listQuery}
          action={action}
          hint="Id of an event or payment"
          statuses={DELIVERY_STATUSES}
          choice={{ label: 'Event type', values: EVENT_TYPES.map((one) => [one, one]) }}
        />
        <Table
          label="Deliveries"
          head={['Event', 'Type', 'Created', 'Delivery', 'Attempts', 'Next attempt', 'Act']}
          rows={rows.map((listed) => ({
            key: listed.event._id,
            href: `${action}/${listed.event._id}`,
            cells: renderCells(call, listed),
          }))}
          none="Nothing matches."
        />
        <ListPager listQuery={listQuery} page={neighbors} action={action} />
      </Panel>
    </>
  );
}

function renderCells(call: Call, { event, deliveries }: ListedEvent) {
  const { _id, type, created } = event;
  const attempts = deliveries.reduce((sum, each) => sum + each.attempts, 0);
  const [next = null] = deliveries
    .map((each) => each.next_attempt_at)
    .filter((at) => at !== null)
    .sort();
  return [
    <code key="id">{_id}</code>,
    <span key="type" class="type">
      {type}
    </span>,
    <When key="created" at={created} />,
    <States key="status" deliveries={deliveries} />,
    String(attempts),
    <When key="next" at={next} />,
    <SendAgain key="again" call={call} event={event} />,
  ];
}

/** Renders nothing for a test event, which is never sent again. */
function SendAgain({ call, event }: { call: Call; event: EventDocument }) {
  if (!call.may('events.send') || event.data['test'] === true) return null;
  return (
    <PostForm
      call={call}
      path={`${PATH}/${event._id}/send-again`}
      button="Send again"
      tone="plain"
      busy="Sending…"
    />
  );
}

async function showDelivery(call: Call, deps: PageDeps): Promise<Answer> {
  const result = await readEvent(deps, call.scope, call.params['id'] ?? '');
  if (result === null) return 'not_found';
  const endpoints = await listEndpoints(deps, call.scope);
  return { title: result.event.type, page: <DeliveryPage {...{ call, endpoints }} {...result} /> };
}

async function sendAgain(call: Call, deps: PageDeps): Promise<Answer> {
  const { id = '' } = call.params;
  const path = `${PATH}/${id}`;
  try {
    if (!(await sendEventAgain(deps, call.scope, id))) return 'not_found';
    const text = 'It is being sent again. Reload this page to see the answer.';
    return redirect(call, path, 'good', text);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return redirect(call, path, 'bad', error.message);
  }
}

interface DeliveryProps extends ListedEvent {
  call: Call;
  endpoints: readonly Endpoint[];
}

function DeliveryPage({ call, event, deliveries, endpoints }: DeliveryProps) {
  const attempts = listAttempts(deliveries);
  const { _id, type, created, body, resource_id, data } = event;
  const isSeveral = deliveries.length > 1;
  const kind = findEventResource(type);
  return (
    <>
      <PageHead title={type} badge={<States deliveries={deliveries} />}>
        <SendAgain call={call} event={event} />
      </PageHead>
      <Panel>
        <Facts
          rows={[
            ['Id', <code key="id">{_id}</code>],
            [
              'About',
              kind === undefined || data['test'] === true ? (
                'A test: what it names does not exist.'
              ) : (
                <ResourceLink key="about" call={call} kind={kind} id={resource_id} />
              ),
            ],
            ['Created', <When key="created" at={created} />],
            ...(isSeveral ? [] : describeDelivery(deliveries)),
          ]}
        />
        {isSeveral && <DeliveryTable {...{ call, deliveries, endpoints }} />}
        <h2>Request body</h2>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also by keyboard */}
        <pre class="wrap" tabIndex={0}>
          {body}
        </pre>
      </Panel>
      {attempts.map((row) => (
        <Panel key={`${row.endpoint_id} ${row.run} ${row.attempt}`} title={attemptTitle(row)}>
          <AttemptFacts call={call} row={row} />
        </Panel>
      ))}
      {attempts.length === 0 && <p class="empty">No attempt was made yet.</p>}
    </>
  );
}

function attemptTitle({ run, attempt }: DeliveryAttempt): string {
  return run === 0 ? `Attempt ${attempt}` : `Attempt ${attempt}, sent again ${run}`;
}

interface AttemptFactsProps {
  call: Pick<Call, 'may'>;
  row: DeliveryAttempt;
}

export function AttemptFacts({ call, row }: AttemptFactsProps) {
  const { outcome, at, status_code, error, duration_ms, response_excerpt } = row;
  return (
    <>
      <Facts
        rows={[
          ['Outcome', <Status key="outcome" of={outcome} />],
          ['At', <When key="at" at={at} />],
          ['URL', <code key="url">{showUrl(call, row)}</code>],
          ['Answer', status_code === null ? (error ?? 'None') : `HTTP ${status_code}`],
          ['Took', `${duration_ms} ms`],
        ]}
      />
      {response_excerpt !== '' && (
        <details>
          <summary>Body of the answer</summary>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also by keyboard */}
          <pre class="wrap" tabIndex={0}>
            {response_excerpt}
          </pre>
        </details>
      )}
    </>
  );
}

interface StatesProps {
  deliveries: readonly DeliveryRow[];
}

function States({ deliveries }: StatesProps) {
  const rows = deliveries.length === 0 ? [presentOldest([])] : deliveries;
  return (
    <span class="states">
      {[...new Set(rows.map(({ status }) => status))].map((status) => (
        <Status key={status} of={status} />
      ))}
    </span>
  );
}

/** @param deliveries one, or none without an endpoint */
function describeDelivery(deliveries: readonly DeliveryRow[]): FactRow[] {
  const delivery = presentOldest(deliveries);
  return [
    ['Delivery', deliveryText(delivery)],
    ['Attempts', String(delivery.attempts)],
    ['Next attempt', <When key="next" at={delivery.next_attempt_at} />],
  ];
}

interface DeliveryTableProps {
  call: Call;
  deliveries: readonly DeliveryRow[];
  endpoints: readonly Endpoint[];
}

function DeliveryTable({ call, deliveries, endpoints }: DeliveryTableProps) {
  return (
    <Table
      label="Deliveries"
      head={['Endpoint', 'Delivery', 'Attempts', 'Next attempt']}
      rows={deliveries.map(({ _id, endpoint_id, status, attempts, next_attempt_at }) => {
        const endpoint = endpoints.find((each) => each.endpoint_id === endpoint_id);
        const cells = [
          <code key="endpoint">{endpoint ? showUrl(call, endpoint) : endpoint_id}</code>,
          <Status key="status" of={status} />,
          String(attempts),
          <When key="next" at={next_attempt_at} />,
        ];
        if (endpoint === undefined) return { key: _id, cells };
        return { key: _id, href: call.href(`${ENDPOINTS_PATH}/${endpoint_id}`), cells };
      })}
      none=""
    />
  );
}
