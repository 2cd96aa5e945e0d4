import { ServiceError } from '../../domain/errors';
import { EVENT_TYPES } from '../../domain/webhook/event';
import { sendTestEvent } from '../../service/events/test-event';
import { Select } from '../frame/fields';
import { field, redirect } from '../frame/form';
import { PageHead, Panel, PostForm } from '../frame/parts';
import type { Answer, Call, PageDeps, Route } from '../frame/route';
import { AttemptFacts } from './delivery';

export const TEST_EVENT_ROUTE: Route = {
  method: 'post',
  path: '/webhooks/test',
  act: 'events.send',
  title: 'Test event',
  handle: sendTest,
};

export function TestPanel({ call }: { call: Call }) {
  return (
    <Panel title="Test">
      <p class="muted">
        A test is signed and listed as any other event, says <code>"test": true</code> in its data,
        and is tried once.
      </p>
      <PostForm
        call={call}
        path="/webhooks/test"
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

/** Waits for the answer, ten seconds at most. */
async function sendTest(call: Call, deps: PageDeps): Promise<Answer> {
  const { scope, form, href, requestId: request_id } = call;
  const requestedType = field(form, 'type');
  const type = EVENT_TYPES.find((one) => one === requestedType);
  if (type === undefined) return 'not_found';
  const { allowPrivateWebhooks: allowPrivate } = deps;
  try {
    const row = await sendTestEvent({ ...deps, allowPrivate }, { ...scope, type, request_id });
    const isGood = row.outcome === 'delivered';
    return {
      page: (
        <>
          <PageHead
            title={isGood ? 'The test was acknowledged' : 'The test was not acknowledged'}
          />
          <Panel title={type}>
            <AttemptFacts row={row} />
            <a href={href(`/webhooks/deliveries/${row.event_id}`)}>Show the event</a>
            <a href={href('/webhooks')}>Back to webhooks</a>
          </Panel>
        </>
      ),
    };
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return redirect(call, '/webhooks', 'bad', error.message);
  }
}
