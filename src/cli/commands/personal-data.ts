import { z } from 'zod';
import { isLive } from '../../domain/environment';
import { ServiceError } from '../../domain/errors';
import { erasePayer, exportPayer, type PayerName } from '../../service/money/payer-data';
import { eraseRecipient } from '../../service/money/recipients';
import { defineCommand, defineGroup } from '../command';
import { Email, Id, OWNER, textOption } from '../options';
import { formatTime, printFields, table } from '../output';

const PayerOptions = z.object({
  ...OWNER,
  reference: textOption(
    "the merchant's name for the payer, `customer.reference`",
    'ref',
  ).optional(),
  email: Email.describe('e-mail address of the payer').optional(),
});

/** @throws ServiceError `invalid_usage` */
function toName({ account_id, env, reference, email }: z.output<typeof PayerOptions>): PayerName {
  const owner = { account_id, livemode: isLive(env) };
  if (reference !== undefined && email === undefined) {
    return { ...owner, by: 'reference', value: reference };
  }
  if (email !== undefined && reference === undefined)
    return { ...owner, by: 'email', value: email };
  throw new ServiceError('invalid_usage', 'Name the payer by either --reference or --email.');
}

function buildNote(unreadable: readonly string[]): { note?: string } {
  if (unreadable.length === 0) return {};
  const ids = unreadable.join(', ');
  return { note: `No key decrypts the payer of these, who may be the same: ${ids}` };
}

const show = defineCommand({
  name: 'export',
  description: 'print all that is stored of a payer; --json prints it in full',
  options: PayerOptions,
  notes: `
It reads all payments of the account. Recipients of payouts are not among them.`,
  example: 'payer export acct_… --env live --email ana@example.com --json',
  run: async (context, options) => {
    const deps = { ...(await context.readDeps()), encrypter: context.encrypter() };
    const json = await exportPayer(deps, toName(options));
    const rows = json.payments.map(({ payment_id, customer, payment, refunds }) => [
      payment_id,
      payment?.status ?? 'not written yet',
      formatTime(payment?.created_at ?? null),
      customer.email ?? '-',
      [customer.first_name, customer.last_name].filter((name) => name !== null).join(' ') || '-',
      String(refunds.length),
    ]);
    const heading = ['PAYMENT', 'STATUS', 'CREATED', 'E-MAIL', 'NAME', 'REFUNDS'];
    const { note = '' } = buildNote(json.unreadable);
    const text = [table(heading, rows, 'Nothing is stored of this payer.'), note];
    context.print({ json, text: text.filter((part) => part !== '').join('\n\n') });
  },
});

const erase = defineCommand({
  name: 'erase',
  description: 'erase a payer from the payments that have ended, for good; again changes nothing',
  options: PayerOptions.extend({
    dry_run: z.boolean().default(false).describe('only list what it would erase'),
  }),
  notes: `
It erases names, e-mail address and reference of the payer, and the reasons of refunds. A payment that has
not ended, or whose money is in dispute, keeps them and is listed: run it again later. Amounts, journal
entries, \`reference\` and \`metadata\` stay. Export first: it cannot be undone.`,
  example: 'payer erase acct_… --env live --reference customer-42 --dry-run',
  run: async (context, { dry_run, ...options }) => {
    const name = toName(options);
    const deps = { ...(await context.actingDeps()), encrypter: context.encrypter() };
    const json = await erasePayer(deps, name, dry_run);
    printFields(context, { json, ...buildNote(json.unreadable) }, [
      ['Account', json.account_id],
      ['Environment', json.environment],
      [dry_run ? 'Would be erased' : 'Erased', `${json.erased.length} payments`],
      ...json.left.map(({ payment_id, reason }) => ['Left', `${payment_id}: ${reason}`] as const),
    ]);
  },
});

export const payerCommands = defineGroup({
  name: 'payer',
  description: 'what is stored of one payer of a merchant',
  commands: [show, erase],
});

const eraseDetails = defineCommand({
  name: 'forget',
  description: 'erase the details of a recipient for good; again changes nothing',
  options: z.object({ recipient_id: Id.meta({ argument: true }) }),
  notes: `
It cannot be undone. Past payouts keep the id and the last four characters; a payout that no bank has yet
fails, and its amount is returned to the balance.`,
  example: 'recipient forget 5b0a…',
  run: async (context, { recipient_id: id }) => {
    const recipient = await eraseRecipient(await context.actingDeps(), id);
    if (recipient === null) {
      throw new ServiceError('recipient_not_found', `There is no recipient ${id}.`);
    }
    const { account_id, livemode, type, scheme, last4, created_at, deleted_at = null } = recipient;
    const json = { id, account_id, livemode, type, scheme, last4, created_at, deleted_at };
    printFields(context, { json }, [
      ['Recipient', id],
      ['Account', account_id],
      ['Environment', livemode ? 'live' : 'sandbox'],
      ['Was', `${type} ${scheme === null ? '' : `${scheme} `}…${last4}`],
      ['Created', formatTime(created_at)],
      ['Deleted', formatTime(deleted_at)],
    ]);
  },
});

export const recipientCommands = defineGroup({
  name: 'recipient',
  description: 'erase what identifies a recipient of payouts',
  commands: [eraseDetails],
});
