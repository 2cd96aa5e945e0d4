import { randomUUID } from 'node:crypto';
import { isScope, SCOPES } from '../domain/api-key';
import { createKey, revokeKey } from '../merchants/api-keys';
import { isDuplicateKey } from '../mongo';
import type { KeyDocument } from '../store/keys';
import type { DashboardDeps } from './deps';
import { Checks } from './fields';
import { field } from './form';
import { Badge, Copyable, Note, PageHead, Panel, PostForm, type Row, Table, When } from './parts';
import type { Answer, Call, Route } from './route';

const TITLE = 'API keys';
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export const API_KEY_ROUTES: readonly Route[] = [
  { method: 'get', path: '/api-keys', act: 'view', title: TITLE, handle: list },
  { method: 'post', path: '/api-keys', act: 'keys.change', title: TITLE, handle: create },
  {
    method: 'post',
    path: '/api-keys/:id/revoke',
    act: 'keys.change',
    title: 'Revoke an API key',
    whileFrozen: true,
    ask: {
      question: 'Requests with this key are refused from now on. That can’t be undone.',
      button: 'Revoke',
    },
    handle: revoke,
  },
];

async function list(call: Call, { stores }: DashboardDeps): Promise<Answer> {
  const { account_id, livemode } = call.scope;
  const keys = (await stores.keys.forAccount(account_id)).filter(
    (key) => key.livemode === livemode,
  );
  return {
    page: (
      <>
        <PageHead title={TITLE} />
        <p class="muted">
          {`Your server sends a key with each request. These are keys of the ${call.viewer.env} ` +
            'environment; each is shown once, when it is made.'}
        </p>
        <Panel>
          <Table
            label={TITLE}
            head={['Key', 'Scopes', 'Created', 'Last used', 'State']}
            rows={keys.toReversed().map((key) => rowOf(call, key))}
            none="There are no keys in this environment yet."
          />
        </Panel>
        {call.may('keys.change') && <NewKeyForm call={call} />}
      </>
    ),
  };
}

function rowOf(call: Call, key: KeyDocument): Row {
  const { _id, last4, scopes, created_at, last_used_at, revoked_at } = key;
  const state =
    revoked_at !== null ? (
      <Badge tone="plain">Revoked</Badge>
    ) : call.may('keys.change') ? (
      <PostForm
        viewer={call.viewer}
        action={call.href(`/api-keys/${_id}/revoke`)}
        button="Revoke"
        tone="danger"
        class="inline"
      />
    ) : (
      <Badge tone="good">Active</Badge>
    );
  return {
    key: _id,
    cells: [
      <code key="key">{`…${last4}`}</code>,
      scopes.length === SCOPES.length ? 'all' : scopes.join(', '),
      <When key="created" at={created_at} />,
      <When key="used" at={last_used_at} />,
      state,
    ],
  };
}

function NewKeyForm({ call }: { call: Call }) {
  return (
    <Panel title="New key">
      <PostForm
        viewer={call.viewer}
        action={call.href('/api-keys')}
        button="Create key"
        hidden={{ once: randomUUID() }}
      >
        <Checks
          legend="Scopes"
          name="scope"
          options={SCOPES.map((scope) => [scope, scope] as const)}
          checked={SCOPES}
          hint="What requests with the key may do."
        />
      </PostForm>
    </Panel>
  );
}

async function create(call: Call, deps: DashboardDeps): Promise<Answer> {
  const scopes = SCOPES.filter((scope) => call.form.getAll('scope').includes(scope));
  const isKnown = call.form.getAll('scope').every(isScope);
  const once = field(call.form, 'once');
  if (scopes.length === 0 || !isKnown || !UUID.test(once)) {
    const text = 'No key was made: choose at least one scope.';
    return { go: call.href('/api-keys'), flash: { tone: 'bad', text } };
  }
  try {
    // A form that is sent twice makes one key.
    const id = `key_${once}`;
    const { key } = await createKey({ ...deps, audit: call.audit }, { ...call.scope, scopes, id });
    return { page: <ShownKey call={call} value={key} /> };
  } catch (error) {
    if (!isDuplicateKey(error)) throw error;
    const text = 'This key was made already, and is shown once only. Revoke it if you lost it.';
    return { go: call.href('/api-keys'), flash: { tone: 'bad', text } };
  }
}

function ShownKey({ call, value }: { call: Call; value: string }) {
  return (
    <>
      <PageHead title="Your new API key" />
      <Note tone="note">Copy it now: it is not stored, and not shown again.</Note>
      <Panel>
        <Copyable label="API key" text={value} />
        <p>
          <a href={call.href('/api-keys')}>Back to the API keys</a>
        </p>
      </Panel>
    </>
  );
}

async function revoke(call: Call, deps: DashboardDeps): Promise<Answer> {
  const { id = '' } = call.params;
  const revoked = await revokeKey({ ...deps, audit: call.audit }, id, call.scope);
  if (revoked === null) return 'not_found';
  return { go: call.href('/api-keys'), flash: { tone: 'good', text: 'The key is revoked.' } };
}
