import { z } from 'zod';
import { isRole, ROLE_NAMES, ROLES } from '../../domain/account/dashboard-role';
import { type Invitation, invite, withdrawInvitation } from '../../service/team/members';
import { Field, PasswordField, Select } from '../frame/fields';
import { field, redirect } from '../frame/form';
import { Copyable, Note, PageHead, Panel, PostForm, Table, When } from '../frame/parts';
import type { Answer, Call, PageDeps, Route } from '../frame/route';

const EMAIL_LENGTH_MAX = 254;
export const ROLE_OPTIONS = ROLES.map((role) => [role, ROLE_NAMES[role]] as const);

export const INVITATION_ROUTES: readonly Route[] = [
  {
    method: 'post',
    path: '/team/invitations',
    act: 'team.change',
    title: 'Invite a person',
    confirmation: {
      question: 'Anyone with the link can join the team.',
      button: 'Invite',
      password: true,
    },
    handle: inviteOne,
  },
  {
    method: 'post',
    path: '/team/invitations/withdraw',
    act: 'team.change',
    title: 'Withdraw an invitation',
    whileFrozen: true,
    handle: withdraw,
  },
];

interface InvitationsProps {
  call: Call;
  invitations: readonly Invitation[];
}

export function InvitationsPanel({ call, invitations }: InvitationsProps) {
  const mayChange = call.may('team.change');
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
                call={call}
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
      {mayChange && <InviteForm call={call} />}
    </Panel>
  );
}

function InviteForm({ call }: { call: Call }) {
  return (
    <PostForm call={call} path="/team/invitations" button="Invite" hidden={{ confirmed: 'yes' }}>
      <h3>Invite a person</h3>
      <Field label="E-mail" name="email" type="email" required maxLength={EMAIL_LENGTH_MAX} />
      <Select label="Role" name="role" value="read_only" options={ROLE_OPTIONS} />
      <PasswordField label="Your password" />
    </PostForm>
  );
}

async function inviteOne(call: Call, deps: PageDeps): Promise<Answer> {
  const email = field(call.form, 'email').toLowerCase();
  const role = field(call.form, 'role');
  const isEmail = email.length <= EMAIL_LENGTH_MAX && z.email().safeParse(email).success;
  if (!isEmail || !isRole(role)) {
    return redirect(
      call,
      '/team',
      'bad',
      'Nobody was invited: enter an e-mail address and a role.',
    );
  }
  const { account_id } = call.scope;
  const invitation = await invite(deps, { account_id, email, role });
  const link = `${deps.publicUrl}/dashboard/invitation/${invitation.token}`;
  return {
    page: (
      <>
        <PageHead title="The invitation" />
        <Note tone="note">
          {`Send this link to ${email} yourself. It is shown this once, and works once.`}
        </Note>
        <Panel>
          <Copyable label="invitation link" text={link} />
          <p>
            It expires on <When at={invitation.expires_at.toISOString()} />.{' '}
            <a href={call.href('/team')}>Back to the team</a>
          </p>
        </Panel>
      </>
    ),
  };
}

async function withdraw(call: Call, deps: PageDeps): Promise<Answer> {
  const email = field(call.form, 'email');
  await withdrawInvitation(deps, call.scope.account_id, email);
  return redirect(call, '/team', 'good', 'The invitation is withdrawn: its link no longer works.');
}
