import { ServiceError } from '../../domain/errors';
import { EVENT_TYPES, type EventType } from '../../domain/webhook/event';
import { type EndpointSummary, getEndpoint, setEndpoint } from '../../service/endpoints';
import { sendTestEvent } from '../../service/events/test-event';
import { checkWebhookUrl, getOrigin } from '../../webhooks/url';
import { Checks, Field, Select } from '../frame/fields';
import { field, redirect } from '../frame/form';
import { Note, PageHead, Panel, PostForm } from '../frame/parts';
import { type Answer, type Call, type PageDeps, type Route, viewRoute } from '../frame/route';
import { AttemptFacts } from './deliveries';
import { SecretPanel } from './secret';

export const ENDPOINT_ROUTES: readonly Route[] = [
  viewRoute('/webhooks', 'Webhooks', showWebhooks),
  {
    method: 'post',
    path: '/webhooks/endpoint',
    act: 'webhooks.change',
    title: 'Save the endpoint',
    confirmation: {
      question: (form) => `All live events go to ${field(form, 'url')} from now on.`,
      button: 'Save the endpoint',
      proof: 'step_up',
      liveOnly: true,
    },
    handle: saveEndpoint,
  },
  {
    method: 'post',
    path: '/webhooks/test',
    act: 'events.send',
    cost: 20,
    title: 'Test event',
    handle: sendTest,
  },
];

async function showWebhooks(call: Call, deps: PageDeps): Promise<Answer> {
  const endpoint = await getEndpoint(deps, call.scope);
  return { page: <WebhooksPage call={call} endpoint={endpoint} /> };
}

async function saveEndpoint(call: Call, deps: PageDeps): Promise<Answer> {
  const { scope, form } = call;
  const requestedTypes = form.getAll('events');
  const events = EVENT_TYPES.filter((type) => requestedTypes.includes(type));
  const url = field(form, 'url');
  const allowPrivate = deps.allowPrivateWebhooks && !scope.livemode;
  const policy = { allowPrivate, isDenied: deps.isDeniedAddress };
  const urlCheck = await checkWebhookUrl(url, policy);
  const fault = urlCheck.ok ? undefined : urlCheck.message;
  if (!urlCheck.ok || events.length === 0) {
    const endpoint = await getEndpoint(deps, scope);
    const refused = { url, fault, events };
    return { page: <WebhooksPage {...{ call, endpoint, refused }} />, status: 400 };
  }
  const isAll = events.length === EVENT_TYPES.length;
  const request = { url: urlCheck.url, events: isAll ? ('all' as const) : events };
  await setEndpoint(deps, scope, { ...request, showsSecret: false });
  const text = 'The endpoint is saved. Send a test event to see that it answers.';
  return redirect(call, '/webhooks', 'good', text);
}

interface RefusedForm {
  url: string;
  fault: string | undefined;
  events: readonly EventType[];
}

interface PageProps {
  call: Call;
  endpoint: EndpointSummary | null;
  refused?: RefusedForm;
}

function WebhooksPage({ call, endpoint, refused }: PageProps) {
  return (
    <>
      <PageHead title="Webhooks">
        <a class="button plain" href={call.href('/webhooks/deliveries')}>
          Deliveries
        </a>
      </PageHead>
      <EndpointPanel {...{ call, endpoint }} {...(refused && { refused })} />
      {endpoint !== null && <SecretPanel call={call} endpoint={endpoint} />}
      {endpoint !== null && call.may('events.send') && <TestPanel call={call} />}
      <VerifyPanel />
    </>
  );
}

function EndpointPanel({ call, endpoint, refused }: PageProps) {
  const url = refused?.url ?? endpoint?.url ?? '';
  const events = refused?.events ?? endpoint?.enabled_events ?? EVENT_TYPES;
  if (!call.may('webhooks.change')) {
    return (
      <Panel title="Endpoint">
        <p>
          {endpoint === null ? (
            'No endpoint is registered.'
          ) : (
            <code>{getOrigin(endpoint.url)}</code>
          )}
        </p>
        {endpoint !== null && <p class="muted">{events.join(', ')}</p>}
      </Panel>
    );
  }
  return (
    <Panel title="Endpoint">
      {refused?.events.length === 0 && <Note tone="bad">Choose at least one event type.</Note>}
      <PostForm call={call} path="/webhooks/endpoint" button="Save endpoint" busy="Saving…">
        <Field
          label="Endpoint URL"
          name="url"
          type="url"
          value={url}
          hint="https, at a public address. Each environment has its own."
          fault={refused?.fault}
          required
        />
        <Checks
          legend="Events to send"
          name="events"
          options={EVENT_TYPES.map((type) => [type, type] as const)}
          checked={events}
          hint="Other events are recorded and listed, and can be sent manually."
        />
      </PostForm>
    </Panel>
  );
}

function VerifyPanel() {
  return (
    <Panel title="Verify a delivery">
      <p>
        The header <code>Service-Signature</code> is <code>t=…,v1=…</code>: the seconds since 1970,
        and the hex HMAC-SHA256 of <code>t</code>, a full stop and the body, under the signing
        secret.
      </p>
      <p class="muted">
        Use the raw body as received, compare in constant time, and refuse a time more than 300
        seconds away. The documentation has a complete receiver. Never put the secret in your code.
      </p>
    </Panel>
  );
}

function TestPanel({ call }: { call: Call }) {
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
    return (
      <>
        <PageHead title={isGood ? 'The test was acknowledged' : 'The test was not acknowledged'} />
        <Panel title={type}>
          <AttemptFacts call={call} row={row} />
          <a href={href(`/webhooks/deliveries/${row.event_id}`)}>Show the event</a>
          <a href={href('/webhooks')}>Back to webhooks</a>
        </Panel>
      </>
    );
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return redirect(call, '/webhooks', 'bad', error.message);
  }
}
