import { randomUUID } from 'node:crypto';
import { Refusal, ServiceError } from '../../domain/errors';
import { ENDPOINT_STATUSES, listEnabledEvents } from '../../domain/events/event';
import {
  addEndpoint,
  changeEndpoint,
  deleteEndpoint,
  type Endpoint,
  getEndpoint,
  listEndpoints,
  presentEndpoint,
  setEndpoint,
} from '../../service/events/endpoints/manage';
import { getOrigin } from '../../webhooks/url';
import { field, UUID } from '../frame/form';
import { Copyable, Facts, Note, PageHead, Panel, PostForm, Table, useCall } from '../frame/parts';
import { type Answer, type Call, type PageDeps, postRoute, viewRoute } from '../frame/route';
import { TestPanel } from './deliveries';
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

const NEW_PATH = `${ENDPOINTS_PATH}/new`;

/** Register before `/:id` of one endpoint, or `new` would match as an id. */
export const WEBHOOK_ROUTES = [
  viewRoute('/webhooks', 'Webhooks', (call, deps) => showWebhooks(call, deps)),
  postRoute('/webhooks/endpoint', 'webhooks.change', {
    title: 'Save the endpoint',
    confirmation: {
      question: (form) => `All live events go to ${field(form, 'url')} from now on.`,
      button: 'Save endpoint',
      refuse: refuseSettings(showWebhooks),
      proof: 'step_up',
      liveOnly: true,
    },
    handle: async (call, deps) => {
      const { settings, refused } = await readSettings(call, deps);
      if (settings === undefined) return await showWebhooks(call, deps, refused);
      const { url, events } = settings;
      await setEndpoint(deps, call.scope, { url, events, showsSecret: false });
      const good = 'The endpoint is saved. Send a test event to see that it answers.';
      return { go: '/webhooks', good };
    },
  }),
  viewRoute(NEW_PATH, 'Add an endpoint', async () => <NewPage once={randomUUID()} />),
  postRoute(NEW_PATH, 'webhooks.change', {
    title: 'Add an endpoint',
    confirmation: {
      question: (form) => `Live events go to ${field(form, 'url')}, too, from now on.`,
      button: 'Add endpoint',
      refuse: refuseSettings(showNew),
      proof: 'step_up',
      liveOnly: true,
    },
    handle: async (call, deps) => {
      const formKey = field(call.form, 'once');
      if (!UUID.test(formKey)) return { go: NEW_PATH, bad: 'Fill in the form again.' };
      const { settings, refused } = await readSettings(call, deps);
      if (settings === undefined) return showNew(call, deps, refused);
      try {
        // A form sent twice adds one endpoint.
        const added = { ...settings, endpoint_id: `we_${formKey}` };
        const { signing_secret } = await addEndpoint(deps, call.scope, added);
        return (
          <>
            <PageHead title="Your new endpoint" />
            <Note tone="note">Deliveries to it are signed with this secret.</Note>
            <Panel>
              <Copyable label="signing secret" text={signing_secret} />
              <BackToWebhooks />
            </Panel>
          </>
        );
      } catch (error) {
        if (!(error instanceof Refusal) && !(error instanceof ServiceError)) throw error;
        return { go: '/webhooks', bad: error.message };
      }
    },
  }),
];

async function showWebhooks(
  call: Call,
  deps: PageDeps,
  refused?: RefusedSettings,
): Promise<Answer> {
  const [endpoint, endpoints] = await Promise.all([
    getEndpoint(deps, call.scope),
    listEndpoints(deps, call.scope),
  ]);
  const [oldest, ...others] = endpoints;
  const isEnabled = oldest?.disabled_reason === undefined;
  const page = (
    <>
      <PageHead title="Webhooks">
        <a class="button plain" href={call.href('/webhooks/deliveries')}>
          Deliveries
        </a>
      </PageHead>
      <Panel title="Endpoint">
        {oldest !== undefined && (others.length > 0 || !isEnabled) && (
          <p class="muted">
            {others.length > 0 && 'Your oldest endpoint; the list of all is below. '}
            <StateBadge endpoint={oldest} />
          </p>
        )}
        {call.may('webhooks.change') ? (
          <SettingsForm
            path="/webhooks/endpoint"
            button="Save endpoint"
            endpoint={endpoint ?? undefined}
            refused={refused}
            isOldest
          />
        ) : (
          <>
            <p>
              {endpoint ? <code>{getOrigin(endpoint.url)}</code> : 'No endpoint is registered.'}
            </p>
            {endpoint && (
              <p class="muted">{listEnabledEvents(endpoint.enabled_events).join(', ')}</p>
            )}
          </>
        )}
      </Panel>
      {endpoint && <SecretPanel endpoint={endpoint} />}
      {endpoint && isEnabled && call.may('events.send') && <TestPanel />}
      <EndpointsPanel endpoints={endpoints} />
      <Panel title="Verify a delivery">
        <p>
          The header <code>Service-Signature</code> is <code>t=…,v1=…</code>: the seconds since
          1970, and the hex HMAC-SHA256 of <code>t</code>, a full stop and the body, under the
          signing secret.
        </p>
        <p class="muted">
          Use the raw body as received, compare in constant time, and refuse a time more than 300
          seconds away. The documentation has a complete receiver. Never put the secret in your
          code.
        </p>
      </Panel>
    </>
  );
  return { page, status: refused === undefined ? 200 : 400 };
}

function EndpointsPanel({ endpoints }: { endpoints: readonly Endpoint[] }) {
  const call = useCall();
  return (
    <Panel title="All endpoints">
      {endpoints.some(({ disabled_reason }) => disabled_reason === 'failing') && (
        <Note tone="bad">
          An endpoint failed for five days, so it was disabled. Enable it once it works, and send
          the events that it missed.
        </Note>
      )}
      <Table
        label="All endpoints"
        rows={endpoints}
        getHref={({ endpoint_id }) => call.href(`${ENDPOINTS_PATH}/${endpoint_id}`)}
        columns={[
          ['Endpoint', (endpoint) => <code>{showUrl(call, endpoint)}</code>],
          ['Description', ({ description }) => description ?? '–'],
          ['Events', ({ enabled_events: events }) => String(events?.length ?? 'all')],
          ['State', (endpoint) => <StateBadge endpoint={endpoint} />],
        ]}
        none="There are no endpoints yet."
      />
      {call.may('webhooks.change') && endpoints.length > 0 && (
        <div class="buttons">
          <a class="button plain" href={call.href(NEW_PATH)}>
            Add an endpoint
          </a>
        </div>
      )}
    </Panel>
  );
}

function showNew({ form }: Call, _deps: PageDeps, refused: RefusedSettings): Answer {
  return { page: <NewPage refused={refused} once={field(form, 'once')} />, status: 400 };
}

function NewPage({ once, refused }: { once: string; refused?: RefusedSettings }) {
  return (
    <>
      <PageHead title="Add an endpoint">
        <BackToWebhooks />
      </PageHead>
      <Panel>
        <p class="muted">You see its own signing secret as soon as it is added.</p>
        {useCall().may('webhooks.change') ? (
          <SettingsForm path={NEW_PATH} button="Add endpoint" refused={refused} hidden={{ once }} />
        ) : (
          <p>Your role may not change endpoints.</p>
        )}
      </Panel>
    </>
  );
}

const ONE_PATH = `${ENDPOINTS_PATH}/:id`;

export const ENDPOINT_PAGE_ROUTES = [
  viewRoute(ONE_PATH, 'Endpoint', (call, deps) => showEndpoint(call, deps)),
  postRoute(`${ONE_PATH}/save`, 'webhooks.change', {
    title: 'Save changes',
    confirmation: {
      question: (form) => `Live events of this endpoint go to ${field(form, 'url')} from now on.`,
      button: 'Save changes',
      refuse: refuseSettings(showEndpoint),
      proof: 'step_up',
      liveOnly: true,
    },
    handle: async (call, deps) => {
      const { settings, refused } = await readSettings(call, deps);
      if (settings === undefined) return await showEndpoint(call, deps, refused);
      return await act(`${ENDPOINTS_PATH}/${call.id}`, 'The endpoint is saved.', () =>
        changeEndpoint(deps, call.scope, call.id, settings),
      );
    },
  }),
  postRoute(`${ONE_PATH}/status`, 'webhooks.change', {
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
      const status = ENDPOINT_STATUSES.find((one) => one === field(call.form, 'status'));
      if (status === undefined) return 'not_found';
      return await act(`${ENDPOINTS_PATH}/${call.id}`, `The endpoint is ${status}.`, () =>
        changeEndpoint(deps, call.scope, call.id, { status }),
      );
    },
  }),
  postRoute(`${ONE_PATH}/delete`, 'webhooks.change', {
    title: 'Delete the endpoint',
    confirmation: {
      question: 'It gets no more events, and its signing secret is gone. That can’t be undone.',
      button: 'Delete endpoint',
      proof: 'step_up',
    },
    handle: (call, deps) =>
      act('/webhooks', 'The endpoint is deleted.', () => deleteEndpoint(deps, call.scope, call.id)),
  }),
];

async function showEndpoint(
  call: Call,
  deps: PageDeps,
  refused?: RefusedSettings,
): Promise<Answer> {
  const { id: endpoint_id } = call;
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

async function act(path: string, good: string, run: () => Promise<unknown>): Promise<Answer> {
  try {
    await run();
  } catch (error) {
    if (error instanceof Refusal && error.code === 'webhook_endpoint_not_found') return 'not_found';
    throw error;
  }
  return { go: path, good };
}
