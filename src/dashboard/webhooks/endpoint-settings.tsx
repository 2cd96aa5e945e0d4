import { listEnabledEvents } from '../../domain/webhook/endpoint';
import { EVENT_TYPES } from '../../domain/webhook/event';
import type { Endpoint } from '../../service/endpoints/present';
import { checkEndpointUrl } from '../../service/endpoints/url';
import { Checks, Field } from '../frame/fields';
import { field } from '../frame/form';
import { Badge, PostForm } from '../frame/parts';
import type { Call, PageDeps } from '../frame/route';

export const ENDPOINTS_PATH = '/webhooks/endpoints';

const DESCRIPTION_LENGTH_MAX = 255;

interface SettingsFormProps {
  call: Call;
  path: string;
  button: string;
  hidden?: Readonly<Record<string, string>>;
  endpoint?: Endpoint;
}

export function SettingsForm({ call, path, button, hidden, endpoint }: SettingsFormProps) {
  return (
    <PostForm call={call} path={path} button={button} busy="Saving…" {...(hidden && { hidden })}>
      <Field
        label="Address"
        name="url"
        type="url"
        value={endpoint?.url ?? ''}
        hint="https, at a public address."
        required
      />
      <Field
        label="Description"
        name="description"
        value={endpoint?.description ?? ''}
        maxLength={DESCRIPTION_LENGTH_MAX}
      />
      <Checks
        legend="Events to send"
        name="events"
        options={EVENT_TYPES.map((type) => [type, type] as const)}
        checked={listEnabledEvents(endpoint?.enabled_events)}
        hint="Other events are recorded and listed, and can be sent manually."
      />
    </PostForm>
  );
}

/** Reads the form; returns the fault as a text. */
export async function readSettings({ form, scope }: Call, { webhookUrls }: PageDeps) {
  const chosen = form.getAll('events');
  const events = EVENT_TYPES.filter((type) => chosen.includes(type));
  if (events.length === 0) return 'Choose at least one event type.';
  const check = await checkEndpointUrl(webhookUrls, scope, field(form, 'url'));
  if (!check.ok) return check.message;
  const description = field(form, 'description').slice(0, DESCRIPTION_LENGTH_MAX).trim();
  return {
    url: check.url,
    description: description === '' ? null : description,
    events: events.length === EVENT_TYPES.length ? ('all' as const) : events,
  };
}

export function StateBadge({ endpoint }: { endpoint: Pick<Endpoint, 'disabled_reason'> }) {
  const { disabled_reason } = endpoint;
  if (disabled_reason === undefined) return <Badge tone="good">Enabled</Badge>;
  if (disabled_reason === 'merchant') return <Badge tone="plain">Disabled</Badge>;
  return <Badge tone="bad">Disabled: it failed for days</Badge>;
}
