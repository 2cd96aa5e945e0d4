import { Refusal } from '../../domain/errors';
import { ENDPOINT_STATUSES } from '../../domain/webhook/endpoint';
import {
  changeEndpoint,
  deleteEndpoint,
  type Endpoint,
  listEndpoints,
  presentEndpoint,
} from '../../service/events/endpoints/manage';
import { type EndpointSummary, getEndpoint } from '../../service/events/endpoints/oldest';
import { field, redirect } from '../frame/form';
import { Facts, Note, PageHead, Panel, PostForm } from '../frame/parts';
import { type Answer, type Call, type PageDeps, type Route, viewRoute } from '../frame/route';
import {
  BackToWebhooks,
  ENDPOINTS_PATH,
  type RefusedSettings,
  readSettings,
  SettingsForm,
  StateBadge,
  showUrl,
} from './endpoint-settings';
import { SecretPanel } from './secret';
import { TestPanel } from './test-panel';

const PATH = ENDPOINTS_PATH;

export const ENDPOINT_PAGE_ROUTES: readonly Route[] = [
  viewRoute(`${PATH}/:id`, 'Endpoint', showOne),
  {
    method: 'post',
    path: `${PATH}/:id/save`,
    act: 'webhooks.change',
    title: 'Save changes',
    confirmation: {
      question: (form) => `Live events of this endpoint go to ${field(form, 'url')} from now on.`,
      button: 'Save changes',
      proof: 'step_up',
      liveOnly: true,
    },
    handle: save,
  },
  {
    method: 'post',
    path: `${PATH}/:id/status`,
    act: 'webhooks.change',
    title: 'Enable or disable the endpoint',
    confirmation: {
      question: (form) =>
        field(form, 'status') === 'enabled'
          ? 'Live events are sent to it from now on.'
          : 'Live events are not sent to it until you enable it; you can send them manually.',
      button: 'Go on',
      proof: 'step_up',
      liveOnly: true,
    },
    handle: setStatus,
  },
  {
    method: 'post',
    path: `${PATH}/:id/delete`,
    act: 'webhooks.change',
    title: 'Delete the endpoint',
    confirmation: {
      question: 'It gets no more events, and its signing secret is gone. That can’t be undone.',
      button: 'Delete endpoint',
      proof: 'step_up',
    },
    handle: remove,
  },
];

async function findOne(call: Call, deps: PageDeps) {
  const { id: endpoint_id = '' } = call.params;
  const endpoints = await listEndpoints(deps, call.scope);
  const endpoint = endpoints.find((each) => each.endpoint_id === endpoint_id);
  const summary = await getEndpoint(deps, { ...call.scope, endpoint_id });
  return endpoint === undefined || summary === null ? null : { endpoint, summary };
}

async function showOne(call: Call, deps: PageDeps): Promise<Answer> {
  const found = await findOne(call, deps);
  return found === null ? 'not_found' : <EndpointPage call={call} {...found} />;
}

interface EndpointPageProps {
  call: Call;
  endpoint: Endpoint;
  summary: EndpointSummary;
  refused?: RefusedSettings;
}

function EndpointPage({ call, endpoint, summary, refused }: EndpointPageProps) {
  const { id, enabled_events, description } = presentEndpoint(endpoint);
  const path = `${PATH}/${id}`;
  const mayChange = call.may('webhooks.change');
  return (
    <>
      <PageHead title="Endpoint" badge={<StateBadge endpoint={endpoint} />}>
        <BackToWebhooks call={call} />
      </PageHead>
      {endpoint.disabled_reason === 'failing' && (
        <Note tone="bad">
          Every attempt failed for five days, so it was disabled. Enable it once it works, and send
          the events that it missed.
        </Note>
      )}
      <Panel title="Settings">
        <Facts rows={[['Id', <code key="id">{id}</code>]]} />
        {mayChange ? (
          <SettingsForm
            {...{ call, endpoint, refused }}
            path={`${path}/save`}
            button="Save changes"
          />
        ) : (
          <Facts
            rows={[
              ['Endpoint URL', <code key="url">{showUrl(call, endpoint)}</code>],
              ['Description', description ?? ''],
              ['Events', enabled_events.join(', ')],
            ]}
          />
        )}
      </Panel>
      <SecretPanel call={call} endpoint={summary} base={path} />
      {call.may('events.send') && endpoint.disabled_reason === undefined && (
        <TestPanel call={call} base={path} />
      )}
      {mayChange && <ActsPanel {...{ call, endpoint, path }} />}
    </>
  );
}

function ActsPanel({ call, endpoint, path }: { call: Call; endpoint: Endpoint; path: string }) {
  const isEnabled = endpoint.disabled_reason === undefined;
  return (
    <Panel title="Disable or delete">
      <p class="muted">
        Events of the time in which it is disabled are recorded, and can be sent manually.
      </p>
      <div class="buttons">
        <PostForm
          call={call}
          path={`${path}/status`}
          button={isEnabled ? 'Disable' : 'Enable'}
          tone="plain"
          hidden={{ status: isEnabled ? 'disabled' : 'enabled' }}
        />
        <PostForm call={call} path={`${path}/delete`} button="Delete endpoint" tone="danger" />
      </div>
    </Panel>
  );
}

async function save(call: Call, deps: PageDeps): Promise<Answer> {
  const { id = '' } = call.params;
  const found = await findOne(call, deps);
  if (found === null) return 'not_found';
  const { settings, refused } = await readSettings(call, deps);
  if (settings === undefined) {
    return { page: <EndpointPage {...{ call, refused }} {...found} />, status: 400 };
  }
  return await act(call, id, 'The endpoint is saved.', () =>
    changeEndpoint(deps, call.scope, id, settings),
  );
}

async function setStatus(call: Call, deps: PageDeps): Promise<Answer> {
  const { id = '' } = call.params;
  const status = ENDPOINT_STATUSES.find((one) => one === field(call.form, 'status'));
  if (status === undefined) return 'not_found';
  return await act(call, id, `The endpoint is ${status}.`, () =>
    changeEndpoint(deps, call.scope, id, { status }),
  );
}

async function remove(call: Call, deps: PageDeps): Promise<Answer> {
  const { id = '' } = call.params;
  return await act(call, '', 'The endpoint is deleted.', () =>
    deleteEndpoint(deps, call.scope, id),
  );
}

/** @param shown id; empty: the list follows */
async function act(
  call: Call,
  shown: string,
  text: string,
  run: () => Promise<unknown>,
): Promise<Answer> {
  try {
    await run();
  } catch (error) {
    if (error instanceof Refusal && error.code === 'webhook_endpoint_not_found') return 'not_found';
    throw error;
  }
  return redirect(call, shown === '' ? '/webhooks' : `${PATH}/${shown}`, 'good', text);
}
