import { ServiceError } from '../../domain/errors';
import { EVENT_TYPES } from '../../domain/webhook/event';
import { sendTestEvent } from '../../service/events/test-event';
import { Select } from '../frame/fields';
import { field, redirect } from '../frame/form';
import { PageHead, Panel, PostForm } from '../frame/parts';
import type { Answer, Call, PageDeps, Route } from '../frame/route';
import { AttemptFacts } from './deliveries';
import { BackToWebhooks } from './endpoint-settings';

export const TEST_ROUTES: readonly Route[] = ['/webhooks', '/webhooks/endpoints/:id'].map(
  (base) => ({
    method: 'post',
    path: `${base}/test`,
    act: 'events.send',
    cost: 20,
    title: 'Test event',
    handle: sendTest,
  }),
);

export function TestPanel({ call, base = '/webhooks' }: { call: Call; base?: string }) {
  return (
    <Panel title="Test">
      <p class="muted">
        A test is signed and listed as any other event, says <code>"test": true</code> in its data,
        and is tried once.
      </p>
      <PostForm
        call={call}
        path={`${base}/test`}
        button="Send test event"
        busy="Waiting for the answer…"
      >
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

/** Waits at most ten seconds. */
async function sendTest(call: Call, deps: PageDeps): Promise<Answer> {
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
        <PageHead title={isGood ? 'The test was acknowledged' : 'The test was not acknowledged'} />
        <Panel title={type}>
          <AttemptFacts call={call} row={row} />
          <a href={href(`/webhooks/deliveries/${row.event_id}`)}>Show the event</a>
          <BackToWebhooks call={call} />
        </Panel>
      </>
    );
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const { id } = call.params;
    if (id !== undefined && error.code === 'webhook_not_set') return 'not_found';
    return redirect(call, '/webhooks', 'bad', error.message);
  }
}
