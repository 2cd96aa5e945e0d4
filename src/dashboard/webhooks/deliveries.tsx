import { ServiceError } from '../../domain/errors';
import { DELIVERY_STATUSES, EVENT_TYPES, findEventResource } from '../../domain/events/event';
import { formatCount } from '../../domain/printable';
import { listEndpoints } from '../../service/events/endpoints/manage';
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
import {
  countFailedEvents,
  sendEventAgain,
  sendFailedEvents,
} from '../../service/events/redeliveries';
import { sendTestEvent } from '../../service/events/test-event';
import { deliveryText } from '../../service/money/resources/timeline';
import { Field, Filters, Select } from '../frame/fields';
import { field } from '../frame/form';
import {
  type Column,
  Facts,
  Note,
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
import { ResourceLink } from '../resources/kinds';
import { ListPanel, parseDay, parseListQuery } from '../resources/list';
import { BackToWebhooks, ENDPOINTS_PATH, showUrl } from './endpoint-parts';

const PATH = '/webhooks/deliveries';

const COLUMNS: readonly Column<ListedEvent>[] = [
  ['Event', ({ event }) => <code>{event._id}</code>],
  ['Type', ({ event }) => <span class="type">{event.type}</span>],
  ['Created', ({ event }) => <When at={event.created} />],
  ['Delivery', ({ deliveries }) => <States deliveries={deliveries} />],
  ['Attempts', ({ deliveries }) => String(deliveries.reduce((sum, row) => sum + row.attempts, 0))],
  [
    'Next attempt',
    ({ deliveries }) => {
      const times = deliveries.flatMap(({ next_attempt_at: at }) => at ?? []);
      return <When at={times.sort()[0] ?? null} />;
    },
  ],
  ['Act', ({ event }) => <SendAgain event={event} />],
];

export const DELIVERY_ROUTES: readonly Route[] = [
  viewRoute(PATH, 'Deliveries', async (call, deps) => {
    const choices = { statuses: DELIVERY_STATUSES, methods: EVENT_TYPES };
    const listQuery = parseListQuery(call.query, choices);
    const page = await listEvents(deps, call.scope, listQuery);
    return (
      <>
        <PageHead title="Deliveries">
          {call.may('events.send') && (
            <a class="button plain" href={call.href(SEND_PATH)}>
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
    const result = await readEvent(deps, call.scope, call.id);
    if (result === null) return 'not_found';
    const endpoints = await listEndpoints(deps, call.scope);
    const { event, deliveries } = result;
    const attempts = listAttempts(deliveries);
    const { _id, type, created, body, resource_id, data } = event;
    const isSeveral = deliveries.length > 1;
    const oldest = presentOldest(deliveries);
    const kind = findEventResource(type);
    const find = (id: string) => endpoints.find(({ endpoint_id }) => endpoint_id === id);
    const page = (
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
          {isSeveral && (
            <Table
              label="Deliveries"
              rows={deliveries}
              getHref={({ endpoint_id: id }) => find(id) && call.href(`${ENDPOINTS_PATH}/${id}`)}
              columns={[
                [
                  'Endpoint',
                  ({ endpoint_id: id }) => {
                    const endpoint = find(id);
                    return <code>{endpoint ? showUrl(call, endpoint) : id}</code>;
                  },
                ],
                ['Delivery', ({ status }) => <Status of={status} />],
                ['Attempts', ({ attempts }) => String(attempts)],
                ['Next attempt', ({ next_attempt_at }) => <When at={next_attempt_at} />],
              ]}
              none=""
            />
          )}
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
    return { title: type, page };
  }),
  postRoute(`${PATH}/:id/send-again`, 'events.send', {
    title: 'Send again',
    whileFrozen: true,
    handle: async (call, deps) => {
      const path = `${PATH}/${call.id}`;
      try {
        if (!(await sendEventAgain(deps, call.scope, call.id))) return 'not_found';
        return { go: path, good: 'It is being sent again. Reload this page to see the answer.' };
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error;
        return { go: path, bad: error.message };
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

function AttemptFacts({ row }: { row: DeliveryAttempt }) {
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

const SEND_PATH = '/webhooks/send-failed';
const DAY_MS = 86_400_000;

export const SEND_ROUTES: readonly Route[] = [
  ...['/webhooks', `${ENDPOINTS_PATH}/:id`].map((base) =>
    postRoute(`${base}/test`, 'events.send', {
      cost: 20,
      title: 'Test event',
      /** Waits at most ten seconds. */
      handle: async (call, deps) => {
        const { scope, form, href, requestId: request_id } = call;
        const requestedType = field(form, 'type');
        const type = EVENT_TYPES.find((one) => one === requestedType);
        if (type === undefined) return 'not_found';
        const { allowPrivate } = deps.webhookUrls;
        try {
          const request = { ...scope, endpoint_id: call.id || undefined, type, request_id };
          const row = await sendTestEvent({ ...deps, allowPrivate }, request);
          const isGood = row.outcome === 'delivered';
          return (
            <>
              <PageHead
                title={isGood ? 'The test was acknowledged' : 'The test was not acknowledged'}
              />
              <Panel title={type}>
                <AttemptFacts row={row} />
                <a href={href(`/webhooks/deliveries/${row.event_id}`)}>Show the event</a>
                <BackToWebhooks />
              </Panel>
            </>
          );
        } catch (error) {
          if (!(error instanceof ServiceError)) throw error;
          if (call.id !== '' && error.code === 'webhook_not_set') return 'not_found';
          return { go: '/webhooks', bad: error.message };
        }
      },
    }),
  ),
  {
    method: 'get',
    path: SEND_PATH,
    act: 'events.send',
    cost: 20,
    title: 'Send failed events again',
    handle: async (call, deps) => {
      const weekAgo = new Date(call.now.getTime() - 7 * DAY_MS).toISOString().slice(0, 10);
      const from = parseDay(call.query.get('from') ?? '') ?? weekAgo;
      try {
        const count = await countFailedEvents(deps, call.scope, from);
        return (
          <>
            <PageHead title="Send failed events again" />
            <Panel>
              <Filters action={call.href(SEND_PATH)}>
                <Field
                  label="Failed since"
                  name="from"
                  type="date"
                  value={from}
                  hint="A day, UTC."
                />
              </Filters>
              {count === 0 ? (
                <p>No event has failed since then.</p>
              ) : (
                <>
                  <Note tone="note">
                    {`${formatCount(count, 'event')} failed. Each is sent to the endpoint as it is now.`}
                  </Note>
                  <PostForm
                    path={SEND_PATH}
                    button={`Send ${count} again`}
                    hidden={{ from }}
                    busy="Sending…"
                  />
                </>
              )}
              <a href={call.href(PATH)}>Back to deliveries</a>
            </Panel>
          </>
        );
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error;
        return { go: '/webhooks', bad: error.message };
      }
    },
  },
  postRoute(SEND_PATH, 'events.send', {
    cost: 20,
    title: 'Send failed events again',
    whileFrozen: true,
    handle: async (call, deps) => {
      const from = parseDay(field(call.form, 'from'));
      if (from === undefined) return 'not_found';
      await sendFailedEvents(deps, call.scope, from);
      const good =
        'They are being sent, 20 a second. Those that are not delivered yet are listed here.';
      return { go: '/webhooks/deliveries?status=pending', good };
    },
  }),
];

export function TestPanel({ base = '/webhooks' }: { base?: string }) {
  return (
    <Panel title="Test">
      <p class="muted">
        A test is signed and listed as any other event, says <code>"test": true</code> in its data,
        and is tried once.
      </p>
      <PostForm path={`${base}/test`} button="Send test event" busy="Waiting for the answer…">
        <Select
          label="Event type"
          name="type"
          value="payment.settled"
          options={EVENT_TYPES.map((type) => [type, type] as const)}
        />
      </PostForm>
    </Panel>
  );
}
