import { EVENT_TYPES, type EventType } from '../../domain/event';
import { setEndpoint } from '../../merchants/endpoint';
import type { EndpointDocument } from '../../store/endpoints';
import { checkWebhookUrl } from '../../webhooks/url';
import type { DashboardDeps } from '../deps';
import { Checks, Field } from '../fields';
import { field } from '../form';
import { Note, PageHead, Panel, PostForm } from '../parts';
import type { Answer, Call, Route } from '../route';
import { endpointDeps } from './acting';
import { SecretPanel, Snippets, TestPanel } from './panels';

export const ENDPOINT_ROUTES: readonly Route[] = [
  { method: 'get', path: '/webhooks', act: 'view', title: 'Webhooks', handle: showWebhooks },
  {
    method: 'post',
    path: '/webhooks/endpoint',
    act: 'webhooks.change',
    title: 'Save the endpoint',
    handle: saveEndpoint,
  },
];

async function showWebhooks(call: Call, { stores }: DashboardDeps): Promise<Answer> {
  const { account_id, livemode } = call.scope;
  const endpoint = await stores.endpoints.get(account_id, livemode);
  return { page: <WebhooksPage call={call} endpoint={endpoint} /> };
}

async function saveEndpoint(call: Call, deps: DashboardDeps): Promise<Answer> {
  const { scope, form, href } = call;
  const { account_id: accountId, livemode } = scope;
  const wanted = form.getAll('events');
  const events = EVENT_TYPES.filter((type) => wanted.includes(type));
  const given = field(form, 'url');
  const allowPrivate = deps.allowPrivateWebhooks && !livemode;
  const policy = { allowPrivate, isDenied: deps.isDeniedAddress };
  const checked = await checkWebhookUrl(given, policy);
  const fault = checked.ok ? undefined : checked.message;
  if (!checked.ok || events.length === 0) {
    const endpoint = await deps.stores.endpoints.get(accountId, livemode);
    const refused = { url: given, fault, events };
    return { page: <WebhooksPage {...{ call, endpoint, refused }} />, status: 400 };
  }
  await setEndpoint(
    endpointDeps(call, deps),
    { accountId, livemode },
    { url: checked.url, events: events.length === EVENT_TYPES.length ? 'all' : events },
  );
  const text = 'The endpoint is saved. Send a test event to see that it answers.';
  return { go: href('/webhooks'), flash: { tone: 'good', text } };
}

/** Form as it was sent, and why it was refused. */
interface Refused {
  url: string;
  fault: string | undefined;
  events: readonly EventType[];
}

interface PageProps {
  call: Call;
  endpoint: EndpointDocument | null;
  refused?: Refused;
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
      <Snippets />
    </>
  );
}

function EndpointPanel({ call, endpoint, refused }: PageProps) {
  const url = refused?.url ?? endpoint?.url ?? '';
  const events = refused?.events ?? endpoint?.enabled_events ?? EVENT_TYPES;
  if (!call.may('webhooks.change')) {
    return (
      <Panel title="Endpoint">
        <p>{endpoint === null ? 'No endpoint is registered.' : <code>{endpoint.url}</code>}</p>
        {endpoint !== null && <p class="muted">{events.join(', ')}</p>}
      </Panel>
    );
  }
  return (
    <Panel title="Endpoint">
      {refused?.events.length === 0 && <Note tone="bad">Choose at least one event type.</Note>}
      <PostForm
        viewer={call.viewer}
        action={call.href('/webhooks/endpoint')}
        button="Save endpoint"
        busy="Saving…"
      >
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
          hint="Others are recorded and listed, and can be sent by hand."
        />
      </PostForm>
    </Panel>
  );
}
