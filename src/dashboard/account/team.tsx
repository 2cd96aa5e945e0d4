import { isRole, ROLE_NAMES, ROLES } from '../../domain/account/dashboard-role';
import { ServiceError } from '../../domain/errors';
import { EMAIL_LENGTH_MAX, isEmail } from '../../domain/wire/fields';
import {
  changeMember,
  type Invitation,
  invite,
  listTeam,
  type TeamChange,
  type TeamMember,
  withdrawInvitation,
} from '../../service/merchants/team/members';
import { Field, ProofFields, Select } from '../frame/fields';
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
  useCall,
  When,
} from '../frame/parts';
import { type Answer, type Call, postRoute, type Route, viewRoute } from '../frame/route';

const TITLE = 'Team';

export const TEAM_ROUTES: readonly Route[] = [
  viewRoute('/team', TITLE, async (call, deps) => {
    const { members, invitations } = await listTeam(deps, call.scope.account_id);
    return (
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
      const { id = '' } = call.params;
      const role = field(call.form, 'role');
      if (!isRole(role)) return redirect(call, '/team', 'bad', 'There is no such role.');
      const { account_id } = call.scope;
      const change = await changeMember(deps, { id, account_id }, role);
      return toAnswer(call, change, 'The role is changed.');
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
      const { id = '' } = call.params;
      const { account_id } = call.scope;
      const change = await changeMember(deps, { id, account_id }, null);
      return toAnswer(call, change, 'The member is removed.');
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
        const text = 'Nobody was invited: enter an e-mail address and a role.';
        return redirect(call, '/team', 'bad', text);
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
        return redirect(call, '/team', 'bad', invitation.message);
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
      const email = field(call.form, 'email');
      await withdrawInvitation(deps, call.scope.account_id, email);
      return redirect(
        call,
        '/team',
        'good',
        'The invitation is withdrawn: its link no longer works.',
      );
    },
  }),
];

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
      call.may('team.change') && <MemberForms key="forms" member={member} />,
    ],
  };
}

function MemberForms({ member }: { member: TeamMember }) {
  const call = useCall();
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

function toAnswer(call: Call, change: TeamChange, successText: string): Answer {
  if (change === 'not_found') return 'not_found';
  if (change === 'done') return redirect(call, '/team', 'good', successText);
  const text = 'An account needs an owner: make another member an owner first.';
  return redirect(call, '/team', 'bad', text);
}

const ROLE_OPTIONS = ROLES.map((role) => [role, ROLE_NAMES[role]] as const);

function InvitationsPanel({ invitations }: { invitations: Invitation[] }) {
  const { may, viewer } = useCall();
  const mayChange = may('team.change');
  return (
    <Panel title="Invitations">
      <Table
        label="Invitations"
        head={['E-mail', 'Role', 'Expires', 'Act']}
        rows={invitations.map(({ email, role, expires_at }) => ({
          key: email,
          cells: [
            <span key="email">{email}</span>,
            ROLE_NAMES[role],
            <When key="expires" at={expires_at.toISOString()} />,
            mayChange && (
              <PostForm
                key="withdraw"
                path="/team/invitations/withdraw"
                button="Withdraw"
                tone="plain"
                class="inline"
                hidden={{ email }}
              />
            ),
          ],
        }))}
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
