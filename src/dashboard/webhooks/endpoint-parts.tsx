import {
  DEFAULT_EVENT_TYPES,
  EVENT_TYPES,
  type EventType,
  listEnabledEvents,
} from '../../domain/events/event';
import {
  checkEndpointUrl,
  type Endpoint,
  type EndpointSummary,
  ROLL_DELAYS_MS,
  type RollDelay,
  rollSecret,
  showEndpoint,
} from '../../service/events/endpoints/manage';

import { getOrigin } from '../../webhooks/url';
import { Checks, Field, Select } from '../frame/fields';
import { field } from '../frame/form';
import { Badge, Copyable, Note, PageHead, Panel, PostForm, useCall, When } from '../frame/parts';
import { type Answer, type Call, type PageDeps, postRoute } from '../frame/route';

export const ENDPOINTS_PATH = '/webhooks/endpoints';

const DESCRIPTION_LENGTH_MAX = 255;

export interface RefusedSettings {
  url: string;
  description: string;
  events: readonly EventType[];
  urlFault: string | undefined;
}

interface SettingsFormProps {
  path: string;
  button: string;
  hidden?: Readonly<Record<string, string>> | undefined;
  endpoint?:
    | (Pick<Endpoint, 'url' | 'enabled_events'> & Pick<Partial<Endpoint>, 'description'>)
    | undefined;
  refused?: RefusedSettings | undefined;
  isOldest?: boolean;
}

export function SettingsForm(props: SettingsFormProps) {
  const { endpoint, refused, isOldest = false, ...form } = props;
  return (
    <PostForm {...form} busy="Saving…">
      {refused?.events.length === 0 && <Note tone="bad">Choose at least one event type.</Note>}
      <Field
        label="Endpoint URL"
        name="url"
        type="url"
        value={refused?.url ?? endpoint?.url ?? ''}
        hint={`https, at a public address.${isOldest ? ' Each environment has its own.' : ''}`}
        fault={refused?.urlFault}
        required
      />
      {!isOldest && (
        <Field
          label="Description"
          name="description"
          value={refused?.description ?? endpoint?.description ?? ''}
          maxLength={DESCRIPTION_LENGTH_MAX}
        />
      )}
      <Checks
        legend="Events to send"
        name="events"
        options={EVENT_TYPES.map((type) => [type, type] as const)}
        checked={refused?.events ?? listEnabledEvents(endpoint?.enabled_events)}
        hint="Other events are recorded and listed, and can be sent manually."
      />
    </PostForm>
  );
}

export async function readSettings({ form, scope }: Call, { webhookUrls }: PageDeps) {
  const chosen = form.getAll('events');
  const events = EVENT_TYPES.filter((type) => chosen.includes(type));
  const isDefault = events.join() === DEFAULT_EVENT_TYPES.join();
  const url = field(form, 'url');
  const description = field(form, 'description').slice(0, DESCRIPTION_LENGTH_MAX).trim();
  const check = await checkEndpointUrl(webhookUrls, scope, url);
  if (!check.ok || events.length === 0) {
    const urlFault = check.ok ? undefined : check.message;
    return { refused: { url, description, events, urlFault } };
  }
  const settings = {
    url: check.url,
    description: description === '' ? null : description,
    events: isDefault ? ('all' as const) : events,
  };
  return { settings };
}

/** Refuses settings before the confirmation requires a password. */
export function refuseSettings(
  show: (call: Call, deps: PageDeps, refused: RefusedSettings) => Answer | Promise<Answer>,
) {
  return async (call: Call, deps: PageDeps): Promise<Answer | undefined> => {
    const { refused } = await readSettings(call, deps);
    return refused && (await show(call, deps, refused));
  };
}

export function BackToWebhooks() {
  return <a href={useCall().href('/webhooks')}>Back to webhooks</a>;
}

/** Hides all but the host from roles that may not change endpoints: it may hold a secret. */
export function showUrl({ may }: Pick<Call, 'may'>, { url }: { url: string }): string {
  return may('webhooks.change') ? url : getOrigin(url);
}

export function StateBadge({ endpoint }: { endpoint: Pick<Endpoint, 'disabled_reason'> }) {
  const { disabled_reason } = endpoint;
  if (disabled_reason === undefined) return <Badge tone="good">Enabled</Badge>;
  if (disabled_reason === 'merchant') return <Badge tone="plain">Disabled</Badge>;
  return <Badge tone="bad">Disabled: it failed for days</Badge>;
}

export const SECRET_ROUTES = ['/webhooks', `${ENDPOINTS_PATH}/:id`].flatMap((base) => [
  postRoute(`${base}/secret`, 'webhooks.secret', {
    title: 'Signing secret',
    confirmation: {
      question: 'The secret signs every delivery. Anyone who has it can forge them.',
      button: 'Show signing secret',
      proof: 'password',
    },
    handle: async (call, deps) => {
      const key = { ...call.scope, endpoint_id: call.id || undefined };
      const endpoint = await showEndpoint(deps, key);
      if (endpoint === null) return 'not_found';
      const { signing_secret, next_secret, next_active_from } = endpoint;
      return (
        <>
          <PageHead title="Signing secret" />
          <Panel>
            <Copyable label="signing secret" text={signing_secret} />
            {next_secret !== undefined && next_active_from !== undefined && (
              <>
                <p>
                  {'From '}
                  <When at={next_active_from} />
                  {' on this one signs:'}
                </p>
                <Copyable label="next signing secret" text={next_secret} />
              </>
            )}
            <BackToWebhooks />
          </Panel>
        </>
      );
    },
  }),
  postRoute(`${base}/roll`, 'webhooks.change', {
    title: 'Roll the signing secret',
    confirmation: {
      question: (form) =>
        `Create a new secret that signs ${WORDS[parseAfter(form)]}? The current one cannot be restored.`,
      button: 'Roll signing secret',
      proof: 'step_up',
    },
    handle: async (call, deps) => {
      const after = parseAfter(call.form);
      const key = { ...call.scope, endpoint_id: call.id || undefined };
      const newSecret = await rollSecret(deps, key, ROLL_DELAYS_MS[after]);
      if (newSecret === null) return 'not_found';
      return (
        <>
          <PageHead title="New signing secret" />
          <Note tone="note">
            {after === 'now' ? (
              'It signs from now on: deliveries do not verify until you use it.'
            ) : (
              <>
                {'It signs from '}
                <When at={newSecret.active_from} />
                {' on; until then the current one does.'}
              </>
            )}
          </Note>
          <Panel>
            <Copyable label="signing secret" text={newSecret.signing_secret} />
            <BackToWebhooks />
          </Panel>
        </>
      );
    },
  }),
]);

const WORDS: Readonly<Record<RollDelay, string>> = {
  now: 'from now on',
  '1h': 'in one hour',
  '24h': 'in 24 hours',
};

function parseAfter(form: URLSearchParams): RollDelay {
  const text = field(form, 'after');
  return text === '1h' || text === '24h' ? text : 'now';
}

export function SecretPanel({
  endpoint: { next_active_from },
  base = '/webhooks',
}: {
  endpoint: EndpointSummary;
  base?: string;
}) {
  const { may } = useCall();
  return (
    <Panel title="Signing secret">
      <p class="muted">
        Each delivery is signed with it, in the header <code>Service-Signature</code>.
      </p>
      {next_active_from !== undefined && (
        <Note tone="note">
          {'A new secret signs from '}
          <When at={next_active_from} />
          {' on.'}
        </Note>
      )}
      <div class="buttons">
        {may('webhooks.secret') && (
          <PostForm path={`${base}/secret`} button="Show signing secret" tone="plain" />
        )}
        {may('webhooks.change') && (
          <PostForm path={`${base}/roll`} button="Roll signing secret" tone="danger">
            <Select
              label="New secret signs"
              name="after"
              options={[
                ['now', 'Now'],
                ['1h', 'In 1 hour'],
                ['24h', 'In 24 hours'],
              ]}
            />
          </PostForm>
        )}
      </div>
    </Panel>
  );
}
