import { DELIVERY_STATUSES, EVENT_TYPES } from '../../domain/webhook/event';
import { type EventDocument, listEvents } from '../../service/events/list';
import type { ListPage, ListQuery } from '../../service/paging';
import { PageHead, Panel, PostForm, Status, Table, When } from '../frame/parts';
import type { Answer, Call, PageDeps, Route } from '../frame/route';
import { ListFilters, ListPager, parseListQuery } from '../resources/list-filters';

export const DELIVERIES_ROUTE: Route = {
  method: 'get',
  path: '/webhooks/deliveries',
  act: 'view',
  title: 'Deliveries',
  handle: showDeliveries,
};

/** Choices of the filters; `Event type` replaces the method. */
const CHOICES = { statuses: DELIVERY_STATUSES, methods: EVENT_TYPES };

async function showDeliveries(call: Call, deps: PageDeps): Promise<Answer> {
  const listQuery = parseListQuery(call.query, CHOICES);
  const page = await listEvents(deps, call.scope, listQuery);
  return { page: <Deliveries call={call} listQuery={listQuery} page={page} /> };
}

interface DeliveriesProps {
  call: Call;
  listQuery: ListQuery;
  page: ListPage<EventDocument>;
}

function Deliveries({ call, listQuery, page }: DeliveriesProps) {
  const { href } = call;
  const path = '/webhooks/deliveries';
  return (
    <>
      <PageHead title="Deliveries">
        {call.may('events.send') && (
          <a class="button plain" href={href('/webhooks/send-failed')}>
            Send failed again
          </a>
        )}
      </PageHead>
      <Panel>
        <ListFilters
          listQuery={listQuery}
          action={href(path)}
          hint="Id of an event or payment"
          statuses={DELIVERY_STATUSES}
          choice={{ label: 'Event type', values: EVENT_TYPES.map((one) => [one, one]) }}
        />
        <Table
          label="Deliveries"
          head={['Event', 'Type', 'Created', 'Delivery', 'Attempts', 'Next attempt', 'Act']}
          rows={page.rows.map((event) => ({
            key: event._id,
            href: href(`${path}/${event._id}`),
            cells: renderCells(call, event),
          }))}
          none="Nothing matches."
        />
        <ListPager listQuery={listQuery} page={page} action={href(path)} />
      </Panel>
    </>
  );
}

function renderCells(call: Call, event: EventDocument) {
  const { _id, type, created, delivery } = event;
  return [
    <code key="id">{_id}</code>,
    <span key="type" class="type">
      {type}
    </span>,
    <When key="created" at={created} />,
    <Status key="status" of={delivery.status} />,
    String(delivery.attempts),
    <When key="next" at={delivery.next_attempt_at} />,
    <SendAgain key="again" call={call} event={event} />,
  ];
}

/** Renders nothing for a test event, which is never sent again. */
export function SendAgain({ call, event }: { call: Call; event: EventDocument }) {
  if (!call.may('events.send') || event.data['test'] === true) return null;
  return (
    <PostForm
      viewer={call.viewer}
      action={call.href(`/webhooks/deliveries/${event._id}/send-again`)}
      button="Send again"
      tone="plain"
      busy="Sending…"
    />
  );
}
