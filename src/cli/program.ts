import { Command, CommanderError } from 'commander';
import { PROGRAM } from '../base/program';
import { formatJson, sanitize } from '../domain/printable';
import type { CliCommand } from './command';
import { dashboardCommands, keyCommands } from './commands/access';
import { accountCommands, walletCommands } from './commands/account';
import { balanceCommands, platformCommands } from './commands/balance';
import { bankAccountCommands, reconciliationCommands } from './commands/bank-account';
import { callbackCommands } from './commands/callback';
import { connectorCommands } from './commands/connector';
import { eventCommands } from './commands/event';
import { encryptionKeyCommands, migrateCommand, rolesCommand } from './commands/installation';
import { movementCommands } from './commands/movement';
import { approvalCommands, attentionCommands, operatorCommands } from './commands/operator';
import { payerCommands, recipientCommands } from './commands/personal-data';
import { orphanCommands, reconcileCommand } from './commands/reconcile';
import { resourceCommands } from './commands/resource';
import { routingCommands } from './commands/routing';
import { clockCommands, sandboxCommands } from './commands/sandbox';
import { sepaCommands } from './commands/sepa';
import { statementCommands } from './commands/statement';
import { auditCommands, ledgerCommands } from './commands/verify';
import { webhookCommands } from './commands/webhook';
import { type CliContext, type CliIo, createContext, type Loads } from './context';
import { explain } from './failure';

const ABOUT = `
Addresses come from MONGODB_URI, MONGODB_DB, TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, KEYS_FILE and
WEBHOOK_ALLOW_PRIVATE, or else from the stack that \`${PROGRAM.start}\` runs (DATA_DIR/stack.json, where
DATA_DIR is .data by default).

Examples:
  ${PROGRAM.cli} account create --name "Acme Shop"
  ${PROGRAM.cli} webhook set acct_… --env sandbox --url http://localhost:4000/hook
  ${PROGRAM.cli} event list acct_… --env sandbox --json
  ${PROGRAM.cli} balance show acct_… --env sandbox
  ${PROGRAM.cli} payout show 0d1f…`;

const EXIT_CODES = `
Exit codes: 0 done; 1 refused or failed, with the reason on stderr
(with --json: {"error": {"code", "message"}}).`;

const COMMANDS: readonly CliCommand[] = [
  accountCommands,
  keyCommands,
  encryptionKeyCommands,
  dashboardCommands,
  webhookCommands,
  eventCommands,
  balanceCommands,
  platformCommands,
  bankAccountCommands,
  statementCommands,
  reconciliationCommands,
  ledgerCommands,
  walletCommands,
  clockCommands,
  ...resourceCommands,
  attentionCommands,
  movementCommands,
  operatorCommands,
  approvalCommands,
  migrateCommand,
  rolesCommand,
  recipientCommands,
  payerCommands,
  orphanCommands,
  callbackCommands,
  connectorCommands,
  routingCommands,
  auditCommands,
  reconcileCommand,
  sandboxCommands,
  sepaCommands,
];

/**
 * Runs the command line once. It does not throw.
 * @param args without node and script, as `['account', 'list']`
 * @returns exit code: 0 done, 1 refused or failed
 */
export async function runCli(args: readonly string[], io: CliIo, loads: Loads): Promise<number> {
  // Detected before parsing, so that the parser's errors become JSON too.
  const end = args.indexOf('--');
  const isJson = args.slice(0, end === -1 ? args.length : end).includes('--json');
  const { context, close } = createContext(io, isJson, loads);
  return await runIn(context, args, io).finally(close);
}

/** As `runCli`, over connections that stay open. */
export async function runIn(
  context: CliContext,
  args: readonly string[],
  io: CliIo,
): Promise<number> {
  const { isJson } = context;
  try {
    const program = createProgram(context, io, isJson);
    await program.parseAsync(args, { from: 'user' });
    return 0;
  } catch (error) {
    if (error instanceof CommanderError) {
      if (error.exitCode === 0) return 0;
      const isHelp = error.code === 'commander.help';
      const missing = 'A command is missing: --help lists them.';
      const message = isHelp ? missing : error.message.replace(/^error: /, '');
      if (isJson) io.stderr(errorJson('invalid_usage', message));
      return 1;
    }
    const { code, message } = explain(error);
    io.stderr(isJson ? errorJson(code, message) : `${sanitize(message)}\n`);
    return 1;
  }
}

export function createProgram(context: CliContext, io: CliIo, isJson: boolean): Command {
  const program = new Command()
    .name(PROGRAM.cli)
    .usage('<group> <command> [options]')
    .description(
      'Provision accounts, keys and webhooks, fund and verify balances, see and act on payments, ' +
        'refunds and payouts.',
    )
    .option('--json', 'print one JSON document, for scripts')
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({
      writeOut: io.stdout,
      // In JSON mode `runIn` writes the error.
      writeErr: isJson ? () => {} : io.stderr,
      outputError: (text, write) => write(text.replace(/^error: /, '')),
    })
    .exitOverride()
    .showHelpAfterError('Add --help for the options and examples.')
    .addHelpText('after', ABOUT)
    .addHelpText('afterAll', EXIT_CODES);
  for (const command of COMMANDS) command.addTo(program, context);
  return program;
}

function errorJson(code: string, message: string): string {
  return `${formatJson({ error: { code, message } })}\n`;
}
