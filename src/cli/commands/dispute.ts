import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { describeError } from '../../base/errors';
import { omitUndefined } from '../../domain/defined';
import { DISPUTE_STATUSES } from '../../domain/dispute/dispute';
import { explainReason } from '../../domain/dispute/reason';
import { isLive, toEnv } from '../../domain/environment';
import { ServiceError } from '../../domain/errors';
import { formatAmount } from '../../domain/money/money';
import { isApprovalRequired } from '../../domain/operators/approval';
import { SubmitEvidence } from '../../domain/wire/disputes';
import { validate } from '../../domain/wire/validate';
import { createRecipientEncrypters } from '../../encryption/recipient-keys';
import { followKeyFile } from '../../encryption/service-keys';
import { findAccount } from '../../service/merchants/accounts';
import { findDispute, listAllDisputes, submitEvidence } from '../../service/money/disputes';
import { presentDispute } from '../../service/money/present';
import type { Documents } from '../../service/money/resources/read';
import { actAsOperator } from '../../service/operators/act';
import { withAuditLine } from '../../service/operators/audit/log';
import { createTemporalClient } from '../../temporal/client';
import { openActing, printApprovalRequired } from '../acting-operator';
import { defineCommand } from '../command';
import { getKeysDir } from '../connections';
import type { CliContext } from '../context';
import { AccountId, ApprovedBy, Env, Id, idOption, limit, NOTED, textOption } from '../options';
import { formatTime, printFields, printList } from '../output';

const DisputeId = Id.meta({ argument: true, placeholder: 'dispute_id' });

const present = (dispute: Documents['dispute']) => {
  const { account_id, attention } = dispute;
  return { ...presentDispute(dispute), account_id, attention };
};

const list = defineCommand({
  name: 'list',
  description: 'list disputes of one account or of all, the newest first',
  options: z.object({
    account_id: AccountId.optional().describe('only those of this account'),
    env: Env.optional().describe('only those of this environment'),
    status: z.enum(DISPUTE_STATUSES).optional().meta({ placeholder: 'status' }),
    payment: idOption('only those of one payment').optional(),
    limit: limit(1_000, 100),
    before: textOption('continue a list at its next_cursor', 'cursor').optional(),
  }),
  notes: 'ANSWER UNTIL is the deadline of evidence.',
  example: 'dispute list acct_… --env live --status needs_response',
  run: async (context, { account_id, env, payment: payment_id, ...query }) => {
    const deps = await context.readDeps();
    if (account_id !== undefined) await findAccount(deps.stores, account_id);
    const livemode = env && isLive(env);
    printList(context, {
      ...(await listAllDisputes(deps, { ...query, account_id, livemode, payment_id })),
      present,
      columns: {
        DISPUTE: 'id',
        OPENED: 'created_at',
        ACCOUNT: 'account_id',
        ENV: (dispute) => toEnv(dispute.livemode),
        STATUS: 'status',
        AMOUNT: ({ amount, currency }) => formatAmount(amount, currency),
        'ANSWER UNTIL': ({ status, evidence_due_at: at }) =>
          formatTime(status === 'needs_response' ? at : null),
      },
      none: 'There are no disputes.',
    });
  },
});

const evidence = defineCommand({
  name: 'evidence',
  description: 'send evidence of the merchant to the bank, once and before the deadline',
  options: z.object({
    id: DisputeId,
    file: textOption('JSON, with the fields of POST /v1/disputes/{id}/evidence', 'path'),
  }),
  notes: `
The file has explanation, and may have customer_reference, shipped_at, carrier, tracking_number and refund_reference. The same
evidence again changes nothing; other evidence is refused.`,
  example: 'dispute evidence dp_0d1f… --file evidence.json',
  run: async (context, { id, file }) => {
    const { account_id, livemode } = await findDispute(await context.readDeps(), id);
    let written: unknown;
    try {
      written = JSON.parse(readFileSync(file, 'utf8'));
    } catch (error) {
      throw new ServiceError('invalid_usage', `${file} cannot be read: ${describeError(error)}`);
    }
    const body = validate(SubmitEvidence, written);
    const acting = await context.withTemporal(await context.actingDeps());
    const { temporal: client, lifecycleQueue, stores, now } = acting;
    const deps = {
      ...acting,
      keys: followKeyFile(context.keysFile()),
      recipientEncrypters: createRecipientEncrypters(getKeysDir(context.settings())),
      temporal: createTemporalClient({ client, lifecycleQueue, stores, now }),
    };
    const change = { act: 'dispute.answered', account_id, livemode, target: id } as const;
    await withAuditLine(deps.audit, { ...change, after: {} }, async () => {
      await submitEvidence(deps, { account_id, livemode }, id, body);
    });
    await printDispute(context, id, 'Sent', 'evidence');
  },
});

const accept = defineCommand({
  name: 'accept',
  description: 'give in for the merchant: the customer keeps the money',
  options: z.object({
    id: DisputeId,
    ...NOTED,
    approved_by: ApprovedBy,
  }),
  notes: `
It is final. On live it needs OPERATOR_KEY and --reason, and above APPROVAL_LIMIT a second operator approves
it.`,
  example: 'dispute accept dp_0d1f… --operator mia --reason "Ticket 42: the shop agrees"',
  run: async (context, { id, operator: typed, reason, approved_by }) => {
    const { livemode } = await findDispute(await context.readDeps(), id);
    const what = 'accept';
    const acting = await openActing(context, { livemode, what, operator: typed });
    const { deps, verified, names } = acting;
    if (livemode && reason === undefined) {
      const message = 'On live, OPERATOR_KEY and --reason say who does this and why.';
      throw new ServiceError('operator_required', message);
    }
    const act = {
      ...{ what, ...names, reason: reason ?? 'accepted on the command line' },
      approved_by: livemode ? undefined : approved_by,
    };
    const answer = await actAsOperator(deps, 'dispute', id, omitUndefined(act), verified);
    if (isApprovalRequired(answer)) return printApprovalRequired(context, answer);
    await printDispute(context, id, 'Done', what);
  },
});

async function printDispute(context: CliContext, id: string, what: string, done: string) {
  const dispute = await findDispute(await context.readDeps(), id);
  const { payment_id, status, amount, currency, reason, attention } = dispute;
  printFields(context, { json: present(dispute) }, [
    [what, done],
    ['Dispute', id],
    ['Payment', payment_id],
    ['Status', status],
    ['Amount', formatAmount(amount, currency)],
    ['Reason', explainReason(reason)],
    ['Answer until', formatTime(dispute.evidence_due_at)],
    ['Attention', attention ?? '-'],
  ]);
}

/** Commands of disputes in addition to `show` and `act`. */
export const disputeCommands = [list, evidence, accept];
