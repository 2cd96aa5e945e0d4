import { randomUUID } from 'node:crypto';
import { isDuplicateKey } from '../../base/mongo';
import { areCidrs, splitCidrs } from '../../base/networks';
import { ServiceError } from '../../domain/errors';
import { isScope, SCOPES } from '../../domain/merchants/api-key';
import { isRole, ROLE_NAMES, ROLES } from '../../domain/merchants/dashboard-role';
import { EMAIL_LENGTH_MAX, isEmail } from '../../domain/wire/fields';
import { createKey, listKeys, type NewKey, revokeKey } from '../../service/merchants/keys';
import {
  changeMember,
  type Invitation,
  invite,
  listTeam,
  type TeamChange,
  withdrawInvitation,
} from '../../service/merchants/team/members';
import { Checks, Field, ProofFields, Select } from '../frame/fields';
import { field, UUID } from '../frame/form';
import {
  Badge,
  Copyable,
  Note,
  PageHead,
  Panel,
  PostForm,
  Table,
  useCall,
  When,
} from '../frame/parts';
import { type Answer, type Call, postRoute, type Route, viewRoute } from '../frame/route';

const TEAM = 'Team';
const ROLE_OPTIONS = ROLES.map((role) => [role, ROLE_NAMES[role]] as const);

const TEAM_ROUTES: readonly Route[] = [
  viewRoute('/team', TEAM, async (call, deps) => {
    const { members, invitations } = await listTeam(deps, call.scope.account_id);
    return (
      <>
        <PageHead title={TEAM} />
        <Panel title="People">
          <Table
            label="People"
            rows={members}
            columns={[
              [
                'E-mail',
                ({ id, email }) => (
                  <span class="email">
                    {email} {id === call.viewer.user.id && <span class="muted">(you)</span>}
                  </span>
                ),
              ],
              ['Role', ({ role }) => ROLE_NAMES[role]],
              [
                'Second factor',
                ({ has_second_factor: isOn }) => (
                  <Badge tone={isOn ? 'good' : 'plain'}>{isOn ? 'On' : 'Off'}</Badge>
                ),
              ],
              ['Last signed in', ({ signed_in_at }) => <When at={signed_in_at} />],
              [
                'Act',
                ({ id, email, role: held }) =>
                  call.may('team.change') && (
                    <div class="inline">
                      <PostForm
                        class="inline"
                        path={`/team/${id}/role`}
                        button="Change role"
                        tone="plain"
                      >
                        <select name="role" aria-label={`Role of ${email}`}>
                          {ROLE_OPTIONS.map(([role, name]) => (
                            <option key={role} value={role} selected={role === held}>
                              {name}
                            </option>
                          ))}
                        </select>
                      </PostForm>
                      <PostForm
                        class="inline"
                        path={`/team/${id}/remove`}
                        button="Remove"
                        tone="danger"
                      />
                    </div>
                  ),
              ],
            ]}
            none="There are no members yet."
          />
        </Panel>
        <InvitationsPanel invitations={invitations} />
      </>
    );
  }),
  postRoute('/team/:id/role', 'team.change', {
    title: 'Change a role',
    confirmation: {
      question: (form) => {
        const role = field(form, 'role');
        return `Change the role to ${isRole(role) ? ROLE_NAMES[role] : 'none'}?`;
      },
      button: 'Change role',
      proof: 'step_up',
    },
    handle: async (call, deps) => {
      const role = field(call.form, 'role');
      if (!isRole(role)) return { go: '/team', bad: 'There is no such role.' };
      const change = await changeMember(deps, getMember(call), role);
      return toAnswer(change, 'The role is changed.');
    },
  }),
  postRoute('/team/:id/remove', 'team.change', {
    title: 'Remove a person',
    whileFrozen: true,
    confirmation: {
      question: 'They are signed out everywhere, and can’t sign in again.',
      button: 'Remove',
      proof: 'step_up',
    },
    handle: async (call, deps) => {
      const change = await changeMember(deps, getMember(call), null);
      return toAnswer(change, 'The member is removed.');
    },
  }),
  postRoute('/team/invitations', 'team.change', {
    title: 'Invite a person',
    confirmation: {
      question: 'Anyone with the link can join the team.',
      button: 'Invite',
      proof: 'step_up',
    },
    handle: async (call, deps) => {
      const email = field(call.form, 'email').toLowerCase();
      const role = field(call.form, 'role');
      if (!isEmail(email) || !isRole(role)) {
        return { go: '/team', bad: 'Nobody was invited: enter an e-mail address and a role.' };
      }
      const { account_id } = call.scope;
      const invited_by = call.viewer.user.id;
      const invitation = await invite(deps, { account_id, email, role, invited_by }).catch(
        (error: unknown) => {
          if (error instanceof ServiceError) return error;
          throw error;
        },
      );
      if (invitation instanceof ServiceError) {
        return { go: '/team', bad: invitation.message };
      }
      const link = `${deps.publicUrl}/dashboard/invitation/${invitation.token}`;
      return (
        <>
          <PageHead title="The invitation" />
          <Note tone="note">
            {invitation.is_mailed
              ? `A link is mailed to ${email}. You can also send this one, which is shown this once. The first that is used ends the other.`
              : `Send this link to ${email} yourself. It is shown this once, and works once.`}
          </Note>
          <Panel>
            <Copyable label="invitation link" text={link} />
            <p>
              It expires on <When at={invitation.expires_at.toISOString()} />.{' '}
              <a href={call.href('/team')}>Back to the team</a>
            </p>
          </Panel>
        </>
      );
    },
  }),
  postRoute('/team/invitations/withdraw', 'team.change', {
    title: 'Withdraw an invitation',
    whileFrozen: true,
    handle: async (call, deps) => {
      await withdrawInvitation(deps, call.scope.account_id, field(call.form, 'email'));
      return { go: '/team', good: 'The invitation is withdrawn: its link no longer works.' };
    },
  }),
];

function getMember({ id, scope }: Call) {
  return { id, account_id: scope.account_id };
}

function toAnswer(change: TeamChange, good: string): Answer {
  if (change === 'not_found') return 'not_found';
  if (change === 'done') return { go: '/team', good };
  return { go: '/team', bad: 'An account needs an owner: make another member an owner first.' };
}

function InvitationsPanel({ invitations }: { invitations: Invitation[] }) {
  const { may, viewer } = useCall();
  const mayChange = may('team.change');
  return (
    <Panel title="Invitations">
      <Table
        label="Invitations"
        rows={invitations}
        columns={[
          ['E-mail', ({ email }) => <span>{email}</span>],
          ['Role', ({ role }) => ROLE_NAMES[role]],
          ['Expires', ({ expires_at }) => <When at={expires_at.toISOString()} />],
          [
            'Act',
            ({ email }) =>
              mayChange && (
                <PostForm
                  path="/team/invitations/withdraw"
                  button="Withdraw"
                  tone="plain"
                  class="inline"
                  hidden={{ email }}
                />
              ),
          ],
        ]}
        none="There are no invitations."
      />
      {mayChange && (
        <PostForm path="/team/invitations" button="Invite" hidden={{ confirmed: 'yes' }}>
          <h3>Invite a person</h3>
          <Field label="E-mail" name="email" type="email" required maxLength={EMAIL_LENGTH_MAX} />
          <Select label="Role" name="role" value="read_only" options={ROLE_OPTIONS} />
          <ProofFields user={viewer.user} proof="step_up" />
        </PostForm>
      )}
    </Panel>
  );
}

const KEYS = 'API keys';

const KEY_ROUTES: readonly Route[] = [
  viewRoute('/api-keys', KEYS, async (call, deps) => {
    const keys = await listKeys(deps, call.scope);
    const mayChange = call.may('keys.change');
    return (
      <>
        <PageHead title={KEYS} />
        <p class="muted">
          {`Your server sends a key with each request. These are keys of the ${call.viewer.env} ` +
            'environment; each is shown once, when it is created.'}
        </p>
        <Panel>
          <Table
            label={KEYS}
            rows={keys}
            columns={[
              ['Key', ({ last4 }) => <code>{`…${last4}`}</code>],
              ['Scopes', ({ scopes }) => listOrAll(scopes.length === SCOPES.length ? [] : scopes)],
              ['Networks', ({ allowed_cidrs = [] }) => listOrAll(allowed_cidrs)],
              ['Created', ({ created_at }) => <When at={created_at} />],
              ['Expires', ({ expires_at }) => (expires_at ? <When at={expires_at} /> : 'never')],
              ['Last used', ({ last_used_at }) => <When at={last_used_at} />],
              [
                'State',
                ({ _id, revoked_at }) =>
                  revoked_at !== null ? (
                    <Badge tone="plain">Revoked</Badge>
                  ) : mayChange ? (
                    <PostForm
                      path={`/api-keys/${_id}/revoke`}
                      button="Revoke"
                      tone="danger"
                      class="inline"
                    />
                  ) : (
                    <Badge tone="good">Active</Badge>
                  ),
              ],
            ]}
            none="There are no keys in this environment yet."
          />
        </Panel>
        {mayChange && (
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
        )}
      </>
    );
  }),
  postRoute('/api-keys', 'keys.change', {
    title: KEYS,
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
        return { go: '/api-keys', bad: 'No key was created: choose at least one scope.' };
      }
      const bounds = parseBounds(call, deps.now());
      if (typeof bounds === 'string') return { go: '/api-keys', bad: bounds };
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
        const bad =
          'This key was created already, and is shown only once. Revoke it if you lost it.';
        return { go: '/api-keys', bad };
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
      const revokedKey = await revokeKey(deps, call.id, call.scope);
      if (revokedKey === null) return 'not_found';
      return { go: '/api-keys', good: 'The key is revoked.' };
    },
  }),
];

function listOrAll(names: readonly string[]): string {
  return names.length === 0 ? 'all' : names.join(', ');
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

/** Pages about those who act for an account: its team, and the holders of its API keys. */
export const ACCESS_ROUTES: readonly Route[] = [...KEY_ROUTES, ...TEAM_ROUTES];
