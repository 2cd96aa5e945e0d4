import { ServiceError } from '../../domain/errors';
import { findEventResource } from '../../domain/webhook/event';
import { type DeliveryDocument, type EventDocument, readEvent } from '../../service/events/list';
import { sendEventAgain } from '../../service/events/redeliveries';
import { deliveryText } from '../../service/resources/timeline';
import { redirect } from '../frame/form';
import { Facts, PageHead, Panel, Status, When } from '../frame/parts';
import { type Answer, type Call, type PageDeps, type Route, viewRoute } from '../frame/route';
import { ResourceLink } from '../resources/kinds';
import { SendAgain } from './deliveries';

export const DELIVERY_ROUTES: readonly Route[] = [
  viewRoute('/webhooks/deliveries/:id', 'Delivery', showDelivery),
  {
    method: 'post',
    path: '/webhooks/deliveries/:id/send-again',
    act: 'events.send',
    title: 'Send again',
    whileFrozen: true,
    handle: sendAgain,
  },
];

async function showDelivery(call: Call, deps: PageDeps): Promise<Answer> {
  const result = await readEvent(deps, call.scope, call.params['id'] ?? '');
  if (result === null) return 'not_found';
  return { title: result.event.type, page: <DeliveryPage call={call} {...result} /> };
}

async function sendAgain(call: Call, deps: PageDeps): Promise<Answer> {
  const { id = '' } = call.params;
  const path = `/webhooks/deliveries/${id}`;
  try {
    if (!(await sendEventAgain(deps, call.scope, id))) return 'not_found';
    const text = 'It is being sent again. Reload this page to see the answer.';
    return redirect(call, path, 'good', text);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return redirect(call, path, 'bad', error.message);
  }
}

interface DeliveryProps {
  call: Call;
  event: EventDocument;
  attempts: readonly DeliveryDocument[];
}

function DeliveryPage({ call, event, attempts }: DeliveryProps) {
  const { _id, type, created, delivery, body, resource_id, data } = event;
  const kind = findEventResource(type);
  return (
    <>
      <PageHead title={type} badge={<Status of={delivery.status} />}>
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
            ['Delivery', deliveryText(delivery)],
            ['Attempts', String(delivery.attempts)],
            ['Next attempt', <When key="next" at={delivery.next_attempt_at} />],
          ]}
        />
        <h2>Request body</h2>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also by keyboard */}
        <pre class="wrap" tabIndex={0}>
          {body}
        </pre>
      </Panel>
      {attempts.map((row) => (
        <Panel key={`${row.run} ${row.attempt}`} title={attemptTitle(row)}>
          <AttemptFacts row={row} />
        </Panel>
      ))}
      {attempts.length === 0 && <p class="empty">No attempt was made yet.</p>}
    </>
  );
}

function attemptTitle({ run, attempt }: DeliveryDocument): string {
  return run === 0 ? `Attempt ${attempt}` : `Attempt ${attempt}, sent again ${run}`;
}

export function AttemptFacts({ row }: { row: DeliveryDocument }) {
  const { outcome, at, url, status_code, error, duration_ms, response_excerpt } = row;
  return (
    <>
      <Facts
        rows={[
          ['Outcome', <Status key="outcome" of={outcome} />],
          ['At', <When key="at" at={at} />],
          ['URL', <code key="url">{url}</code>],
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
