import { randomUUID } from 'node:crypto';
import { Refusal, ServiceError } from '../../domain/errors';
import { listEnabledEvents } from '../../domain/webhook/endpoint';
import {
  addEndpoint,
  type Endpoint,
  getEndpoint,
  listEndpoints,
  setEndpoint,
} from '../../service/events/endpoints/manage';

import { getOrigin } from '../../webhooks/url';
import { field, redirect } from '../frame/form';
import { Copyable, Note, PageHead, Panel, Table, useCall } from '../frame/parts';
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

const NEW_PATH = `${ENDPOINTS_PATH}/new`;
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

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
      const text = 'The endpoint is saved. Send a test event to see that it answers.';
      return redirect(call, '/webhooks', 'good', text);
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
      if (!UUID.test(formKey)) return redirect(call, NEW_PATH, 'bad', 'Fill in the form again.');
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
        return redirect(call, '/webhooks', 'bad', error.message);
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
  const isEnabled = endpoints[0]?.disabled_reason === undefined;
  const page = (
    <>
      <PageHead title="Webhooks">
        <a class="button plain" href={call.href('/webhooks/deliveries')}>
          Deliveries
        </a>
      </PageHead>
      <Panel title="Endpoint">
        <OldestHint endpoints={endpoints} />
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

interface EndpointsProps {
  /** Oldest first. */
  endpoints: readonly Endpoint[];
}

function OldestHint({ endpoints: [oldest, ...others] }: EndpointsProps) {
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

function EndpointsPanel({ endpoints }: EndpointsProps) {
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
        head={['Endpoint', 'Description', 'Events', 'State']}
        rows={endpoints.map((endpoint) => ({
          key: endpoint.endpoint_id,
          href: call.href(`${ENDPOINTS_PATH}/${endpoint.endpoint_id}`),
          cells: [
            <code key="url">{showUrl(call, endpoint)}</code>,
            endpoint.description ?? '–',
            endpoint.enabled_events === undefined ? 'all' : String(endpoint.enabled_events.length),
            <StateBadge key="state" endpoint={endpoint} />,
          ],
        }))}
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
