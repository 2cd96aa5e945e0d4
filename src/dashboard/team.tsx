import { isRole, ROLE_NAMES, ROLES } from '../domain/dashboard-role';
import { changeRole, removeUser, type StaffChange } from '../merchants/staff';
import type { UserDocument } from '../store/users';
import type { DashboardDeps } from './deps';
import { field } from './form';
import { InvitationsPanel } from './invitations';
import { Badge, PageHead, Panel, PostForm, type Row, Table, When } from './parts';
import type { Answer, Call, Route } from './route';

const TITLE = 'Team';
const ROLE_OPTIONS = ROLES.map((role) => [role, ROLE_NAMES[role]] as const);

export const TEAM_ROUTES: readonly Route[] = [
  { method: 'get', path: '/team', act: 'view', title: TITLE, handle: list },
  {
    method: 'post',
    path: '/team/:id/role',
    act: 'team.change',
    title: 'Change a role',
    ask: {
      question: (form) => `Change the role to ${nameOfRole(form.get('role') ?? '')}?`,
      button: 'Change role',
      password: true,
    },
    handle: setRole,
  },
  {
    method: 'post',
    path: '/team/:id/remove',
    act: 'team.change',
    title: 'Remove a person',
    whileFrozen: true,
    ask: {
      question: 'They are signed out everywhere, and can’t sign in again.',
      button: 'Remove',
      password: true,
    },
    handle: remove,
  },
];

async function list(call: Call, { stores, now }: DashboardDeps): Promise<Answer> {
  const { account_id } = call.scope;
  const [people, invitations] = await Promise.all([
    stores.users.forAccount(account_id),
    stores.invitations.forAccount(account_id, now()),
  ]);
  return {
    page: (
      <>
        <PageHead title={TITLE} />
        <Panel title="People">
          <Table
            label="People"
            head={['E-mail', 'Role', 'Second factor', 'Last signed in', 'Act']}
            rows={people.map((person) => rowOf(call, person))}
            none="Nobody is here."
          />
        </Panel>
        <InvitationsPanel call={call} invitations={invitations} />
      </>
    ),
  };
}

function rowOf(call: Call, person: UserDocument): Row {
  const { _id, email, role, totp, signed_in_at } = person;
  const isSelf = _id === call.viewer.user.id;
  return {
    key: _id,
    cells: [
      <span key="email" class="person">
        {email} {isSelf && <span class="muted">(you)</span>}
      </span>,
      ROLE_NAMES[role],
      <Badge key="factor" tone={totp === null ? 'plain' : 'good'}>
        {totp === null ? 'Off' : 'On'}
      </Badge>,
      <When key="at" at={signed_in_at} />,
      call.may('team.change') && <PersonForms key="forms" call={call} person={person} />,
    ],
  };
}

function PersonForms({ call, person }: { call: Call; person: UserDocument }) {
  const path = `/team/${person._id}`;
  const shared = { viewer: call.viewer, class: 'inline' } as const;
  return (
    <div class="inline">
      <PostForm {...shared} action={call.href(`${path}/role`)} button="Change role" tone="plain">
        <select name="role" aria-label={`Role of ${person.email}`}>
          {ROLE_OPTIONS.map(([role, name]) => (
            <option key={role} value={role} selected={role === person.role}>
              {name}
            </option>
          ))}
        </select>
      </PostForm>
      <PostForm {...shared} action={call.href(`${path}/remove`)} button="Remove" tone="danger" />
    </div>
  );
}

async function setRole(call: Call, deps: DashboardDeps): Promise<Answer> {
  const { id = '' } = call.params;
  const role = field(call.form, 'role');
  if (!isRole(role)) return back(call, 'bad', 'There is no such role.');
  const { account_id } = call.scope;
  const change = await changeRole({ ...deps, audit: call.audit }, { id, account_id }, role);
  return told(call, change, 'The role is changed.');
}

async function remove(call: Call, deps: DashboardDeps): Promise<Answer> {
  const { id = '' } = call.params;
  const { account_id } = call.scope;
  const change = await removeUser({ ...deps, audit: call.audit }, { id, account_id });
  return told(call, change, 'The person is removed.');
}

function told(call: Call, change: StaffChange, done: string): Answer {
  if (change === 'not_found') return 'not_found';
  if (change === 'done') return back(call, 'good', done);
  return back(call, 'bad', 'An account needs an owner: make another person one first.');
}

function back(call: Call, tone: 'good' | 'bad', text: string): Answer {
  return { go: call.href('/team'), flash: { tone, text } };
}

function nameOfRole(text: string): string {
  return isRole(text) ? ROLE_NAMES[text] : 'none';
}
