import { listEnabledEvents } from '../../domain/webhook/endpoint';
import { EVENT_TYPES, type EventType } from '../../domain/webhook/event';
import { checkEndpointUrl, type Endpoint } from '../../service/events/endpoints/manage';

import { getOrigin } from '../../webhooks/url';
import { Checks, Field } from '../frame/fields';
import { field } from '../frame/form';
import { Badge, Note, PostForm } from '../frame/parts';
import type { Call, PageDeps } from '../frame/route';

export const ENDPOINTS_PATH = '/webhooks/endpoints';

const DESCRIPTION_LENGTH_MAX = 255;

export interface RefusedSettings {
  url: string;
  description: string;
  events: readonly EventType[];
  urlFault: string | undefined;
}

interface StoredSettings {
  url: string;
  description?: string | null | undefined;
  /** Undefined: all types. */
  enabled_events?: readonly EventType[] | undefined;
}

interface SettingsFormProps {
  call: Call;
  path: string;
  button: string;
  hidden?: Readonly<Record<string, string>>;
  endpoint?: StoredSettings | undefined;
  refused?: RefusedSettings | undefined;
  isOldest?: boolean;
}

export function SettingsForm(props: SettingsFormProps) {
  const { call, path, button, hidden, endpoint, refused, isOldest = false } = props;
  return (
    <PostForm call={call} path={path} button={button} busy="Saving…" {...(hidden && { hidden })}>
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
    events: events.length === EVENT_TYPES.length ? ('all' as const) : events,
  };
  return { settings };
}

export function BackToWebhooks({ call }: { call: Pick<Call, 'href'> }) {
  return <a href={call.href('/webhooks')}>Back to webhooks</a>;
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
