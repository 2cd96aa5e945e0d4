import { EVENT_TYPES, type EventType } from '../../domain/webhook/event';
import { listEndpoints } from '../../service/endpoints/manage';
import { type EndpointSummary, getEndpoint, setEndpoint } from '../../service/endpoints/oldest';
import type { Endpoint } from '../../service/endpoints/present';
import { checkEndpointUrl } from '../../service/endpoints/url';
import { getOrigin } from '../../webhooks/url';
import { Checks, Field } from '../frame/fields';
import { field, redirect } from '../frame/form';
import { Note, PageHead, Panel, PostForm } from '../frame/parts';
import { type Answer, type Call, type PageDeps, type Route, viewRoute } from '../frame/route';
import { StateBadge } from './endpoint-settings';
import { EndpointsPanel } from './endpoints';
import { SecretPanel } from './secret';
import { TestPanel } from './test-panel';

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
];

async function showWebhooks(call: Call, deps: PageDeps): Promise<Answer> {
  return { page: <WebhooksPage call={call} {...(await readEndpoints(call, deps))} /> };
}

async function readEndpoints({ scope }: Call, deps: PageDeps) {
  const [endpoint, endpoints] = await Promise.all([
    getEndpoint(deps, scope),
    listEndpoints(deps, scope),
  ]);
  return { endpoint, endpoints };
}

async function saveEndpoint(call: Call, deps: PageDeps): Promise<Answer> {
  const { scope, form } = call;
  const requestedTypes = form.getAll('events');
  const events = EVENT_TYPES.filter((type) => requestedTypes.includes(type));
  const url = field(form, 'url');
  const urlCheck = await checkEndpointUrl(deps.webhookUrls, scope, url);
  const fault = urlCheck.ok ? undefined : urlCheck.message;
  if (!urlCheck.ok || events.length === 0) {
    const refused = { url, fault, events };
    const stored = await readEndpoints(call, deps);
    return { page: <WebhooksPage {...{ call, refused }} {...stored} />, status: 400 };
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
  /** All of them, the oldest first. */
  endpoints: Endpoint[];
  refused?: RefusedForm;
}

function WebhooksPage({ call, endpoint, endpoints, refused }: PageProps) {
  return (
    <>
      <PageHead title="Webhooks">
        <a class="button plain" href={call.href('/webhooks/deliveries')}>
          Deliveries
        </a>
      </PageHead>
      <EndpointPanel {...{ call, endpoint, endpoints }} {...(refused && { refused })} />
      {endpoint !== null && <SecretPanel call={call} endpoint={endpoint} />}
      {endpoints[0]?.disabled_reason === undefined &&
        endpoint !== null &&
        call.may('events.send') && <TestPanel call={call} />}
      <EndpointsPanel {...{ call, endpoints }} />
      <VerifyPanel />
    </>
  );
}

/** Says of several endpoints which one the form, the secret and the test are about. */
function OldestHint({ endpoints }: Pick<PageProps, 'endpoints'>) {
  const [oldest, ...others] = endpoints;
  if (oldest === undefined || (others.length === 0 && oldest.disabled_reason === undefined)) {
    return null;
  }
  return (
    <p class="muted">
      {others.length > 0 && 'Your oldest endpoint; the list of all is below. '}
      <StateBadge endpoint={oldest} />
    </p>
  );
}

function EndpointPanel({ call, endpoint, endpoints, refused }: PageProps) {
  const url = refused?.url ?? endpoint?.url ?? '';
  const events = refused?.events ?? endpoint?.enabled_events ?? EVENT_TYPES;
  if (!call.may('webhooks.change')) {
    return (
      <Panel title="Endpoint">
        <OldestHint endpoints={endpoints} />
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
      <OldestHint endpoints={endpoints} />
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
