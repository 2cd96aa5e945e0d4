import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { describeError } from '../../base/errors';
import { AUDIT_LABELS } from '../../domain/account/audit-log';
import { isLive } from '../../domain/environment';
import { ServiceError } from '../../domain/errors';
import { formatCount } from '../../domain/format-count';
import { findAccount } from '../../service/merchants/accounts';
import {
  CHAIN_FAULTS,
  type ChainsCheck,
  StoredHeads,
  verifyChains,
} from '../../service/operators/audit/chains';
import { type Actor, listAllAuditLines } from '../../service/operators/audit/log';
import { type RowsCheck, verifyRows } from '../../service/operators/audit/rows';
import { defineCommand, defineGroup } from '../command';
import { Env, limit, Time, textOption } from '../options';
import { formatTime, printList, table } from '../output';

const list = defineCommand({
  name: 'list',
  description: 'list the lines of the audit log, newest first',
  options: z.object({
    account: textOption('only of this account', 'id').optional(),
    env: Env.optional(),
    since: Time.optional().describe('only from this time on'),
    limit: limit(1_000, 100),
  }),
  example: 'audit list --account acct_… --since 2026-03-01T00:00:00Z',
  run: async (context, { account, env, since, limit: count }) => {
    const { stores } = await context.readDeps();
    if (account !== undefined) await findAccount(stores, account);
    const livemode = env && isLive(env);
    const query = { account_id: account, livemode, since, limit: count };
    printList(context, {
      ...(await listAllAuditLines({ stores }, query)),
      present: ({ _id: id, prev: _, actor: { via, ...actor }, ...line }) => ({
        id,
        ...line,
        actor: { door: via, ...actor },
      }),
      columns: ['AT', 'WHO', 'WHAT', 'TARGET', 'ACCOUNT'],
      cells: ({ at, act, target, account_id: owner, seq }, { actor }) => [
        formatTime(at),
        formatActor(actor),
        typeof seq === 'number' ? AUDIT_LABELS[act] : `${AUDIT_LABELS[act]} (not chained)`,
        target ?? '-',
        owner ?? '-',
      ],
      none: 'Nothing was changed.',
    });
  },
});

function formatActor(actor: Actor): string {
  if (actor.via === 'dashboard') return `${actor.email}${formatAddress(actor)}`;
  if (actor.via === 'api') return `${actor.key_id} (API)${formatAddress(actor)}`;
  if (actor.via === 'service') return 'the service';
  if (actor.via === 'workflow') return `${actor.operator} (Temporal)`;
  const user = `${actor.system_user} at ${actor.host}`;
  return actor.operator === undefined ? user : `${actor.operator} (${user})`;
}

function formatAddress({ address }: { address?: string }): string {
  return address === undefined ? '' : ` from ${address}`;
}

const verify = defineCommand({
  name: 'verify',
  description: 'follow the chains of the audit log, and compare with them who may do what',
  options: z.object({
    against: textOption(
      'output of an earlier --json, whose lines must still exist',
      'file',
    ).optional(),
  }),
  notes: `
Each line holds the hash of the line before it, so a change is seen. A writer of the database could make
a whole new chain: store the output of --json elsewhere, and compare with it later by --against.

Accounts, keys, routing rules, pauses, users, invitations, endpoints and wallets that no line created are
\`…_unexplained\`, and those that differ from their lines \`…_changed\`.`,
  example: 'audit verify --against heads.json',
  run: async (context, { against }) => {
    const storedHeads = against === undefined ? [] : readStoredHeads(against);
    const { stores } = await context.readDeps();
    const check = await verifyChains(stores.auditLog, storedHeads);
    const rows = await verifyRows(await context.longReader(), context.settings().mongodb.db);
    const text = `${reportChains(check)}\n\n${reportRows(rows)}`;
    context.print({ json: { ...check, ...rows }, text });
    // The report is printed already; the error sets the exit code.
    const { size } = new Set(check.broken.map(({ chain }) => chain));
    if (size > 0) {
      const chains = formatCount(size, 'broken chain');
      throw new ServiceError('audit_log_broken', `The audit log has ${chains}.`);
    }
    if (rows.unexplained > 0) {
      const message = `The audit log does not explain ${formatCount(rows.unexplained, 'row')}.`;
      throw new ServiceError('audit_rows_unexplained', message);
    }
  },
});

function reportRows({ rows, unexplained, findings }: RowsCheck): string {
  if (unexplained === 0) return `${formatCount(rows, 'row')}, all explained by the lines.`;
  const cells = findings.map(({ code, account_id, id, fields }) => [
    ...[code, account_id ?? '-', id, fields.join(', ') || '-'],
  ]);
  const scope = `${formatCount(rows, 'row')}, of which the lines do not explain ${unexplained}:`;
  return `${scope}\n\n${table(['FINDING', 'ACCOUNT', 'ID', 'DIFFERS IN'], cells, '')}`;
}

function reportChains({ lines, chains, unchained, broken }: ChainsCheck): string {
  const extra =
    unchained === 0 ? '' : ` ${formatCount(unchained, 'line')} without a place in a chain.`;
  const scope = `${formatCount(lines, 'line')} in ${formatCount(chains, 'chain')}.${extra}`;
  if (broken.length === 0) return `${scope} Nothing is broken.`;
  const rows = broken.map(({ chain, seq, line_id, fault }) => [
    chain,
    String(seq),
    line_id ?? '-',
    CHAIN_FAULTS[fault],
  ]);
  return `${scope} First broken line of each chain:\n\n${table(['CHAIN', 'PLACE', 'LINE', 'FAULT'], rows, '')}`;
}

/** @throws ServiceError `file_invalid` */
function readStoredHeads(path: string): z.infer<typeof StoredHeads> {
  try {
    const { heads } = z
      .object({ heads: StoredHeads })
      .parse(JSON.parse(readFileSync(path, 'utf8')));
    return heads;
  } catch (error) {
    const message = `${path} is not what \`audit verify --json\` printed: ${describeError(error)}`;
    throw new ServiceError('file_invalid', message);
  }
}

export const auditCommands = defineGroup({
  name: 'audit',
  description: 'who changed what: the audit log, and whether it is complete',
  commands: [list, verify],
});
