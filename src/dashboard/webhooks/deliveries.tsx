import { DELIVERY_STATUSES, EVENT_TYPES } from '../../domain/webhook/event';
import { type EventDocument, listEvents } from '../../service/events/list';
import { PageHead, Panel, PostForm, Status, Table, When } from '../frame/parts';
import { type Answer, type Call, type PageDeps, viewRoute } from '../frame/route';
import { ListFilters, ListPager, parseListQuery } from '../resources/list-filters';

const PATH = '/webhooks/deliveries';

export const DELIVERIES_ROUTE = viewRoute(PATH, 'Deliveries', showDeliveries);

/** Choices of the filters; `Event type` replaces the method. */
const CHOICES = { statuses: DELIVERY_STATUSES, methods: EVENT_TYPES };

async function showDeliveries(call: Call, deps: PageDeps): Promise<Answer> {
  const listQuery = parseListQuery(call.query, CHOICES);
  const { rows, ...neighbors } = await listEvents(deps, call.scope, listQuery);
  const action = call.href(PATH);
  return {
    page: (
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
            rows={rows.map((event) => ({
              key: event._id,
              href: `${action}/${event._id}`,
              cells: renderCells(call, event),
            }))}
            none="Nothing matches."
          />
          <ListPager listQuery={listQuery} page={neighbors} action={action} />
        </Panel>
      </>
    ),
  };
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
      call={call}
      path={`${PATH}/${event._id}/send-again`}
      button="Send again"
      tone="plain"
      busy="Sending…"
    />
  );
}
