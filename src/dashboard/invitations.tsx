import { z } from 'zod';
import { isRole, ROLE_NAMES, ROLES } from '../domain/dashboard-role';
import { invite, withdrawInvitation } from '../merchants/staff';
import type { InvitationDocument } from '../store/invitations';
import type { DashboardDeps } from './deps';
import { Field, Select } from './fields';
import { field } from './form';
import { Copyable, Note, PageHead, Panel, PostForm, Table, When } from './parts';
import type { Answer, Call, Route } from './route';

const EMAIL_LENGTH_MAX = 254;
const ROLE_OPTIONS = ROLES.map((role) => [role, ROLE_NAMES[role]] as const);

export const INVITATION_ROUTES: readonly Route[] = [
  {
    method: 'post',
    path: '/team/invitations',
    act: 'team.change',
    title: 'Invite a person',
    ask: { question: 'Who has the link can join the team.', button: 'Invite', password: true },
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
  invitations: readonly InvitationDocument[];
}

/** Invitations that are open, and the form for another one. */
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
            mayChange && <WithdrawForm key="withdraw" call={call} email={email} />,
          ],
        }))}
        none="Nobody is invited."
      />
      {mayChange && <InviteForm call={call} />}
    </Panel>
  );
}

function WithdrawForm({ call, email }: { call: Call; email: string }) {
  return (
    <PostForm
      viewer={call.viewer}
      action={call.href('/team/invitations/withdraw')}
      button="Withdraw"
      tone="plain"
      class="inline"
      hidden={{ email }}
    />
  );
}

function InviteForm({ call }: { call: Call }) {
  return (
    <PostForm
      viewer={call.viewer}
      action={call.href('/team/invitations')}
      button="Invite"
      hidden={{ confirmed: 'yes' }}
    >
      <h3>Invite a person</h3>
      <Field label="E-mail" name="email" type="email" required maxLength={EMAIL_LENGTH_MAX} />
      <Select label="Role" name="role" value="read_only" options={ROLE_OPTIONS} />
      <Field
        label="Your password"
        name="password"
        type="password"
        autocomplete="current-password"
        required
      />
    </PostForm>
  );
}

async function inviteOne(call: Call, deps: DashboardDeps): Promise<Answer> {
  const email = field(call.form, 'email').toLowerCase();
  const role = field(call.form, 'role');
  const isEmail = email.length <= EMAIL_LENGTH_MAX && z.email().safeParse(email).success;
  if (!isEmail || !isRole(role)) {
    return back(call, 'bad', 'Nobody was invited: give an e-mail address and a role.');
  }
  const { account_id } = call.scope;
  const made = await invite({ ...deps, audit: call.audit }, { account_id, email, role });
  const link = `${deps.publicUrl}/dashboard/invitation/${made.token}`;
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
            It expires on <When at={made.expires_at.toISOString()} />.{' '}
            <a href={call.href('/team')}>Back to the team</a>
          </p>
        </Panel>
      </>
    ),
  };
}

async function withdraw(call: Call, deps: DashboardDeps): Promise<Answer> {
  const email = field(call.form, 'email');
  await withdrawInvitation({ ...deps, audit: call.audit }, call.scope.account_id, email);
  return back(call, 'good', 'The invitation is withdrawn: its link no longer works.');
}

function back(call: Call, tone: 'good' | 'bad', text: string): Answer {
  return { go: call.href('/team'), flash: { tone, text } };
}
