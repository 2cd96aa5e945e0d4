import { listEnabledEvents } from '../../domain/webhook/endpoint';
import { type Endpoint, listEndpoints } from '../../service/events/endpoints/manage';

import {
  type EndpointSummary,
  getEndpoint,
  setEndpoint,
} from '../../service/events/endpoints/oldest';
import { getOrigin } from '../../webhooks/url';
import { field, redirect } from '../frame/form';
import { PageHead, Panel } from '../frame/parts';
import { type Answer, type Call, type PageDeps, type Route, viewRoute } from '../frame/route';
import { type RefusedSettings, readSettings, SettingsForm, StateBadge } from './endpoint-settings';
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
  const { settings, refused } = await readSettings(call, deps);
  if (settings === undefined) {
    const stored = await readEndpoints(call, deps);
    return { page: <WebhooksPage {...{ call, refused }} {...stored} />, status: 400 };
  }
  const { url, events } = settings;
  await setEndpoint(deps, call.scope, { url, events, showsSecret: false });
  const text = 'The endpoint is saved. Send a test event to see that it answers.';
  return redirect(call, '/webhooks', 'good', text);
}

interface PageProps {
  call: Call;
  endpoint: EndpointSummary | null;
  /** Oldest first. */
  endpoints: Endpoint[];
  refused?: RefusedSettings;
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
        {endpoint !== null && (
          <p class="muted">{listEnabledEvents(endpoint.enabled_events).join(', ')}</p>
        )}
      </Panel>
    );
  }
  return (
    <Panel title="Endpoint">
      <OldestHint endpoints={endpoints} />
      <SettingsForm
        {...{ call, refused }}
        path="/webhooks/endpoint"
        button="Save endpoint"
        endpoint={endpoint ?? undefined}
        isOldest
      />
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
