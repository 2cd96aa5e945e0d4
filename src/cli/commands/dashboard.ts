import { type Command, Option } from 'commander';
import { ROLES, type Role } from '../../domain/dashboard-role';
import { resetPassword } from '../../merchants/login';
import { invite } from '../../merchants/staff';
import { findAccount } from '../account';
import type { CliContext } from '../context';
import { CliFailure } from '../failure';
import { parseEmail } from '../options';
import { fields, table, when } from '../output';

const EXAMPLES = {
  group: `
Examples:
  npm run -s cli -- dashboard invite acct_… --email ana@example.com --role developer
  npm run -s cli -- dashboard people acct_…
  npm run -s cli -- dashboard reset-password ana@example.com`,
  invite: `
No mail is sent: hand the link over yourself. It works once, and for three days.

Example:
  npm run -s cli -- dashboard invite acct_… --email ana@example.com --role owner --json
  {"link", "expires_at"}`,
  reset: `
Make sure who asks: the new password lets in whoever reads it. All sessions of the person end.

Example:
  npm run -s cli -- dashboard reset-password ana@example.com --json
  {"email", "password"}`,
};

export function addDashboardCommands(program: Command, context: CliContext): void {
  const group = program
    .command('dashboard')
    .description("people who sign in to a merchant's dashboard")
    .addHelpText('after', EXAMPLES.group);
  group
    .command('invite')
    .description('make a link by which a person joins the staff of an account')
    .argument('<account_id>')
    .requiredOption('--email <address>', 'login of the person', parseEmail)
    .addOption(
      new Option('--role <role>', 'what the person may do').choices(ROLES).makeOptionMandatory(),
    )
    .addHelpText('after', EXAMPLES.invite)
    .action((id: string, asked: { email: string; role: Role }) => inviteOne(context, id, asked));
  group
    .command('people')
    .description('list the staff of an account, oldest first')
    .argument('<account_id>')
    .action((id: string) => list(context, id));
  group
    .command('reset-password')
    .description('give a person who is locked out a new password')
    .argument('<email>')
    .option('--without-second-factor', 'switch the second factor off, too, where it is lost')
    .addHelpText('after', EXAMPLES.reset)
    .action((email: string, options: { withoutSecondFactor?: true }) =>
      reset(context, email, options.withoutSecondFactor === true),
    );
}

async function inviteOne(
  context: CliContext,
  accountId: string,
  { email, role }: { email: string; role: Role },
): Promise<void> {
  const acting = await context.acting();
  const { _id: account_id } = await findAccount(acting.stores, accountId);
  await acting.stores.invitations.ensureIndexes();
  const { token, expires_at } = await invite(acting, { account_id, email, role });
  const link = `${context.settings().publicUrl}/dashboard/invitation/${token}`;
  const expires = expires_at.toISOString();
  const text = fields([
    ['Link', link],
    ['Expires', when(expires)],
  ]);
  context.print({
    json: { link, expires_at: expires },
    text: `${text}\n\nThe link is not stored and not shown again: hand it over now.`,
  });
}

async function list(context: CliContext, accountId: string): Promise<void> {
  const stores = await context.stores();
  const { _id: account_id } = await findAccount(stores, accountId);
  const people = await stores.users.forAccount(account_id);
  const data = people.map(({ _id, email, role, totp, created_at, signed_in_at }) => ({
    user_id: _id,
    email,
    role,
    second_factor: totp !== null,
    created_at,
    signed_in_at,
  }));
  const rows = data.map(({ email, role, second_factor, signed_in_at }) => [
    email,
    role,
    second_factor ? 'on' : 'off',
    signed_in_at === null ? 'never' : when(signed_in_at),
  ]);
  const heading = ['E-MAIL', 'ROLE', 'SECOND FACTOR', 'LAST SIGNED IN'];
  context.print({ json: { data }, text: table(heading, rows, 'Nobody has signed in yet.') });
}

async function reset(context: CliContext, email: string, dropSecondFactor: boolean) {
  const password = await resetPassword(await context.acting(), email, { dropSecondFactor });
  if (password === null) throw new CliFailure('user_not_found', `There is no login ${email}.`);
  const text = fields([
    ['E-mail', email.toLowerCase()],
    ['Password', password],
  ]);
  context.print({
    json: { email: email.toLowerCase(), password },
    text: `${text}\n\nThe password is not stored and not shown again: keep it now.`,
  });
}
