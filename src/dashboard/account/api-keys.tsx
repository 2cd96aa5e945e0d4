import { randomUUID } from 'node:crypto';
import { isDuplicateKey } from '../../base/mongo';
import { areCidrs, splitCidrs } from '../../base/networks';
import { isScope, SCOPES } from '../../domain/account/api-key';
import {
  createKey,
  type ListedKey,
  listKeys,
  type NewKey,
  revokeKey,
} from '../../service/merchants/keys';
import { Checks, Field } from '../frame/fields';
import { field, redirect } from '../frame/form';
import {
  Badge,
  Copyable,
  Note,
  PageHead,
  Panel,
  PostForm,
  type Row,
  Table,
  When,
} from '../frame/parts';
import { type Call, postRoute, type Route, viewRoute } from '../frame/route';

const TITLE = 'API keys';
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export const API_KEY_ROUTES: readonly Route[] = [
  viewRoute('/api-keys', TITLE, async (call, deps) => {
    const keys = await listKeys(deps, call.scope);
    return (
      <>
        <PageHead title={TITLE} />
        <p class="muted">
          {`Your server sends a key with each request. These are keys of the ${call.viewer.env} ` +
            'environment; each is shown once, when it is created.'}
        </p>
        <Panel>
          <Table
            label={TITLE}
            head={['Key', 'Scopes', 'Networks', 'Created', 'Expires', 'Last used', 'State']}
            rows={keys.map((key) => toRow(call, key))}
            none="There are no keys in this environment yet."
          />
        </Panel>
        {call.may('keys.change') && <NewKeyForm />}
      </>
    );
  }),
  postRoute('/api-keys', 'keys.change', {
    title: TITLE,
    confirmation: {
      question: (form) =>
        form.getAll('scope').includes('payouts:write')
          ? 'A person who has this key can pay out your money.'
          : 'A person who has this key acts for you, with real money.',
      button: 'Create key',
      proof: 'step_up',
      liveOnly: true,
    },
    handle: async (call, deps) => {
      const scopes = SCOPES.filter((scope) => call.form.getAll('scope').includes(scope));
      const isKnown = call.form.getAll('scope').every(isScope);
      const formKey = field(call.form, 'once');
      if (scopes.length === 0 || !isKnown || !UUID.test(formKey)) {
        const text = 'No key was created: choose at least one scope.';
        return redirect(call, '/api-keys', 'bad', text);
      }
      const bounds = parseBounds(call, deps.now());
      if (typeof bounds === 'string') return redirect(call, '/api-keys', 'bad', bounds);
      try {
        // A form sent twice creates one key.
        const id = `key_${formKey}`;
        const { key } = await createKey(deps, { ...call.scope, ...bounds, scopes, id });
        return (
          <>
            <PageHead title="Your new API key" />
            <Note tone="note">Copy it now: it is not stored, and not shown again.</Note>
            <Panel>
              <Copyable label="API key" text={key} />
              <p>
                <a href={call.href('/api-keys')}>Back to the API keys</a>
              </p>
            </Panel>
          </>
        );
      } catch (error) {
        if (!isDuplicateKey(error)) throw error;
        const text =
          'This key was created already, and is shown only once. Revoke it if you lost it.';
        return redirect(call, '/api-keys', 'bad', text);
      }
    },
  }),
  postRoute('/api-keys/:id/revoke', 'keys.change', {
    title: 'Revoke an API key',
    whileFrozen: true,
    confirmation: {
      question: 'Requests with this key are refused from now on. That can’t be undone.',
      button: 'Revoke',
    },
    handle: async (call, deps) => {
      const { id = '' } = call.params;
      const revokedKey = await revokeKey(deps, id, call.scope);
      if (revokedKey === null) return 'not_found';
      return redirect(call, '/api-keys', 'good', 'The key is revoked.');
    },
  }),
];

function toRow(call: Call, key: ListedKey): Row {
  const { _id, last4, scopes, created_at, last_used_at, revoked_at } = key;
  const { expires_at = null, allowed_cidrs = [] } = key;
  const state =
    revoked_at !== null ? (
      <Badge tone="plain">Revoked</Badge>
    ) : call.may('keys.change') ? (
      <PostForm path={`/api-keys/${_id}/revoke`} button="Revoke" tone="danger" class="inline" />
    ) : (
      <Badge tone="good">Active</Badge>
    );
  return {
    key: _id,
    cells: [
      <code key="key">{`…${last4}`}</code>,
      scopes.length === SCOPES.length ? 'all' : scopes.join(', '),
      allowed_cidrs.length === 0 ? 'all' : allowed_cidrs.join(', '),
      <When key="created" at={created_at} />,
      expires_at === null ? 'never' : <When key="expires" at={expires_at} />,
      <When key="used" at={last_used_at} />,
      state,
    ],
  };
}

function NewKeyForm() {
  return (
    <Panel title="New key">
      <PostForm path="/api-keys" button="Create key" hidden={{ once: randomUUID() }}>
        <Checks
          legend="Scopes"
          name="scope"
          options={SCOPES.map((scope) => [scope, scope] as const)}
          checked={SCOPES}
          hint="What requests with the key may do."
        />
        <Field label="Last day" name="last_day" type="date" hint="In UTC. Empty: no end." />
        <Field
          label="Networks"
          name="networks"
          maxLength={1_000}
          hint="Networks that may use the key, such as 203.0.113.0/24, by commas. Empty: all."
        />
      </PostForm>
    </Panel>
  );
}

/** @returns the fault as a text */
function parseBounds({ form }: Call, now: Date): Partial<NewKey> | string {
  const day = field(form, 'last_day');
  const lastMoment = Date.parse(`${day}T23:59:59.999Z`);
  if (day !== '' && !(lastMoment > now.getTime())) {
    return 'No key was created: its last day must not be past.';
  }
  const networks = field(form, 'networks');
  if (networks !== '' && !areCidrs(networks)) {
    return 'No key was created: write networks as 203.0.113.0/24 or 2001:db8::/32, by commas.';
  }
  return {
    ...(day !== '' && { expires_at: new Date(lastMoment).toISOString() }),
    ...(networks !== '' && { allowed_cidrs: splitCidrs(networks) }),
  };
}
