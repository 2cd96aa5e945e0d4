import { ServiceError } from '../../domain/errors';
import { formatCount } from '../../domain/format-count';
import { EVENT_TYPES } from '../../domain/webhook/event';
import { countFailedEvents, sendFailedEvents } from '../../service/events/redeliveries';
import { sendTestEvent } from '../../service/events/test-event';
import { Field, Filters, Select } from '../frame/fields';
import { field, redirect } from '../frame/form';
import { Note, PageHead, Panel, PostForm, useCall } from '../frame/parts';
import { postRoute, type Route } from '../frame/route';
import { parseDay } from '../resources/list';
import { AttemptFacts } from './deliveries';
import { BackToWebhooks, ENDPOINTS_PATH } from './endpoint-parts';

const PATH = '/webhooks/send-failed';
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
          const request = { ...scope, endpoint_id: call.params['id'], type, request_id };
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
          const { id } = call.params;
          if (id !== undefined && error.code === 'webhook_not_set') return 'not_found';
          return redirect(call, '/webhooks', 'bad', error.message);
        }
      },
    }),
  ),
  {
    method: 'get',
    path: PATH,
    act: 'events.send',
    cost: 20,
    title: 'Send failed events again',
    handle: async (call, deps) => {
      const weekAgo = new Date(call.now.getTime() - 7 * DAY_MS).toISOString().slice(0, 10);
      const from = parseDay(call.query.get('from') ?? '') ?? weekAgo;
      try {
        const count = await countFailedEvents(deps, call.scope, from);
        return { page: <SendFailedPage from={from} count={count} /> };
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error;
        return redirect(call, '/webhooks', 'bad', error.message);
      }
    },
  },
  postRoute(PATH, 'events.send', {
    cost: 20,
    title: 'Send failed events again',
    whileFrozen: true,
    handle: async (call, deps) => {
      const from = parseDay(field(call.form, 'from'));
      if (from === undefined) return 'not_found';
      await sendFailedEvents(deps, call.scope, from);
      const text =
        'They are being sent, 20 a second. Those that are not delivered yet are listed here.';
      return redirect(call, '/webhooks/deliveries?status=pending', 'good', text);
    },
  }),
];

function SendFailedPage({ from, count }: { from: string; count: number }) {
  const { href } = useCall();
  return (
    <>
      <PageHead title="Send failed events again" />
      <Panel>
        <Filters action={href(PATH)}>
          <Field label="Failed since" name="from" type="date" value={from} hint="A day, UTC." />
        </Filters>
        {count === 0 ? (
          <p>No event has failed since then.</p>
        ) : (
          <>
            <Note tone="note">
              {`${formatCount(count, 'event')} failed. Each is sent to the endpoint as it is now.`}
            </Note>
            <PostForm
              path={PATH}
              button={`Send ${count} again`}
              hidden={{ from }}
              busy="Sending…"
            />
          </>
        )}
        <a href={href('/webhooks/deliveries')}>Back to deliveries</a>
      </Panel>
    </>
  );
}

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
