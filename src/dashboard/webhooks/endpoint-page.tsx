import { Refusal } from '../../domain/errors';
import { ENDPOINT_STATUSES } from '../../domain/webhook/endpoint';
import {
  changeEndpoint,
  deleteEndpoint,
  getEndpoint,
  listEndpoints,
  presentEndpoint,
} from '../../service/events/endpoints/manage';

import { field, redirect } from '../frame/form';
import { Facts, Note, PageHead, Panel, PostForm } from '../frame/parts';
import { type Answer, type Call, type PageDeps, postRoute, viewRoute } from '../frame/route';
import {
  BackToWebhooks,
  ENDPOINTS_PATH,
  type RefusedSettings,
  readSettings,
  refuseSettings,
  SecretPanel,
  SettingsForm,
  StateBadge,
  showUrl,
} from './endpoint-parts';
import { TestPanel } from './send';

const PATH = `${ENDPOINTS_PATH}/:id`;

export const ENDPOINT_PAGE_ROUTES = [
  viewRoute(PATH, 'Endpoint', (call, deps) => showEndpoint(call, deps)),
  postRoute(`${PATH}/save`, 'webhooks.change', {
    title: 'Save changes',
    confirmation: {
      question: (form) => `Live events of this endpoint go to ${field(form, 'url')} from now on.`,
      button: 'Save changes',
      refuse: refuseSettings(showEndpoint),
      proof: 'step_up',
      liveOnly: true,
    },
    handle: async (call, deps) => {
      const { id = '' } = call.params;
      const { settings, refused } = await readSettings(call, deps);
      if (settings === undefined) return await showEndpoint(call, deps, refused);
      return await act(call, `${ENDPOINTS_PATH}/${id}`, 'The endpoint is saved.', () =>
        changeEndpoint(deps, call.scope, id, settings),
      );
    },
  }),
  postRoute(`${PATH}/status`, 'webhooks.change', {
    title: 'Enable or disable the endpoint',
    confirmation: {
      question: (form) =>
        field(form, 'status') === 'enabled'
          ? 'Live events are sent to it from now on.'
          : 'Live events are not sent to it until you enable it; you can send them manually.',
      button: (form) => (field(form, 'status') === 'enabled' ? 'Enable' : 'Disable'),
      proof: 'step_up',
      liveOnly: true,
    },
    handle: async (call, deps) => {
      const { id = '' } = call.params;
      const status = ENDPOINT_STATUSES.find((one) => one === field(call.form, 'status'));
      if (status === undefined) return 'not_found';
      return await act(call, `${ENDPOINTS_PATH}/${id}`, `The endpoint is ${status}.`, () =>
        changeEndpoint(deps, call.scope, id, { status }),
      );
    },
  }),
  postRoute(`${PATH}/delete`, 'webhooks.change', {
    title: 'Delete the endpoint',
    confirmation: {
      question: 'It gets no more events, and its signing secret is gone. That can’t be undone.',
      button: 'Delete endpoint',
      proof: 'step_up',
    },
    handle: (call, deps) =>
      act(call, '/webhooks', 'The endpoint is deleted.', () =>
        deleteEndpoint(deps, call.scope, call.params['id'] ?? ''),
      ),
  }),
];

async function showEndpoint(
  call: Call,
  deps: PageDeps,
  refused?: RefusedSettings,
): Promise<Answer> {
  const { id: endpoint_id = '' } = call.params;
  const endpoints = await listEndpoints(deps, call.scope);
  const endpoint = endpoints.find((each) => each.endpoint_id === endpoint_id);
  const summary = await getEndpoint(deps, { ...call.scope, endpoint_id });
  if (endpoint === undefined || summary === null) return 'not_found';
  const { id, enabled_events, description } = presentEndpoint(endpoint);
  const path = `${ENDPOINTS_PATH}/${id}`;
  const mayChange = call.may('webhooks.change');
  const isEnabled = endpoint.disabled_reason === undefined;
  const page = (
    <>
      <PageHead title="Endpoint" badge={<StateBadge endpoint={endpoint} />}>
        <BackToWebhooks />
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
          <SettingsForm {...{ endpoint, refused }} path={`${path}/save`} button="Save changes" />
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
      <SecretPanel endpoint={summary} base={path} />
      {call.may('events.send') && isEnabled && <TestPanel base={path} />}
      {mayChange && (
        <Panel title="Disable or delete">
          <p class="muted">
            Events of the time in which it is disabled are recorded, and can be sent manually.
          </p>
          <div class="buttons">
            <PostForm
              path={`${path}/status`}
              button={isEnabled ? 'Disable' : 'Enable'}
              tone="plain"
              hidden={{ status: isEnabled ? 'disabled' : 'enabled' }}
            />
            <PostForm path={`${path}/delete`} button="Delete endpoint" tone="danger" />
          </div>
        </Panel>
      )}
    </>
  );
  return { page, status: refused === undefined ? 200 : 400 };
}

async function act(
  call: Call,
  path: string,
  text: string,
  run: () => Promise<unknown>,
): Promise<Answer> {
  try {
    await run();
  } catch (error) {
    if (error instanceof Refusal && error.code === 'webhook_endpoint_not_found') return 'not_found';
    throw error;
  }
  return redirect(call, path, 'good', text);
}
