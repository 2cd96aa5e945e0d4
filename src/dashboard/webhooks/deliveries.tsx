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
  Facts,
  PageHead,
  Panel,
  PostForm,
  Preformatted,
  Status,
  Table,
  useCall,
  When,
} from '../frame/parts';
import { postRoute, type Route, viewRoute } from '../frame/route';
import { type Column, ResourceLink } from '../resources/kinds';
import { ListPanel, parseListQuery } from '../resources/list';
import { ENDPOINTS_PATH, showUrl } from './endpoint-parts';

const PATH = '/webhooks/deliveries';

const COLUMNS: readonly Column<ListedEvent>[] = [
  ['Event', ({ event }) => <code>{event._id}</code>],
  ['Type', ({ event }) => <span class="type">{event.type}</span>],
  ['Created', ({ event }) => <When at={event.created} />],
  ['Delivery', ({ deliveries }) => <States deliveries={deliveries} />],
  ['Attempts', ({ deliveries }) => String(deliveries.reduce((sum, row) => sum + row.attempts, 0))],
  ['Next attempt', ({ deliveries }) => <When at={findNextAttempt(deliveries)} />],
  ['Act', ({ event }) => <SendAgain event={event} />],
];

function findNextAttempt(deliveries: readonly DeliveryRow[]): string | null {
  const times = deliveries.map(({ next_attempt_at: at }) => at).filter((at) => at !== null);
  return times.sort()[0] ?? null;
}

export const DELIVERY_ROUTES: readonly Route[] = [
  viewRoute(PATH, 'Deliveries', async (call, deps) => {
    const choices = { statuses: DELIVERY_STATUSES, methods: EVENT_TYPES };
    const listQuery = parseListQuery(call.query, choices);
    const page = await listEvents(deps, call.scope, listQuery);
    return (
      <>
        <PageHead title="Deliveries">
          {call.may('events.send') && (
            <a class="button plain" href={call.href('/webhooks/send-failed')}>
              Send failed again
            </a>
          )}
        </PageHead>
        <ListPanel
          label="Deliveries"
          path={PATH}
          listQuery={listQuery}
          page={page}
          hint="Id of an event or payment"
          statuses={DELIVERY_STATUSES}
          choice={{ label: 'Event type', values: EVENT_TYPES.map((one) => [one, one]) }}
          columns={COLUMNS}
          getId={({ event }) => event._id}
          none="Nothing matches."
        />
      </>
    );
  }),
  viewRoute(`${PATH}/:id`, 'Delivery', async (call, deps) => {
    const result = await readEvent(deps, call.scope, call.params['id'] ?? '');
    if (result === null) return 'not_found';
    const endpoints = await listEndpoints(deps, call.scope);
    return {
      title: result.event.type,
      page: <DeliveryPage {...{ endpoints }} {...result} />,
    };
  }),
  postRoute(`${PATH}/:id/send-again`, 'events.send', {
    title: 'Send again',
    whileFrozen: true,
    handle: async (call, deps) => {
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
    },
  }),
];

/** Renders nothing for a test event, which is never sent again. */
function SendAgain({ event }: { event: EventDocument }) {
  const call = useCall();
  if (!call.may('events.send') || event.data['test'] === true) return null;
  return (
    <PostForm
      path={`${PATH}/${event._id}/send-again`}
      button="Send again"
      tone="plain"
      busy="Sending…"
    />
  );
}

interface DeliveryProps extends ListedEvent {
  endpoints: readonly Endpoint[];
}

function DeliveryPage({ event, deliveries, endpoints }: DeliveryProps) {
  const attempts = listAttempts(deliveries);
  const { _id, type, created, body, resource_id, data } = event;
  const isSeveral = deliveries.length > 1;
  const oldest = presentOldest(deliveries);
  const kind = findEventResource(type);
  return (
    <>
      <PageHead title={type} badge={<States deliveries={deliveries} />}>
        <SendAgain event={event} />
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
                <ResourceLink key="about" kind={kind} id={resource_id} />
              ),
            ],
            ['Created', <When key="created" at={created} />],
            ['Delivery', isSeveral ? null : deliveryText(oldest)],
            ['Attempts', isSeveral ? null : String(oldest.attempts)],
            ['Next attempt', isSeveral ? null : <When key="next" at={oldest.next_attempt_at} />],
          ]}
        />
        {isSeveral && <DeliveryTable {...{ deliveries, endpoints }} />}
        <h2>Request body</h2>
        <Preformatted text={body} />
      </Panel>
      {attempts.map((row) => (
        <Panel
          key={`${row.endpoint_id} ${row.run} ${row.attempt}`}
          title={`Attempt ${row.attempt}${row.run === 0 ? '' : `, sent again ${row.run}`}`}
        >
          <AttemptFacts row={row} />
        </Panel>
      ))}
      {attempts.length === 0 && <p class="empty">No attempt was made yet.</p>}
    </>
  );
}

export function AttemptFacts({ row }: { row: DeliveryAttempt }) {
  const call = useCall();
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
          <Preformatted text={response_excerpt} />
        </details>
      )}
    </>
  );
}

function States({ deliveries }: { deliveries: readonly DeliveryRow[] }) {
  const rows = deliveries.length === 0 ? [presentOldest([])] : deliveries;
  return (
    <span class="states">
      {[...new Set(rows.map(({ status }) => status))].map((status) => (
        <Status key={status} of={status} />
      ))}
    </span>
  );
}

function DeliveryTable({ deliveries, endpoints }: Pick<DeliveryProps, 'deliveries' | 'endpoints'>) {
  const call = useCall();
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
