import { ActFailure } from '../../domain/act-failure';
import { EVENT_TYPES } from '../../domain/event';
import { sendTestEvent } from '../../webhooks/test-event';
import type { DashboardDeps } from '../deps';
import { field } from '../form';
import { PageHead, Panel } from '../parts';
import type { Answer, Call, Route } from '../route';
import { AttemptFacts } from './attempt';

export const TEST_EVENT_ROUTE: Route = {
  method: 'post',
  path: '/webhooks/test',
  act: 'events.send',
  title: 'Test event',
  handle: sendTest,
};

/** Sends it and waits for the answer, ten seconds at most. */
async function sendTest(call: Call, deps: DashboardDeps): Promise<Answer> {
  const { scope, form, href, requestId: request_id } = call;
  const asked = field(form, 'type');
  const type = EVENT_TYPES.find((one) => one === asked);
  if (type === undefined) return 'not_found';
  const { allowPrivateWebhooks: allowPrivate } = deps;
  try {
    await call.audit({ act: 'event.sent', ...scope, target: null, after: { type, test: true } });
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
    if (!(error instanceof ActFailure)) throw error;
    return { go: href('/webhooks'), flash: { tone: 'bad', text: error.message } };
  }
}
