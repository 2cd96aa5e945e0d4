import { isRole, ROLE_NAMES } from '../../domain/account/dashboard-role';
import {
  changeRole,
  listTeam,
  removeUser,
  type TeamChange,
  type TeamMember,
} from '../../service/team/members';
import { field, redirect } from '../frame/form';
import { Badge, PageHead, Panel, PostForm, type Row, Table, When } from '../frame/parts';
import { type Answer, type Call, type PageDeps, type Route, viewRoute } from '../frame/route';
import { InvitationsPanel, ROLE_OPTIONS } from './invitations';

const TITLE = 'Team';

export const TEAM_ROUTES: readonly Route[] = [
  viewRoute('/team', TITLE, list),
  {
    method: 'post',
    path: '/team/:id/role',
    act: 'team.change',
    title: 'Change a role',
    confirmation: {
      question: (form) => `Change the role to ${getRoleName(form.get('role') ?? '')}?`,
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
    confirmation: {
      question: 'They are signed out everywhere, and can’t sign in again.',
      button: 'Remove',
      password: true,
    },
    handle: remove,
  },
];

async function list(call: Call, deps: PageDeps): Promise<Answer> {
  const { members, invitations } = await listTeam(deps, call.scope.account_id);
  return {
    page: (
      <>
        <PageHead title={TITLE} />
        <Panel title="People">
          <Table
            label="People"
            head={['E-mail', 'Role', 'Second factor', 'Last signed in', 'Act']}
            rows={members.map((member) => toRow(call, member))}
            none="There are no members yet."
          />
        </Panel>
        <InvitationsPanel call={call} invitations={invitations} />
      </>
    ),
  };
}

function toRow(call: Call, member: TeamMember): Row {
  const { id, email, role, has_second_factor, signed_in_at } = member;
  const isSelf = id === call.viewer.user.id;
  return {
    key: id,
    cells: [
      <span key="email" class="email">
        {email} {isSelf && <span class="muted">(you)</span>}
      </span>,
      ROLE_NAMES[role],
      <Badge key="factor" tone={has_second_factor ? 'good' : 'plain'}>
        {has_second_factor ? 'On' : 'Off'}
      </Badge>,
      <When key="at" at={signed_in_at} />,
      call.may('team.change') && <MemberForms key="forms" call={call} member={member} />,
    ],
  };
}

function MemberForms({ call, member }: { call: Call; member: TeamMember }) {
  const path = `/team/${member.id}`;
  const shared = { call, class: 'inline' } as const;
  return (
    <div class="inline">
      <PostForm {...shared} path={`${path}/role`} button="Change role" tone="plain">
        <select name="role" aria-label={`Role of ${member.email}`}>
          {ROLE_OPTIONS.map(([role, name]) => (
            <option key={role} value={role} selected={role === member.role}>
              {name}
            </option>
          ))}
        </select>
      </PostForm>
      <PostForm {...shared} path={`${path}/remove`} button="Remove" tone="danger" />
    </div>
  );
}

async function setRole(call: Call, deps: PageDeps): Promise<Answer> {
  const { id = '' } = call.params;
  const role = field(call.form, 'role');
  if (!isRole(role)) return redirect(call, '/team', 'bad', 'There is no such role.');
  const { account_id } = call.scope;
  const change = await changeRole(deps, { id, account_id }, role);
  return toAnswer(call, change, 'The role is changed.');
}

async function remove(call: Call, deps: PageDeps): Promise<Answer> {
  const { id = '' } = call.params;
  const { account_id } = call.scope;
  const change = await removeUser(deps, { id, account_id });
  return toAnswer(call, change, 'The member is removed.');
}

function toAnswer(call: Call, change: TeamChange, successText: string): Answer {
  if (change === 'not_found') return 'not_found';
  if (change === 'done') return redirect(call, '/team', 'good', successText);
  return redirect(
    call,
    '/team',
    'bad',
    'An account needs an owner: make another member an owner first.',
  );
}

function getRoleName(text: string): string {
  return isRole(text) ? ROLE_NAMES[text] : 'none';
}
