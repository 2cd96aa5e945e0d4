import { randomUUID } from 'node:crypto';
import { Refusal, ServiceError } from '../../domain/errors';
import { addEndpoint, type Endpoint } from '../../service/events/endpoints/manage';

import { field, redirect } from '../frame/form';
import { Copyable, Note, PageHead, Panel, Table } from '../frame/parts';
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

const PATH = ENDPOINTS_PATH;
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Precede those of one endpoint, whose id `new` would be. */
export const ENDPOINTS_ROUTES: readonly Route[] = [
  viewRoute(`${PATH}/new`, 'Add an endpoint', showNew),
  {
    method: 'post',
    path: `${PATH}/new`,
    act: 'webhooks.change',
    title: 'Add an endpoint',
    confirmation: {
      question: (form) => `Live events go to ${field(form, 'url')}, too, from now on.`,
      button: 'Add endpoint',
      proof: 'step_up',
      liveOnly: true,
    },
    handle: add,
  },
];

export function EndpointsPanel({ call, endpoints }: { call: Call; endpoints: Endpoint[] }) {
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
          href: call.href(`${PATH}/${endpoint.endpoint_id}`),
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
          <a class="button plain" href={call.href(`${PATH}/new`)}>
            Add an endpoint
          </a>
        </div>
      )}
    </Panel>
  );
}

async function showNew(call: Call): Promise<Answer> {
  return { page: <NewPage call={call} once={randomUUID()} /> };
}

interface NewPageProps {
  call: Call;
  once: string;
  refused?: RefusedSettings;
}

function NewPage({ call, once, refused }: NewPageProps) {
  return (
    <>
      <PageHead title="Add an endpoint">
        <BackToWebhooks call={call} />
      </PageHead>
      <Panel>
        <p class="muted">You see its own signing secret as soon as it is added.</p>
        {call.may('webhooks.change') ? (
          <SettingsForm
            {...{ call, refused }}
            path={`${PATH}/new`}
            button="Add endpoint"
            hidden={{ once }}
          />
        ) : (
          <p>Your role may not change endpoints.</p>
        )}
      </Panel>
    </>
  );
}

async function add(call: Call, deps: PageDeps): Promise<Answer> {
  const formKey = field(call.form, 'once');
  if (!UUID.test(formKey)) return redirect(call, `${PATH}/new`, 'bad', 'Fill in the form again.');
  const { settings, refused } = await readSettings(call, deps);
  if (settings === undefined) {
    return { page: <NewPage {...{ call, refused }} once={formKey} />, status: 400 };
  }
  try {
    // A form sent twice adds one endpoint.
    const endpoint_id = `we_${formKey}`;
    const { signing_secret } = await addEndpoint(deps, call.scope, { ...settings, endpoint_id });
    return (
      <>
        <PageHead title="Your new endpoint" />
        <Note tone="note">Deliveries to it are signed with this secret.</Note>
        <Panel>
          <Copyable label="signing secret" text={signing_secret} />
          <BackToWebhooks call={call} />
        </Panel>
      </>
    );
  } catch (error) {
    if (!(error instanceof Refusal) && !(error instanceof ServiceError)) throw error;
    return redirect(call, '/webhooks', 'bad', error.message);
  }
}
