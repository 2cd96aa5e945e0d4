import {
  DELIVERY_STATUSES,
  type DeliveryStatus,
  EVENT_TYPES,
  type EventType,
} from '../../domain/event';
import type { Stores } from '../../store';
import type { EventDocument } from '../../store/events';
import type { DashboardDeps } from '../deps';
import { PageHead, Pager, Panel, PostForm, Table, When } from '../parts';
import {
  boundsOf,
  type ListPage,
  type ListWish,
  PAGE_ROWS,
  pageOf,
  queryOf,
  readWish,
} from '../resources/filter';
import { ListFilters } from '../resources/list-filters';
import type { Answer, Call, Route } from '../route';
import { Status } from '../status';

export const DELIVERIES_ROUTE: Route = {
  method: 'get',
  path: '/webhooks/deliveries',
  act: 'view',
  title: 'Deliveries',
  handle: showDeliveries,
};

/** The select `Event type` stands where lists of resources have the method. */
const CHOICES = { statuses: DELIVERY_STATUSES, methods: EVENT_TYPES };

async function showDeliveries(call: Call, { stores }: DashboardDeps): Promise<Answer> {
  const wish = readWish(call.query, CHOICES);
  const page = await readDeliveries(stores, call.scope, wish);
  return { page: <Deliveries call={call} wish={wish} page={page} /> };
}

async function readDeliveries(
  { events }: Pick<Stores, 'events'>,
  { account_id, livemode }: Call['scope'],
  wish: ListWish,
): Promise<ListPage<EventDocument>> {
  const { search, before, after } = wish;
  if (search.startsWith('evt_')) {
    const found = await events.get(search);
    const isOwn = found?.account_id === account_id && found.livemode === livemode;
    return { rows: isOwn ? [found] : [], older: undefined, newer: undefined };
  }
  const found = await events.list({
    account_id,
    livemode,
    resource_id: search === '' ? undefined : search,
    type: typeOf(wish.method),
    statuses: statusesOf(wish.status),
    ...boundsOf(wish),
    before,
    after,
    limit: PAGE_ROWS + 1,
  });
  return pageOf(found, wish);
}

function statusesOf(text: string | undefined): readonly DeliveryStatus[] | undefined {
  return text === undefined ? undefined : DELIVERY_STATUSES.filter((status) => status === text);
}

function typeOf(text: string | undefined): EventType | undefined {
  return EVENT_TYPES.find((type) => type === text);
}

interface DeliveriesProps {
  call: Call;
  wish: ListWish;
  page: ListPage<EventDocument>;
}

function Deliveries({ call, wish, page }: DeliveriesProps) {
  const { href } = call;
  const path = '/webhooks/deliveries';
  const to = (cursor: Parameters<typeof queryOf>[1]) => href(`${path}${queryOf(wish, cursor)}`);
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
          wish={wish}
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
            cells: cellsOf(call, event),
          }))}
          none="Nothing matches."
        />
        <Pager
          older={page.older === undefined ? undefined : to({ before: page.older })}
          newer={page.newer === undefined ? undefined : to({ after: page.newer })}
        />
      </Panel>
    </>
  );
}

function cellsOf(call: Call, event: EventDocument) {
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

/** Button that sends an event again; a test event is sent anew instead. */
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
